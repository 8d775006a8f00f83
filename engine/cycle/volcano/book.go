package volcano

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// book is the second account of nodes that Volcano keeps, by which it counts pods and scores nodes: the pods that were on a node as the
// session opened, those that are leaving included, and those placed since. An evicted pod goes at once, and does not come back if its
// eviction is undone.
type book struct {
	run *run
	// on says where the book has a task.
	on   map[model.TaskID]model.NodeID
	sums []resource.Row
	// cpu and memory are what stands on each node for requests that containers do not state.
	cpu, memory []float64
	pods        []int32
	fixed       bool
}

// openBook returns the book with what others use. Without the plugin predicates nobody keeps it: it stays as it was when the session
// opened.
func openBook(r *run) *book {
	count := len(r.view.Nodes)
	b := &book{
		run: r, on: map[model.TaskID]model.NodeID{}, fixed: !r.loaded(predicates), sums: resource.NewAccounts(count, r.view.Dims.Len()),
		cpu: make([]float64, count), memory: make([]float64, count), pods: make([]int32, count),
	}
	pods, counted := r.view.Dims.Index(podsName)
	for _, n := range r.order {
		others := r.view.Nodes[n].UsedByOthers
		b.sums[n].Add(others)
		if counted {
			b.pods[n] = int32(others.V[pods])
		}
	}
	return b
}

func (b *book) add(t model.TaskID, n model.NodeID) {
	b.on[t] = n
	b.sums[n].Add(b.run.view.Request(t))
	b.pods[n]++
	b.state(t, n, 1)
}

// state adds or takes off what stands for requests that a task does not state.
func (b *book) state(t model.TaskID, n model.NodeID, sign float64) {
	unstated := b.run.view.UnstatedOf(t)
	b.cpu[n] += sign * float64(unstated.CPU) * policy.UnstatedCPU
	b.memory[n] += sign * float64(unstated.Memory) * policy.UnstatedMemory
}

// Requested returns what the pods on a node ask for.
func (b *book) Requested(n model.NodeID, dimension int) float64 { return b.sums[n].V[dimension] }

// Stated returns what the pods on a node ask for, with what stands for requests that they do not state.
func (b *book) Stated(n model.NodeID) (cpu, memory float64) {
	return b.sums[n].V[resource.CPU] + b.cpu[n], b.sums[n].V[resource.Memory] + b.memory[n]
}

func (b *book) place(t model.TaskID, n model.NodeID) {
	if !b.fixed {
		b.add(t, n)
	}
}

func (b *book) remove(t model.TaskID) {
	n, there := b.on[t]
	if !there || b.fixed {
		return
	}
	delete(b.on, t)
	b.sums[n].Sub(b.run.view.Request(t))
	b.pods[n]--
	b.state(t, n, -1)
}

// full reports whether a node has as many pods as it takes.
func (b *book) full(n model.NodeID) bool {
	d, known := b.run.view.Dims.Index(podsName)
	most := b.run.view.Nodes[n].Allocatable
	return known && most.Has.Has(d) && float64(b.pods[n]) >= most.V[d]
}

const podsName = "pods"
