package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
)

// podWorld is a small cluster with rules on other pods, and a job that waits in it. Room never decides.
type podWorld struct {
	rules   *model.PodRules
	domains [][]uint32
	on      []podOn
	waiting []uint32
}

// podOn is a pod of a class on a node; leaving: it is being deleted.
type podOn struct {
	class, node int
	leaving     bool
}

func drawPodWorld(t *rapid.T) *podWorld {
	w := &podWorld{rules: &model.PodRules{Topologies: []model.Topology{{Key: "node", Node: true}, {Key: "zone"}}}}
	small := func(label string, most int) uint32 { return uint32(rapid.IntRange(0, most).Draw(t, label)) }
	for range 3 {
		c := model.PodClass{AffinitySelection: small("affinity", 2)}
		for s := range uint32(3) {
			if small("selected", 1) == 1 {
				c.Selections = append(c.Selections, s)
			}
		}
		switch small("rule", 5) {
		case 0:
			c.Affinity = []uint32{small("near", 1)}
		case 1:
			c.AntiAffinities = []model.PodAntiAffinity{{Selection: small("apart", 2), Topology: small("by", 1)}}
		case 2, 3:
			c.Spreads = []model.PodSpread{{
				Selection: small("spread", 2), Topology: small("over", 1), MaxSkew: 1 + small("skew", 1), MinDomains: small("domains", 3),
			}}
		case 4:
			c.Ports = []model.HostPort{{Port: 1 + small("port", 1), Protocol: "TCP", Address: rapid.SampledFrom([]string{model.EveryAddress, "10.0.0.1", "10.0.0.2"}).Draw(t, "address")}}
		}
		w.rules.Classes = append(w.rules.Classes, c)
	}
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	for range nodes {
		w.domains = append(w.domains, []uint32{0, small("zone", 2)})
	}
	for range rapid.IntRange(0, 4).Draw(t, "pods") {
		w.on = append(w.on, podOn{int(small("class", 3)), rapid.IntRange(0, nodes-1).Draw(t, "node"), rapid.Bool().Draw(t, "leaving")})
	}
	for range rapid.IntRange(1, 4).Draw(t, "tasks") {
		w.waiting = append(w.waiting, small("class of a task", 3))
	}
	return w
}

// session opens the world. Half of the pods are tasks of a job, the others are not.
func (w *podWorld) session(t require.TestingT) *engine.Session {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Pods(w.rules)
	for n := range w.domains {
		pods := &model.NodePods{Domains: w.domains[n]}
		for i, p := range w.on {
			switch {
			case p.node != n || i%2 == 0 || p.class == 0:
			case p.leaving:
				pods.Leaving = append(pods.Leaving, uint32(p.class))
			default:
				pods.Others = append(pods.Others, uint32(p.class))
			}
		}
		b.Node(model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1e6}}, Pods: pods})
	}
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	task := func(name string, class uint32, status model.Status, node int) {
		b.Group(model.GroupSpec{Role: name, PodClass: class})
		b.Task(&model.TaskSpec{Name: name, Status: status, Node: model.NodeID(node), Priority: 1, Preemptable: true})
	}
	b.Job(model.JobSpec{Name: "running", Queue: "q", Phase: model.PhaseRunning})
	for i, p := range w.on {
		if i%2 == 0 {
			status := model.Running
			if p.leaving {
				status = model.Releasing
			}
			task(fmt.Sprint("r", i), uint32(p.class), status, p.node)
		}
	}
	b.Job(model.JobSpec{Name: "waiting", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: uint32(len(w.waiting))})
	for i, class := range w.waiting {
		task(fmt.Sprint("w", i), class, model.Pending, model.None)
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	return s
}

func (w *podWorld) domain(topology uint32, n int) uint32 {
	if topology == 0 {
		return uint32(n) + 1
	}
	return w.domains[n][topology]
}

