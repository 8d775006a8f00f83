package enginetest

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
)

// Crowd is a session on a few nodes with two queues, and jobs of which some run and some wait with tasks of several kinds.
func Crowd(t *rapid.T, plugins ...engine.Entry) *engine.Session {
	amounts := func(cpu, gpu int) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{float64(1000 * cpu), float64(1000 * gpu)}}
	}
	small := rapid.IntRange(0, 3)
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	var set []uint32
	for n := range nodes {
		spec := model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: amounts(rapid.IntRange(1, 9).Draw(t, "cpu"), small.Draw(t, "gpu"))}
		if small.Draw(t, "cordoned") == 3 {
			spec.Unschedulable = &model.Unschedulable{}
		}
		b.Node(spec)
		if rapid.Bool().Draw(t, "in the set") {
			set = append(set, uint32(n))
		}
	}
	b.NodeSet(model.NodeSetSpec{Name: "set", Nodes: set})
	for q := range 2 {
		b.Queue(model.QueueSpec{Name: fmt.Sprint("q", q), Weight: uint32(1 + small.Draw(t, "weight"))})
	}
	for j := range rapid.IntRange(1, 7).Draw(t, "jobs") {
		b.Job(model.JobSpec{
			UID: fmt.Sprint("j", j), Queue: fmt.Sprint("q", small.Draw(t, "queue")%2), Priority: int32(small.Draw(t, "priority")),
			Phase: model.Phase(rapid.IntRange(0, 2).Draw(t, "phase")), MinAvailable: uint32(small.Draw(t, "minimum")),
		})
		for g := range rapid.IntRange(1, 2).Draw(t, "groups") {
			spec := model.GroupSpec{Role: fmt.Sprint(g), Request: amounts(small.Draw(t, "cpu asked"), small.Draw(t, "gpu asked")/2)}
			if small.Draw(t, "restricted") == 3 {
				spec.NodeSet = "set"
			}
			b.Group(spec)
			for k := range rapid.IntRange(0, 3).Draw(t, "tasks") {
				task := model.TaskSpec{UID: fmt.Sprint(j, "-", g, "-", k), Node: model.None, Index: -1}
				if small.Draw(t, "runs") == 3 {
					task.Node, task.Status = model.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "node")), model.Running
				}
				b.Task(&task)
			}
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano, Tiers: []engine.Tier{plugins}}, nil)
	require.NoError(t, err)
	return s
}

// CrowdedCluster is a full node with running jobs, and waiting jobs, in three queues, two of them below a fourth. Tasks ask for cores, for
// devices or for both.
func CrowdedCluster(t *rapid.T) *model.Model {
	cpu := func(x int) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{float64(1000 * x)}}
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	queues := []string{"a", "b", "c"}
	parents := map[string]string{"a": "above", "b": "above", "c": "root"}
	b.Queue(model.QueueSpec{Name: "root", Weight: 1})
	deserved := func() *model.Amounts { return cpu(rapid.IntRange(1, 8).Draw(t, "deserved")) }
	b.Queue(model.QueueSpec{Name: "above", Parent: "root", Weight: 1, Deserved: deserved(), Reclaimable: true})
	for _, name := range queues {
		b.Queue(model.QueueSpec{
			Name: name, Parent: parents[name], Weight: rapid.Uint32Range(1, 3).Draw(t, "weight"), Deserved: deserved(), Reclaimable: true,
		})
	}
	request := func() *model.Amounts {
		amounts := &model.Amounts{}
		asked := rapid.IntRange(1, 3).Draw(t, "asked")
		for d := range uint32(2) {
			if asked>>d&1 == 1 {
				amounts.Dimension = append(amounts.Dimension, d)
				amounts.Amount = append(amounts.Amount, float64(1000*rapid.IntRange(1, 2).Draw(t, "request")))
			}
		}
		return amounts
	}
	b.Node(model.NodeSpec{Name: "n", Allocatable: &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{12_000, 12_000}}})
	for i := range rapid.IntRange(6, 14).Draw(t, "jobs") {
		runs := i < 4
		spec := model.JobSpec{
			UID: fmt.Sprint("j", i), Queue: rapid.SampledFrom(queues).Draw(t, "queue"), Phase: model.PhaseInqueue,
			MinAvailable: rapid.Uint32Range(0, 2).Draw(t, "minimum"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		}
		task := model.TaskSpec{Node: model.None, Index: -1, Preemptable: true}
		if runs {
			spec.Phase, task.Node, task.Status = model.PhaseRunning, 0, model.Running
		}
		b.Job(spec)
		for k := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			b.Group(model.GroupSpec{Role: fmt.Sprint(k), Request: request()})
			task.UID = fmt.Sprint("j", i, "-", k)
			b.Task(&task)
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}
