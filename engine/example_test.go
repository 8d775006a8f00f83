package engine_test

import (
	"fmt"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
)

// office builds a cluster of one node with 8 CPUs. Queue build uses 6 of them, and job suite of queue test waits.
func office() (*model.Model, error) {
	cpu := func(cores float64) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000 * cores}}
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n0", Allocatable: cpu(8)})
	for _, name := range []string{"build", "test"} {
		b.Queue(model.QueueSpec{Name: name, Weight: 1, Reclaimable: true})
	}
	job := func(name, queue string, phase model.Phase, tasks int, task model.TaskSpec) {
		b.Job(model.JobSpec{UID: name, Queue: queue, Phase: phase, MinAvailable: 1})
		b.Group(model.GroupSpec{Request: cpu(2)})
		for i := range tasks {
			task.UID, task.Index, task.Preemptable = fmt.Sprintf("%s-%d", name, i), int32(i), true
			b.Task(&task)
		}
	}
	job("compile", "build", model.PhaseRunning, 3, model.TaskSpec{Status: model.Running, Node: 0})
	job("suite", "test", model.PhaseInqueue, 2, model.TaskSpec{Status: model.Pending, Node: model.None})
	return b.Build()
}

// volcano is a policy of plugins with the rules of Volcano.
func volcano() engine.Policy {
	return engine.Policy{Walk: engine.Volcano, Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}},
		{{Plugin: proportion.Plugin{}}},
	}}
}

// A session answers questions about one model by one policy: what queues deserve, whether a task may be allocated, and which tasks it may
// evict.
func Example() {
	m, err := office()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := engine.Open(m, volcano(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range s.Dividers() {
		for _, q := range s.View().Busy() {
			share, _ := d.Queues.Share(q)
			fmt.Printf("%s deserves %g CPUs and has %g\n", m.Queues[q].Name,
				share.Deserved.V[resource.CPU]/1000, share.Allocated.V[resource.CPU]/1000)
		}
	}
	claimant, _ := m.TaskOf("suite-0")
	tasks := []model.TaskID{claimant}
	fmt.Println("may suite-0 be allocated?", s.Allocatable(tasks, policy.InSession, nil, nil))
	candidates, err := s.Reclaim().Candidates(claimant)
	if err != nil {
		fmt.Println(err)
		return
	}
	choice := s.Reclaim().Choose(&policy.Claim{Tasks: tasks, Candidates: candidates}, false)
	for _, victim := range choice.Victims {
		fmt.Println("may evict", m.TaskUID(victim))
	}
	// Output:
	// build deserves 4 CPUs and has 6
	// test deserves 4 CPUs and has 0
	// may suite-0 be allocated? true
	// may evict compile-0
	// may evict compile-1
}

// A change that is only tried is taken back: afterwards every answer is the same as before.
func ExampleSession_Rollback() {
	m, err := office()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := engine.Open(m, volcano(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	build, _ := m.Queue("build")
	running, _ := m.TaskOf("compile-2")
	used := func(when string) {
		share, _ := s.Dividers()[0].Queues.Share(build)
		fmt.Printf("%s, build has %g CPUs\n", when, share.Allocated.V[resource.CPU]/1000)
	}
	used("now")
	mark := s.Mark()
	if err := s.Deallocate(running, model.Releasing); err != nil {
		fmt.Println(err)
		return
	}
	used("without compile-2")
	if err := s.Rollback(mark); err != nil {
		fmt.Println(err)
		return
	}
	used("afterwards")
	// Output:
	// now, build has 6 CPUs
	// without compile-2, build has 4 CPUs
	// afterwards, build has 6 CPUs
}

// Explain says for a waiting job which check holds it back.
func Example_explain() {
	m, err := office()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := engine.Open(m, volcano(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = explain.Jobs(s, s.Waiting(), false, func(e *explain.Explanation) error {
		fmt.Println(m.Jobs.At(e.Job).UID, "waits with", e.Waiting, "tasks")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: suite waits with 2 tasks
}
