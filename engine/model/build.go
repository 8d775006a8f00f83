package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

type bound bool

const (
	// limited amounts are finite.
	limited bound = false
	// unlimited amounts may be +Inf.
	unlimited bound = true
)

// row returns the dense form of amounts, absent for nil. It records violations under path+field, or under the newest job if path is empty.
func (b *Builder) row(a *Amounts, may bound, path, field string) resource.Row {
	return b.rowAt(a, may, func(f string) string {
		switch {
		case f == "":
			f = path
		case path == "":
			f = b.jobPath(f)
		default:
			f = path + f
		}
		return f
	}, field)
}

func (b *Builder) rowAt(a *Amounts, may bound, path func(string) string, field string) resource.Row {
	if a == nil {
		return resource.Row{}
	}
	row := b.slab.row(b.width, 0)
	b.fill(&row, a, may, path, field)
	return row
}

// account returns the row of amounts with cpu and memory present; nil is zeros.
func (b *Builder) account(a *Amounts, path func(string) string, field string) resource.Row {
	row := b.slab.row(b.width, 0)
	if a != nil {
		b.fill(&row, a, limited, path, field)
	}
	row.Has |= resource.Base
	return row
}

// fill clears row and sets it to the amounts.
func (b *Builder) fill(row *resource.Row, a *Amounts, may bound, path func(string) string, field string) {
	row.Clear(0)
	if len(a.Dimension) != len(a.Amount) {
		b.faults.Add(path(field), "%d dimensions but %d amounts", len(a.Dimension), len(a.Amount))
		return
	}
	for i, given := range a.Dimension {
		x := a.Amount[i]
		if int64(given) >= int64(len(b.index)) {
			if b.undimensioned {
				continue
			}
			b.faults.Add(path(field)+".dimensions", "no dimension %d, there are %d", given, b.known)
			continue
		}
		d := b.index[given]
		switch {
		case row.Has.Has(d):
			b.faults.Add(path(field)+".dimensions", "dimension %q is given twice", b.m.Dims.Name(d))
		case math.IsNaN(x):
			b.faults.Add(path(field)+".amounts", "%s is not a number", b.m.Dims.Name(d))
		case x < 0:
			b.faults.Add(path(field)+".amounts", "%s is negative: %g", b.m.Dims.Name(d), x)
		case math.IsInf(x, 1) && may == limited:
			b.faults.Add(path(field)+".amounts", "%s is unlimited, which only capability may be", b.m.Dims.Name(d))
		default:
			// Adding 0 turns a negative zero into zero.
			row.Set(d, x+0)
		}
	}
}

// request returns the position in Requests of a task's request, the same for equal requests.
func (b *Builder) request(a *Amounts, path func(string) string) int32 {
	if a == nil || len(a.Dimension) == 0 && len(a.Amount) == 0 {
		return 0
	}
	row := &b.scratch
	b.fill(row, a, limited, path, "request")
	row.Has |= resource.Base
	b.key = requestKey(b.key[:0], *row)
	if id, ok := b.requestIDs[string(b.key)]; ok {
		return id
	}
	key := string(b.key)
	id := int32(len(b.m.Requests))
	if known, ok := b.knownRequest(); ok {
		id = known
	} else {
		b.m.Requests = append(b.m.Requests, b.slab.clone(*row))
	}
	b.requestIDs[key] = id
	return id
}

func (b *Builder) closeGroup() {
	if n := len(b.groups); n > 0 && b.group >= 0 {
		b.groups[n-1].EndCount = int32(len(b.counts))
	}
}

func (b *Builder) closeJob() {
	if b.job < 0 || b.tally.on {
		return
	}
	b.closeGroup()
	job := &b.jobs[len(b.jobs)-1]
	job.EndGroup, job.EndTask = GroupID(len(b.groups)), TaskID(len(b.tasks))
}

// Build returns the model, or an *Error with every violation. The builder must not be used afterwards.
func (b *Builder) Build() (*Model, error) { return b.build(nil, oneByOne) }

// oneByOne calls f with 0 … n-1.
func oneByOne(n int, f func(int)) {
	for i := range n {
		f(i)
	}
}