// in counts the pods in a domain that a test selects; spreads do not count those that are leaving.
func (w *podWorld) in(topology, domain uint32, is func(podOn) bool) int {
	n := 0
	for _, p := range w.on {
		if w.domain(topology, p.node) == domain && is(p) {
			n++
		}
	}
	return n
}

func (w *podWorld) class(n int) model.PodClass {
	if n == 0 {
		return model.PodClass{}
	}
	return w.rules.Classes[n-1]
}

// fits says plainly whether a pod of a class may be placed on a node.
func (w *podWorld) fits(class, n int) bool {
	c := w.class(class)
	selected := func(s uint32) func(podOn) bool {
		return func(p podOn) bool { of := w.class(p.class); return slices.Contains(of.Selections, s) }
	}
	for _, p := range w.on {
		of := w.class(p.class)
		for _, a := range c.Ports {
			if p.node == n && slices.ContainsFunc(of.Ports, a.Conflicts) {
				return false
			}
		}
		for _, a := range of.AntiAffinities {
			d := w.domain(a.Topology, p.node)
			if d != 0 && d == w.domain(a.Topology, n) && slices.Contains(c.Selections, a.Selection) {
				return false
			}
		}
	}
	for _, a := range c.AntiAffinities {
		if d := w.domain(a.Topology, n); d != 0 && w.in(a.Topology, d, selected(a.Selection)) > 0 {
			return false
		}
	}
	for _, topology := range c.Affinity {
		d := w.domain(topology, n)
		if d == 0 {
			return false
		}
		anywhere := slices.ContainsFunc(w.on, func(p podOn) bool {
			return w.domain(topology, p.node) != 0 && selected(c.AffinitySelection)(p)
		})
		if w.in(topology, d, selected(c.AffinitySelection)) == 0 && (anywhere || !slices.Contains(c.Selections, c.AffinitySelection)) {
			return false
		}
	}
	for _, s := range c.Spreads {
		stays := func(p podOn) bool { return !p.leaving && selected(s.Selection)(p) }
		counts := map[uint32]int{}
		for other := range w.domains {
			if d := w.domain(s.Topology, other); d != 0 {
				counts[d] = w.in(s.Topology, d, stays)
			}
		}
		least := -1
		for _, count := range counts {
			if least < 0 || count < least {
				least = count
			}
		}
		if len(counts) < int(max(s.MinDomains, 1)) {
			least = 0
		}
		d, own := w.domain(s.Topology, n), 0
		if slices.Contains(c.Selections, s.Selection) {
			own = 1
		}
		if d == 0 || counts[d]+own-least > int(s.MaxSkew) {
			return false
		}
	}
	return true
}

// together reports whether the tasks that are left can be placed one after the other.
func (w *podWorld) together(left []uint32) bool {
	if len(left) == 0 {
		return true
	}
	for i, class := range left {
		for n := range w.domains {
			if !w.fits(int(class), n) {
				continue
			}
			w.on = append(w.on, podOn{class: int(class), node: n})
			placed := w.together(slices.Delete(slices.Clone(left), i, i+1))
			w.on = w.on[:len(w.on)-1]
			if placed {
				return true
			}
		}
	}
	return false
}

func waitingTasks(s *engine.Session) (list []model.TaskID) {
	v := s.View()
	for t := range model.TaskID(v.Tasks.Len()) {
		if v.Status(t) == model.Pending {
			list = append(list, t)
		}
	}
	return list
}

