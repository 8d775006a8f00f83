package judge

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
)

// neighborhood is a session on nodes in zones, whose pods keep others away, spread themselves, take ports or must be near each other. Room
// is scarce.
func neighborhood(t *rapid.T) *engine.Session {
	draw := func(label string, least, most int) int { return rapid.IntRange(least, most).Draw(t, label) }
	amounts := func(cpu, gpu int) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{float64(1000 * cpu), float64(1000 * gpu)}}
	}
	rules := &model.PodRules{Topologies: []model.Topology{{Key: "node", Node: true}, {Key: "zone"}}}
	for range 3 {
		c := model.PodClass{}
		for s := range uint32(3) {
			if draw("selected", 0, 1) == 1 {
				c.Selections = append(c.Selections, s)
			}
		}
		selection, topology := uint32(draw("selection", 0, 2)), uint32(draw("topology", 0, 1))
		switch draw("rule", 0, 9) {
		case 0:
			c.Affinity, c.AffinitySelection = []uint32{topology}, selection
		case 1, 2, 3:
			c.AntiAffinities = []model.PodAntiAffinity{{Selection: selection, Topology: topology}}
		case 4, 5, 6, 7:
			c.Spreads = []model.PodSpread{{
				Selection: selection, Topology: topology, MaxSkew: uint32(draw("skew", 1, 2)), MinDomains: uint32(draw("domains", 1, 3)),
			}}
		case 8:
			c.Ports = []model.HostPort{{Port: 1, Protocol: "TCP", Address: model.EveryAddress}}
		}
		rules.Classes = append(rules.Classes, c)
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	b.Pods(rules)
	nodes := draw("nodes", 1, 8)
	var set []uint32
	for n := range nodes {
		spec := model.NodeSpec{
			Name: fmt.Sprint("n", n), Allocatable: amounts(draw("cpu", 1, 6), draw("gpu", 0, 3)),
			Pods: &model.NodePods{Domains: []uint32{0, uint32(draw("zone", 0, 3))}},
		}
		if draw("cordoned", 0, 7) == 0 {
			spec.Unschedulable = &model.Unschedulable{}
		}
		b.Node(spec)
		if rapid.Bool().Draw(t, "in the set") {
			set = append(set, uint32(n))
		}
	}
	b.NodeSet(model.NodeSetSpec{Name: "set", Nodes: set})
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	for j := range draw("jobs", 1, 5) {
		b.Job(model.JobSpec{UID: fmt.Sprint("j", j), Queue: "q", Phase: model.PhaseInqueue})
		for g := range draw("groups", 1, 2) {
			spec := model.GroupSpec{
				Role: fmt.Sprint(g), Request: amounts(draw("cpu asked", 0, 3), draw("gpu asked", 0, 1)), PodClass: uint32(draw("class", 0, 3)),
			}
			if draw("restricted", 0, 5) == 0 {
				spec.NodeSet = "set"
			}
			b.Group(spec)
			for k := range draw("tasks", 0, 4) {
				task := model.TaskSpec{UID: fmt.Sprint(j, "-", g, "-", k), Node: model.None, Index: -1}
				if state := draw("state", 0, 5); state > 3 {
					task.Node = model.NodeID(draw("node", 0, nodes-1))
					task.Status = map[int]model.Status{4: model.Running, 5: model.Releasing}[state]
				}
				b.Task(&task)
			}
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	return s
}

// TestRelatedTasksAreWalkedToNodesAsBySearchingAllNodes places tasks that rules on other pods concern, before and after others were booked,
// now and once pods that are being deleted are gone.
func TestRelatedTasksAreWalkedToNodesAsBySearchingAllNodes(t *testing.T) {
	placed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := neighborhood(t)
		g := New(s.Host())
		later := rapid.Bool().Draw(t, "later")
		free, err := g.index(later)
		require.NoError(t, err)
		var pending []model.TaskID
		for i := range s.View().Tasks.Len() {
			if task := model.TaskID(i); s.View().Status(task) == model.Pending {
				pending = append(pending, task)
			}
		}
		require.NoError(t, s.Host().Tried(func() error {
			var booked []model.NodeID
			for len(pending) > 0 {
				n := rapid.IntRange(1, len(pending)).Draw(t, "together")
				tasks := pending[:n]
				pending = pending[n:]
				p := place.Placer{Host: s.Host(), Tasks: tasks, Nodes: g.View().NodeOrder, Room: g.left(later), Trials: place.Trials, Later: later}
				want, err := p.Place()
				require.NoError(t, err)
				got, known, err := free.place(tasks, booked)
				require.NoError(t, err)
				if known {
					require.Equal(t, want, got)
				}
				switch {
				case p.Related() && known && want.Outcome == place.Placed:
					placed++
				case p.Related() && known:
					refused++
				}
				if want.Outcome != place.Placed || later {
					continue
				}
				for i, task := range tasks {
					s.Host().Book(task, model.Allocated, want.Nodes[i])
				}
				booked = append(booked, want.Nodes...)
			}
			return nil
		}))
	})
	require.Positive(t, placed)
	require.Positive(t, refused)
	t.Logf("%d placed, %d refused", placed, refused)
}