func (b *Builder) build(stop func() bool, each func(n int, f func(int))) (*Model, error) {
	b.closeJob()
	if b.change != nil {
		return b.changed(each)
	}
	b.checkPodSets()
	b.cut()
	work := b.rest()
	done := make([]bool, len(work))
	each(len(work), func(i int) { done[i] = work[i](stop) })
	if slices.Contains(done, false) || stop != nil && stop() {
		return nil, ErrStopped
	}
	if b.tally.on && (b.faults.Total > 0 || !b.m.exact || b.tally.repeated) {
		return nil, errTally
	}
	if err := b.faults.OrNil(); err != nil {
		return nil, err
	}
	if !b.m.exact && !b.sumAll(stop) {
		return nil, ErrStopped
	}
	return &b.m, nil
}

// rest returns the remaining steps, the longest first. They also run for a faulty model, to find more faults.
func (b *Builder) rest() []func(stop func() bool) bool {
	switch {
	case b.faults.Total > 0:
		return []func(func() bool) bool{b.indexAll}
	case b.tally.on:
		return []func(func() bool) bool{b.orderAll, b.bookAll, b.findClashes, b.indexAll}
	}
	return []func(func() bool) bool{b.indexAll, b.bookAll, b.orderAll}
}

// sumAll forms the sums of all queues, each in the order of the uids of its jobs.
func (b *Builder) sumAll(stop func() bool) bool {
	m := &b.m
	m.sums = b.sums.open(len(m.Queues), b.width)
	s := m.summing()
	for i, j := range m.JobOrder {
		if pollEach(stop, i) {
			return false
		}
		job := m.Jobs.At(j)
		s.add(m.sums[job.Queue], job, m.Accounts.At(j), 1)
	}
	return true
}

// cut cuts what was collected into the pages of the model.
func (b *Builder) cut() {
	m := &b.m
	b.countExtras()
	m.rareBytes = b.rareBytes
	m.Jobs.cut(b.jobs)
	m.Groups.cut(b.groups, largePage)
	m.Counts.cut(b.counts, largePage)
	m.Tasks.cut(b.tasks, largePage)
	m.Details.cut(b.details, largePage)
	m.rares.cut(b.rares, largePage)
	m.text.cut(b.written)
	if b.tally.on {
		m.Accounts.cut(b.store.accounts[:len(b.jobs)])
		return
	}
	m.Accounts.cut(b.store.open(b.jobs, len(b.groups), b.width))
}

// The functions below run concurrently and independently. Each returns false only if stop returned true.

// indexAll indexes jobs, tasks and requests, and records those whose uid is taken.
func (b *Builder) indexAll(stop func() bool) bool {
	m := &b.m
	m.jobIndex.one().build(0, len(b.jobs), jobTexts{m}, stop, func(earlier, later int32) {
		b.faults.Add(fmt.Sprintf("jobs[%d].uid", later), "job %q is jobs[%d] already", b.jobs[later].UID, earlier)
	})
	if b.tally.on {
		m.taskIndex = runs{}
		m.Tallied = b.tally.n
	} else {
		b.indexAllTasks(stop)
	}
	m.requestIndex.one().build(0, len(m.Requests), requestTexts{m}, stop, func(int32, int32) {})
	return stop == nil || !stop()
}

func (b *Builder) indexAllTasks(stop func() bool) {
	m := &b.m
	m.taskIndex.one().build(0, len(b.tasks), taskTexts{m}, stop, func(earlier, later int32) {
		b.taken(TaskID(later), TaskID(earlier))
	})
}

// taken records that an earlier task has the same uid. It formats the path only if it will be listed.
func (b *Builder) taken(t, earlier TaskID) {
	if b.faults.full() {
		b.faults.Total++
		return
	}
	b.faults.Add(b.pathOf(t), "uid %q is that of task %d already", b.textAt(b.tasks[t].uid), earlier)
}

// pathOf returns the path of a task's uid.
func (b *Builder) pathOf(t TaskID) string {
	task := &b.tasks[t]
	first := t
	for first > 0 && b.tasks[first-1].Group == task.Group {
		first--
	}
	return fmt.Sprintf("jobs[%d].groups[%d].tasks[%d].uid", task.Job, task.Group-b.jobs[task.Job].FirstGroup, t-first)
}

