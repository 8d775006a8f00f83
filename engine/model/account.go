package model

import "github.com/apportion/apportion/engine/resource"

// newAccounts returns accounts of the given jobs with no task in them. All rows share one piece of memory.
func newAccounts(jobs []Job, groups, width int) []Account {
	return new(accountStore).open(jobs, groups, width)
}

// put books n tasks of one status.
func (a *Account) put(request resource.Row, status Status, gate Gate, group int, n int32, bestEffort bool) {
	a.Tasks[status] += n
	a.GroupTasks[group][status] += n
	addTimes(&a.Total, request, n)
	a.hold(request, status, gate, group, n, bestEffort)
}

// reset makes a an account of no tasks.
func (a *Account) reset() {
	for _, row := range [...]*resource.Row{&a.Allocated, &a.Pending, &a.Gated, &a.Total} {
		row.Clear(resource.Base)
	}
	clear(a.Tasks[:])
	a.PendingBestEffort = 0
	clear(a.GroupTasks)
	clear(a.GroupPendingBestEffort)
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

// Move rebooks one task from one status to another. Amounts are subtracted and added, as Volcano's UpdateTaskStatus does, and dimensions
// that were present stay so.
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

// Rebook forms the account of a job anew from the statuses given, which are those of all tasks: the account is then, to the last bit and
// dimension, that of a model built with these statuses. Moving tasks one by one leaves rounding errors and dimensions behind.
func (m *Model) Rebook(a *Account, j JobID, status []Status) {
	a.reset()
	job := &m.Jobs[j]
	for t := job.FirstTask; t < job.EndTask; t++ {
		task := &m.Tasks[t]
		request := m.Requests[task.Request]
		a.put(request, status[t], task.Gate, int(task.Group-job.FirstGroup), 1, m.BestEffort(request))
	}
	m.bookCounts(a, job)
}

// bookCounts adds the tasks of a job that are given as counts to its account.
func (m *Model) bookCounts(a *Account, job *Job) {
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := &m.Groups[g]
		request := m.Requests[group.Request]
		for _, c := range m.Counts[group.FirstCount:group.EndCount] {
			a.put(request, c.Status, c.Gate, int(g-job.FirstGroup), c.N, m.BestEffort(request))
		}
	}
}

// CloneAccounts returns copies that share nothing with the given ones.
func CloneAccounts(from []Account, jobs []Job, groups, width int) []Account {
	to := newAccounts(jobs, groups, width)
	for i := range to {
		a, b := &to[i], &from[i]
		a.Allocated.CopyFrom(b.Allocated)
		a.Pending.CopyFrom(b.Pending)
		a.Gated.CopyFrom(b.Gated)
		a.Total.CopyFrom(b.Total)
		a.Tasks, a.PendingBestEffort = b.Tasks, b.PendingBestEffort
		copy(a.GroupTasks, b.GroupTasks)
		copy(a.GroupPendingBestEffort, b.GroupPendingBestEffort)
	}
	return to
}

func addTimes(sum *resource.Row, request resource.Row, n int32) {
	if n == 1 {
		sum.Add(request)
		return
	}
	sum.AddTimes(request, float64(n))
}
