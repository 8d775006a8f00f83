package volcano

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// book is the second account of nodes that Volcano keeps, by which it counts pods and scores nodes: the pods that were on a node as the
// session opened, those that are leaving included, and those placed since. An evicted pod goes at once, and does not come back if its
// eviction is undone.
type book struct {
	run *run
	// on says where the book has a task.
	on    map[model.TaskID]model.NodeID
	sums  []resource.Row
	pods  []int32
	fixed bool
}

// openBook returns the book with what others use. Without the plugin predicates nobody keeps it: it stays as it was when the session opened.
func openBook(r *run) *book {
	b := &book{run: r, on: map[model.TaskID]model.NodeID{}, sums: resource.NewAccounts(len(r.view.Nodes), r.view.Dims.Len()), pods: make([]int32, len(r.view.Nodes))}
	b.fixed = !r.loaded(predicates)
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
}

// full reports whether a node has as many pods as it takes.
func (b *book) full(n model.NodeID) bool {
	d, known := b.run.view.Dims.Index(podsName)
	most := b.run.view.Nodes[n].Allocatable
	return known && most.Has.Has(d) && float64(b.pods[n]) >= most.V[d]
}

const podsName = "pods"