// bookAll fills the accounts, and sums the queues in the order of the snapshot; any order is correct if sums are exact.
func (b *Builder) bookAll(stop func() bool) bool {
	m := &b.m
	bestEffort := m.bestEffort()
	m.sums = b.sums.open(len(m.Queues), b.width)
	s := m.summing()
	for j := range b.jobs {
		if pollEach(stop, j) || !b.tally.on && !b.bookJob(&b.store.accounts[j], &b.jobs[j], bestEffort, stop) {
			return false
		}
		job := &b.jobs[j]
		s.add(m.sums[job.Queue], job, &b.store.accounts[j], 1)
	}
	for _, request := range m.Requests {
		s.noted.include(request)
	}
	for _, sum := range m.sums {
		s.noted.add(sum)
	}
	m.grain = s.noted
	m.exact = m.grain.exact(m.grain.total)
	return true
}

// bookJob fills the account of a job. bestEffort says which requests are best-effort ones.
func (b *Builder) bookJob(account *Account, job *Job, bestEffort []bool, stop func() bool) bool {
	tasks := b.tasks[job.FirstTask:job.EndTask]
	for t := range tasks {
		if pollEach(stop, t) {
			return false
		}
		task := &tasks[t]
		request := b.m.Requests[task.Request]
		account.put(request, task.Status, task.Gate, int(task.Group-job.FirstGroup), 1, bestEffort[task.Request])
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := &b.groups[g]
		for _, count := range b.counts[group.FirstCount:group.EndCount] {
			request := b.m.Requests[group.Request]
			account.put(request, count.Status, count.Gate, int(g-job.FirstGroup), count.N, bestEffort[group.Request])
		}
	}
	return true
}

// bestEffort says which requests are best-effort ones.
func (m *Model) bestEffort() []bool {
	list := make([]bool, len(m.Requests))
	for i, r := range m.Requests {
		list[i] = m.BestEffort(r)
	}
	return list
}

// orderAll also lists the jobs of every queue and sums the nodes, in the order of their names.
func (b *Builder) orderAll(stop func() bool) bool {
	m := &b.m
	m.NodeOrder = orderUnless(len(m.Nodes), func(n NodeID) string { return m.Nodes[n].Name }, stop)
	m.QueueOrder = orderUnless(len(m.Queues), func(q QueueID) string { return m.Queues[q].Name }, stop)
	m.JobOrder = orderUnless(len(b.jobs), func(j JobID) string { return b.jobs[j].UID }, stop)
	if stop != nil && stop() {
		return false
	}
	m.QueueJobs = b.queueJobs()
	m.findSmallNodes()
	if !m.explicit {
		m.sumNodes()
	}
	return true
}

// queueJobs lists the jobs of each queue, in order.
func (b *Builder) queueJobs() [][]JobID {
	m := &b.m
	ends := make([]int32, len(m.Queues))
	for j := range b.jobs {
		ends[b.jobs[j].Queue]++
	}
	lists, all := make([][]JobID, len(m.Queues)), make([]JobID, len(b.jobs))
	from := int32(0)
	for q, n := range ends {
		lists[q] = all[from : from : from+n]
		from += n
	}
	for _, j := range m.JobOrder {
		q := b.jobs[j].Queue
		lists[q] = append(lists[q], j)
	}
	return lists
}

// sumNodes sets the total to what all nodes offer.
func (m *Model) sumNodes() {
	m.Total = resource.NewAccount(m.Dims.Len())
	for _, n := range m.NodeOrder {
		m.Total.Add(m.Nodes[n].Allocatable)
	}
}

// rebook computes the account of a job from the statuses of all its tasks. The result equals the account in a model built with these
// statuses, bit for bit. Moving tasks one by one would leave rounding errors and dimensions behind.
func (m *Model) rebook(a *Account, job *Job) {
	for t := job.FirstTask; t < job.EndTask; t++ {
		task := m.Tasks.At(t)
		request := m.Requests[task.Request]
		a.put(request, task.Status, task.Gate, int(task.Group-job.FirstGroup), 1, m.BestEffort(request))
	}
	m.bookCounts(a, job)
}

// bookCounts adds the tasks of a job that are given as counts to its account.
func (m *Model) bookCounts(a *Account, job *Job) {
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := m.Groups.At(g)
		request := m.Requests[group.Request]
		for c := group.FirstCount; c < group.EndCount; c++ {
			count := m.Counts.At(c)
			a.put(request, count.Status, count.Gate, int(g-job.FirstGroup), count.N, m.BestEffort(request))
		}
	}
}
