package model_test

import (
	"errors"
	"fmt"

	"github.com/apportion/apportion/engine/model"
)

// A builder takes nodes and queues, then jobs with their groups and tasks, and returns a model that never changes.
func Example() {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "nvidia.com/gpu"})
	b.Node(model.NodeSpec{Name: "n0", Allocatable: &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{64000, 8000}}})
	b.Queue(model.QueueSpec{Name: "research", Weight: 1, Reclaimable: true})
	b.Job(model.JobSpec{UID: "train", Queue: "research", Phase: model.PhaseRunning, MinAvailable: 2})
	b.Group(model.GroupSpec{Role: "worker", Request: &model.Amounts{Dimension: []uint32{1}, Amount: []float64{2000}}})
	b.Task(&model.TaskSpec{UID: "train-0", Status: model.Running, Node: 0})
	b.Task(&model.TaskSpec{UID: "train-1", Status: model.Pending, Node: model.None, Index: 1})
	b.Count(model.Pending, model.GateNone, 2)
	m, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	train, _ := m.Job("train")
	gpu, _ := m.Dims.Index("nvidia.com/gpu")
	account := m.Accounts.At(train)
	fmt.Println(m.Jobs.At(train).UID, "has", account.AllTasks(), "tasks, of which", account.Ready(), "runs")
	fmt.Println("it has", account.Allocated.V[gpu]/1000, "GPUs and waits for", account.Pending.V[gpu]/1000)
	// Output:
	// train has 4 tasks, of which 1 runs
	// it has 2 GPUs and waits for 6
}

// Build returns every violation at once, each with the path of its field.
func ExampleBuilder_Build() {
	b := model.NewBuilder(0)
	b.Queue(model.QueueSpec{Name: "research"})
	b.Job(model.JobSpec{UID: "train", Queue: "reserch"})
	b.Job(model.JobSpec{UID: "train", Queue: "research"})
	_, err := b.Build()
	if faults, ok := errors.AsType[*model.Error](err); ok {
		for _, v := range faults.Violations {
			fmt.Println(v.Path, v.Detail)
		}
	}
	// Output:
	// jobs[0].queue no queue "reserch"
	// jobs[1].uid job "train" is jobs[0] already
}

// Change returns a model that differs from another, which stays as it is.
func ExampleModel_Change() {
	b := model.NewBuilder(0)
	b.Node(model.NodeSpec{Name: "n0"})
	before, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	change := before.Change(nil)
	change.Node(model.NodeSpec{Name: "n1"})
	change.RemoveNode("n0")
	after, err := change.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range []*model.Model{before, after} {
		_, n0 := m.Node("n0")
		_, n1 := m.Node("n1")
		fmt.Println(n0, n1)
	}
	// Output:
	// true false
	// false true
}
