package model

import (
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// widened returns a copy of a model whose rows have more dimensions.
func (m *Model) widened(dims resource.Dimensions) *Model {
	at := make([]int, m.Dims.Len())
	for d := range at {
		at[d], _ = dims.Index(m.Dims.Name(d))
	}
	wider := func(r resource.Row) resource.Row {
		if r.Absent() {
			return r
		}
		w := resource.NewRow(dims.Len())
		for b := r.Has; b != 0; b = b.Rest() {
			w.Set(at[b.First()], r.V[b.First()])
		}
		return w
	}
	w := *m
	w.Dims, w.Total, w.Memory = dims, wider(m.Total), m.Memory.wider(at, dims.Len())
	w.Nodes, w.Queues, w.Requests = slices.Clone(m.Nodes), slices.Clone(m.Queues), slices.Clone(m.Requests)
	for i := range w.Nodes {
		n := &w.Nodes[i]
		n.Allocatable, n.UsedByOthers = wider(n.Allocatable), wider(n.UsedByOthers)
		n.reserved = widerReservations(n.Reservations(), wider)
	}
	for i := range w.Queues {
		q := &w.Queues[i]
		q.Capability, q.Guarantee, q.Deserved = wider(q.Capability), wider(q.Guarantee), wider(q.Deserved)
		q.NodeLimits = q.NodeLimits.widened(wider)
		q.Memory = q.Memory.wider(at, dims.Len())
	}
	for i := range w.Requests {
		w.Requests[i] = wider(w.Requests[i])
	}
	jobs, accounts := make([]Job, m.Jobs.Len()), make([]Account, m.Jobs.Len())
	for j := range jobs {
		jobs[j], accounts[j] = *m.Jobs.At(JobID(j)), *m.Accounts.At(JobID(j))
		jobs[j].MinResources = wider(jobs[j].MinResources)
		a := &accounts[j]
		a.Allocated, a.Pending, a.Gated, a.Total = wider(a.Allocated), wider(a.Pending), wider(a.Gated), wider(a.Total)
	}
	w.sums = make([]*QueueSum, len(m.sums))
	for q, sum := range m.sums {
		wide := newSum(dims.Len())
		wide.Jobs, wide.Moving = sum.Jobs, sum.Moving
		for i, row := range sum.rows() {
			*wide.rows()[i] = wider(*row)
			for d, to := range at {
				wide.named[i*dims.Len()+to] = sum.named[i*len(at)+d]
			}
		}
		w.sums[q] = wide
	}
	w.grain.bits, w.grain.total = make([]uint64, dims.Len()), make([]float64, dims.Len())
	for d, to := range at {
		w.grain.bits[to], w.grain.total[to] = m.grain.bits[d], m.grain.total[d]
	}
	w.Jobs, w.Accounts = Table[JobID, Job]{}, Table[JobID, Account]{}
	w.Jobs.cut(jobs)
	w.Accounts.cut(accounts)
	// Requests are found by their rows.
	all := sorted{}
	all.build(0, len(w.Requests), requestTexts{&w}, nil, func(int32, int32) {})
	w.requestIndex = runs{[]sorted{all}}
	return &w
}
