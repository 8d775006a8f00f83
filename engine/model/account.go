package model

import (
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// put books n tasks of one status.
func (a *Account) put(request resource.Row, status Status, gate Gate, group int, n int32, bestEffort bool) {
	a.Tasks[status] += n
	a.GroupTasks[group][status] += n
	addTimes(&a.Total, request, n)
	a.hold(request, status, gate, group, n, bestEffort)
}

func (a *Account) hold(request resource.Row, status Status, gate Gate, group int, n int32, bestEffort bool) {
	switch {
	case status.Holds():
		addTimes(&a.Allocated, request, n)
	case status == Pending:
		addTimes(&a.Pending, request, n)
		if gate == GateOther {
			addTimes(&a.Gated, request, n)
		}
		if bestEffort {
			a.PendingBestEffort += n
			a.GroupPendingBestEffort[group] += n
		}
	}
}

// Move rebooks one task from one status to another. It subtracts and adds amounts, as Volcano's UpdateTaskStatus does; dimensions stay
// present.
func (a *Account) Move(request resource.Row, from, to Status, gate Gate, group int, bestEffort bool) {
	a.Tasks[from]--
	a.GroupTasks[group][from]--
	switch {
	case from.Holds():
		a.Allocated.SubWithin(request)
	case from == Pending:
		a.Pending.SubWithin(request)
		if gate == GateOther {
			a.Gated.SubWithin(request)
		}
		if bestEffort {
			a.PendingBestEffort--
			a.GroupPendingBestEffort[group]--
		}
	}
	a.Tasks[to]++
	a.GroupTasks[group][to]++
	a.hold(request, to, gate, group, 1, bestEffort)
}

// Clone returns a copy that shares nothing with a.
func (a *Account) Clone() *Account {
	b := *a
	b.Allocated, b.Pending, b.Gated, b.Total = a.Allocated.Clone(), a.Pending.Clone(), a.Gated.Clone(), a.Total.Clone()
	b.GroupTasks, b.GroupPendingBestEffort = slices.Clone(a.GroupTasks), slices.Clone(a.GroupPendingBestEffort)
	return &b
}

func addTimes(sum *resource.Row, request resource.Row, n int32) {
	if n == 1 {
		sum.Add(request)
		return
	}
	sum.AddTimes(request, float64(n))
}