// Feasible nodes, one by one and for all tasks together, are those of a plain twin, also after tasks were placed and taken off again.
func TestRulesOnOtherPodsAreJudgedAsByAPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawPodWorld(t)
		s := w.session(t)
		tasks := waitingTasks(s)
		same := func() {
			for i, task := range tasks {
				for n := range w.domains {
					require.Equal(t, w.fits(int(w.waiting[i]), n), s.Nodes().Fits(task, model.NodeID(n), nil), "task %d on node %d", i, n)
				}
			}
		}
		same()
		if len(tasks) > 1 {
			require.NoError(t, s.Try(func() error {
				s.Host().Book(tasks[0], model.Allocated, 0)
				w.on = append(w.on, podOn{class: int(w.waiting[0])})
				tasks, w.waiting = tasks[1:], w.waiting[1:]
				same()
				return nil
			}))
			undone := errors.New("undone")
			require.ErrorIs(t, s.Try(func() error {
				s.Host().Book(tasks[0], model.Allocated, model.NodeID(len(w.domains)-1))
				return undone
			}), undone)
			same()
			if rapid.Bool().Draw(t, "taken off") {
				s.Host().Unbook(waitingFirst(s), model.Pending)
				w.on = w.on[:len(w.on)-1]
				same()
			}
		}
		placement, err := place.Tasks(s, tasks, s.View().NodeOrder)
		require.NoError(t, err)
		require.NotEqual(t, place.Unknown, placement.Outcome)
		require.Equal(t, w.together(w.waiting), placement.Outcome == place.Placed)
		same()
	})
}

// waitingFirst is the first task of the job that waits: the one that was booked.
func waitingFirst(s *engine.Session) model.TaskID {
	v := s.View()
	for _, j := range v.JobOrder {
		if v.Jobs.At(j).Name == "waiting" {
			return v.Jobs.At(j).FirstTask
		}
	}
	return model.None
}

// keptOff is a cluster of two nodes on which pods of the selection 0 run that keep pods of the selection 1 off their node; w0 is such a pod.
func keptOff(t *testing.T, high int32) (*engine.Session, model.JobID) {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Pods(&model.PodRules{
		Topologies: []model.Topology{{Key: "node", Node: true}},
		Classes: []model.PodClass{
			{Selections: []uint32{0}, AntiAffinities: []model.PodAntiAffinity{{Selection: 1}}}, {Selections: []uint32{1}},
		},
	})
	for _, name := range []string{"n0", "n1"} {
		b.Node(model.NodeSpec{Name: name, Allocatable: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{8000}}})
	}
	b.Queue(model.QueueSpec{Name: "q", Weight: 1, Reclaimable: true})
	request := &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000}}
	for i, class := range []uint32{1, 1, 2} {
		job := model.JobSpec{Name: fmt.Sprint("j", i), Queue: "q", Phase: model.PhaseRunning, Priority: int32(i)}
		task := model.TaskSpec{Name: fmt.Sprint("t", i), Status: model.Running, Node: model.NodeID(i), Priority: 1, Preemptable: true}
		if class == 2 {
			job.MinAvailable = 1
			job.Phase, job.Priority, task.Status, task.Node = model.PhaseInqueue, high, model.Pending, model.None
		}
		b.Job(job)
		b.Group(model.GroupSpec{PodClass: class, Request: request})
		b.Task(&task)
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}}}}, nil)
	require.NoError(t, err)
	j, found := m.Job("j2")
	require.True(t, found)
	return s, j
}

func TestAPlanEvictsTheTaskThatKeepsAnotherOffItsNode(t *testing.T) {
	s, j := keptOff(t, 10)
	made, err := plan.For(s, &plan.Question{Job: j, Means: plan.PlaceOnly})
	require.NoError(t, err)
	require.Equal(t, plan.None, made.Outcome)
	require.Equal(t, []place.NodeCount{{N: 2, Code: policy.PodAntiAffinityOfOthers, Free: 2}}, made.Miss.NodeCounts)

	made, err = plan.For(s, &plan.Question{Job: j, Means: plan.ByPreempt})
	require.NoError(t, err)
	require.Equal(t, plan.Made, made.Outcome, "%+v", made.Miss)
	require.True(t, made.Least)
	require.Len(t, made.Victims, 1)
	require.Equal(t, made.Victims[0].Node, made.Nodes[0])
	require.Equal(t, "t0", s.View().TaskName(made.Victims[0].Task), "the job of lower priority gives way")
}
