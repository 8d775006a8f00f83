package model

import (
	"encoding/binary"
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

// row returns the dense form of amounts, absent for nil, and records what is wrong with them under path+field, or under the newest job
// if path is empty.
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

// fill sets row, which is cleared first, to the amounts.
func (b *Builder) fill(row *resource.Row, a *Amounts, may bound, path func(string) string, field string) {
	row.Clear(0)
	if len(a.Dimension) != len(a.Amount) {
		b.faults.Add(path(field), "%d dimensions but %d amounts", len(a.Dimension), len(a.Amount))
		return
	}
	for i, given := range a.Dimension {
		x := a.Amount[i]
		if int64(given) >= int64(len(b.index)) {
			b.faults.Add(path(field)+".dimension", "no dimension %d, there are %d", given, b.known)
			continue
		}
		d := b.index[given]
		switch {
		case row.Has.Has(d):
			b.faults.Add(path(field)+".dimension", "dimension %q is given twice", b.m.Dims.Name(d))
		case math.IsNaN(x):
			b.faults.Add(path(field)+".amount", "%s is not a number", b.m.Dims.Name(d))
		case x < 0:
			b.faults.Add(path(field)+".amount", "%s is negative: %g", b.m.Dims.Name(d), x)
		case math.IsInf(x, 1) && may == limited:
			b.faults.Add(path(field)+".amount", "%s is unlimited, which only capability may be", b.m.Dims.Name(d))
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
	b.key = binary.LittleEndian.AppendUint64(b.key[:0], uint64(row.Has))
	for m := row.Has; m != 0; m = m.Rest() {
		b.key = binary.LittleEndian.AppendUint64(b.key, math.Float64bits(row.V[m.First()]))
	}
	if id, ok := b.requestIDs[string(b.key)]; ok {
		return id
	}
	id := int32(len(b.m.Requests))
	b.requestIDs[string(b.key)] = id
	row.Has |= resource.Base
	b.m.Requests = append(b.m.Requests, b.slab.clone(*row))
	return id
}

func (b *Builder) closeGroup() {
	if n := len(b.m.Groups); n > 0 && b.group >= 0 {
		b.m.Groups[n-1].EndCount = int32(len(b.m.Counts))
	}
}

func (b *Builder) closeJob() {
	if b.job < 0 {
		return
	}
	b.closeGroup()
	job := &b.m.Jobs[len(b.m.Jobs)-1]
	job.EndGroup, job.EndTask = GroupID(len(b.m.Groups)), TaskID(len(b.m.Tasks))
}

// Build returns the model, or an *Error with every violation. The builder must not be used afterwards but to Reset it.
func (b *Builder) Build() (*Model, error) { return b.BuildUnless(nil) }

// BuildUnless is Build, but asks stop now and then, if it is not nil, and then returns ErrStopped.
func (b *Builder) BuildUnless(stop func() bool) (*Model, error) {
	return b.BuildBeside(stop, func(n int, f func(int)) {
		for i := range n {
			f(i)
		}
	})
}

// BuildBeside is BuildUnless, with work that may be done at the same time: each calls f with 0 … n-1, in any order or at once, and returns
// when all have returned. stop must bear to be asked by all of them.
func (b *Builder) BuildBeside(stop func() bool, each func(n int, f func(int))) (*Model, error) {
	b.closeJob()
	// What is faulty is searched for more faults, but is no model.
	work := []func(stop func() bool) bool{b.indexAll, b.bookAll, b.orderAll}
	if b.faults.Total > 0 {
		work = work[:1]
	}
	var done [3]bool
	each(len(work), func(i int) { done[i] = work[i](stop) })
	if slices.Contains(done[:len(work)], false) || stop != nil && stop() {
		return nil, ErrStopped
	}
	if err := b.faults.OrNil(); err != nil {
		return nil, err
	}
	return &b.m, nil
}

// The rest of a model is done at the same time: each returns false only if stop asked to stop, and none looks at what another makes.

func (b *Builder) indexAll(stop func() bool) bool {
	b.indexJobsAndTasks(0, 0, stop)
	return stop == nil || !stop()
}

func (b *Builder) bookAll(stop func() bool) bool {
	b.m.Accounts = b.store.open(b.m.Jobs, len(b.m.Groups), b.width)
	return b.m.book(0, stop)
}

// orderAll also sums the nodes, in the order of their names.
func (b *Builder) orderAll(stop func() bool) bool {
	m := &b.m
	m.NodeOrder = orderUnless(len(m.Nodes), func(n NodeID) string { return m.Nodes[n].Name }, stop)
	m.QueueOrder = orderUnless(len(m.Queues), func(q QueueID) string { return m.Queues[q].Name }, stop)
	m.JobOrder = orderUnless(len(m.Jobs), func(j JobID) string { return m.Jobs[j].UID }, stop)
	if stop != nil && stop() {
		return false
	}
	if !b.explicit {
		m.Total = resource.NewAccount(b.width)
		for _, n := range m.NodeOrder {
			m.Total.Add(m.Nodes[n].Allocatable)
		}
	}
	return true
}

// indexJobsAndTasks indexes the jobs and tasks from the given ones on and records those whose uid is taken.
func (b *Builder) indexJobsAndTasks(firstJob JobID, firstTask TaskID, stop func() bool) {
	m := &b.m
	m.jobIndex.build(int(firstJob), len(m.Jobs)-int(firstJob), jobTexts{m}, stop, func(earlier, later int32) {
		b.faults.Add(fmt.Sprintf("jobs[%d].uid", JobID(later)-firstJob), "job %q is jobs[%d] already", m.Jobs[later].UID, earlier)
	})
	m.taskIndex.build(int(firstTask), len(m.Tasks)-int(firstTask), taskTexts{m}, stop, func(earlier, later int32) {
		b.taken(TaskID(later), TaskID(earlier), firstJob)
	})
	if b.base == nil {
		return
	}
	for j := firstJob; int(j) < len(m.Jobs); j++ {
		if earlier, taken := b.base.Job(m.Jobs[j].UID); taken {
			b.faults.Add(fmt.Sprintf("jobs[%d].uid", j-firstJob), "job %q is jobs[%d] already", m.Jobs[j].UID, earlier)
		}
	}
	for t := firstTask; int(t) < len(m.Tasks); t++ {
		if earlier, taken := b.base.TaskOf(m.TaskUID(t)); taken {
			b.taken(t, earlier, firstJob)
		}
	}
}

// taken records that a task's uid is that of an earlier one; a path is put together only if it will be listed.
func (b *Builder) taken(t, earlier TaskID, firstJob JobID) {
	if b.faults.Full() {
		b.faults.Total++
		return
	}
	b.faults.Add(b.pathOf(t, firstJob), "uid %q is that of task %d already", b.m.TaskUID(t), earlier)
}

// pathOf returns the path of a task's uid.
func (b *Builder) pathOf(t TaskID, firstJob JobID) string {
	task := &b.m.Tasks[t]
	first := t
	for first > 0 && b.m.Tasks[first-1].Group == task.Group {
		first--
	}
	return fmt.Sprintf("jobs[%d].groups[%d].tasks[%d].uid", task.Job-firstJob, task.Group-b.m.Jobs[task.Job].FirstGroup, t-first)
}

// book fills the accounts of the jobs from first on, or returns false if stop asked to stop.
func (m *Model) book(first JobID, stop func() bool) bool {
	bestEffort := make([]bool, len(m.Requests))
	for i, r := range m.Requests {
		bestEffort[i] = m.BestEffort(r)
	}
	for j := first; int(j) < len(m.Jobs); j++ {
		job, account := &m.Jobs[j], &m.Accounts[j]
		if stop != nil && j&1023 == 1023 && stop() {
			return false
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			if stop != nil && t&(1<<14-1) == 0 && stop() {
				return false
			}
			task := &m.Tasks[t]
			account.put(m.Requests[task.Request], task.Status, task.Gate, int(task.Group-job.FirstGroup), 1, bestEffort[task.Request])
		}
		m.bookCounts(account, job)
	}
	return true
}

// Extend returns a builder whose model will be m and the jobs that follow; its paths begin at jobs[0] for the first of these. m itself
// does not change. Everything that refers to m's queues, jobs, tasks and nodes by number stays valid in the new model.
func (m *Model) Extend(dimensions []string) *Builder {
	b := &Builder{job: -1, base: m, explicit: true}
	b.m = *m
	earlier := m.names
	b.m.names = names{base: &earlier}
	b.m.Jobs, b.m.Groups, b.m.Counts = slices.Clip(m.Jobs), slices.Clip(m.Groups), slices.Clip(m.Counts)
	b.m.Tasks, b.m.Details, b.m.Requests = slices.Clip(m.Tasks), slices.Clip(m.Details), slices.Clip(m.Requests)
	b.m.text = slices.Clip(m.text)
	b.width = m.Dims.Len()
	b.scratch = resource.NewRow(b.width)
	b.requestIDs = map[string]int32{}
	b.counted = int64(len(m.Tasks))
	if len(dimensions) == 0 {
		dimensions = m.given
	}
	for i, name := range dimensions {
		d, ok := m.Dims.Index(name)
		if !ok {
			b.faults.Add("dimensions", "dimensions[%d]: the snapshot has no dimension %q", i, name)
		}
		b.index = append(b.index, d)
	}
	b.known = len(dimensions)
	return b
}

// BuildExtended returns the extended model, or an *Error with every violation. The accounts of m's own jobs are the ones given, which the
// new model shares.
func (b *Builder) BuildExtended(accounts []Account) (*Model, error) {
	b.closeJob()
	known := JobID(len(b.base.Jobs))
	b.indexJobsAndTasks(known, TaskID(len(b.base.Tasks)), nil)
	if err := b.faults.OrNil(); err != nil {
		return nil, err
	}
	m := &b.m
	m.JobOrder = order(len(m.Jobs), func(j JobID) string { return m.Jobs[j].UID })
	added := newAccounts(m.Jobs[known:], len(m.Groups)-len(b.base.Groups), b.width)
	m.Accounts = append(slices.Clip(accounts[:known]), added...)
	m.book(known, nil)
	// The model lies within its builder, which must not keep what it was extended from.
	b.base = nil
	return m, nil
}
