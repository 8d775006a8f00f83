package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// result is the model that a change makes, while it is put together.
type result struct {
	*Model
	base     *Model
	jobs     tableEdit[JobID, Job]
	accounts tableEdit[JobID, Account]
	tasks    edit[TaskID, Task]
	// touched are the jobs that differ from the base, in no order.
	touched []JobID
	// summed counts the queues whose sums were formed anew.
	summed int
	// fresh are the jobs that the base does not have.
	fresh []JobID
}

// changed returns the model that a change makes.
func (b *Builder) changed() (*Model, error) {
	at := b.positions()
	b.checkUpdates()
	tasks := b.indexTasks(at)
	if err := b.faults.OrNil(); err != nil {
		return nil, err
	}
	m := b.m
	r := &result{Model: &m, base: b.change.base}
	r.jobs.begin(&r.base.Jobs)
	r.accounts.begin(&r.base.Accounts)
	r.tasks.begin(&r.base.Tasks)
	b.setJobs(r, at)
	b.dropJobs(r)
	b.updateTasks(r)
	b.leaveNodes(r)
	m.Jobs, m.Tasks, m.Accounts = r.jobs.Table, r.tasks.List, r.accounts.Table
	r.index(tasks)
	r.order()
	b.checkQueues(r)
	if err := b.faults.OrNil(); err != nil {
		return nil, err
	}
	r.sum()
	r.orderNames(b.change)
	if b.change.ownNodes {
		m.findSmallNodes()
	}
	if !m.explicit && (b.change.ownNodes || r.base.explicit) {
		m.sumNodes()
	}
	m.Own = b.own(r)
	return &m, nil
}

// positions returns where each job that was set comes to lie.
func (b *Builder) positions() []JobID {
	base, at := b.change.base, make([]JobID, len(b.jobs))
	next, fresh := JobID(base.Jobs.Len()), map[string]int{}
	for i := range b.jobs {
		uid := b.jobs[i].UID
		if j, ok := base.Job(uid); ok {
			if b.change.onlyNew {
				b.faults.Add(fmt.Sprintf("jobs[%d].uid", i), "job %q is jobs[%d] already", uid, j)
			}
			b.claimJob(j, fmt.Sprintf("jobs[%d].uid", i))
			at[i] = j
			continue
		}
		if earlier, twice := fresh[uid]; twice && uid != "" {
			b.faults.Add(fmt.Sprintf("jobs[%d].uid", i), "job %q is jobs[%d] already", uid, earlier)
			at[i] = at[earlier]
			continue
		}
		fresh[uid] = i
		at[i] = next
		next++
	}
	return at
}

// checkUpdates records updates of tasks whose job does not stay, and of tasks given twice.
func (b *Builder) checkUpdates() {
	c := b.change
	seen := make(map[TaskID]int, len(c.updates))
	for _, u := range c.updates {
		path := fmt.Sprintf("tasks[%d]", u.at)
		if earlier, twice := seen[u.task]; twice {
			b.faults.Add(path, "task %d is tasks[%d] already", u.task, earlier)
		}
		seen[u.task] = u.at
		if at, gone := c.jobIDs[c.base.Tasks.At(u.task).Job]; gone {
			b.faults.Add(path, "the job of task %d is %s", u.task, at)
		}
	}
	if b.counted > maxCount {
		b.faults.Add("jobs", "more than %d tasks in all", maxCount)
	}
	if c.base.text.n > maxText-len(b.written) {
		b.faults.Add("jobs", "the uids and names of all tasks together exceed %d bytes", maxText)
	}
}

// setJobs puts the jobs of the change in their places, and their groups and tasks behind all others.
func (b *Builder) setJobs(r *result, at []JobID) {
	if len(b.jobs) == 0 {
		return
	}
	m, to := r.Model, r.base.behind()
	to.at = at
	accounts := new(accountStore).open(b.jobs, len(b.groups), b.width)
	var groups edit[GroupID, Group]
	var counts edit[int32, Count]
	var details edit[int32, Detail]
	groups.begin(&r.base.Groups)
	counts.begin(&r.base.Counts)
	details.begin(&r.base.Details)
	for i := range b.groups {
		b.groups[i] = to.group(b.groups[i])
	}
	for i := range b.counts {
		b.counts[i] = to.count(b.counts[i])
	}
	for i := range b.tasks {
		to.task(&b.tasks[i])
	}
	groups.add(b.groups...)
	counts.add(b.counts...)
	details.add(b.details...)
	r.tasks.add(b.tasks...)
	m.Groups, m.Counts, m.Details = groups.List, counts.List, details.List
	m.text = r.base.text.with(b.written)
	m.Tasks = r.tasks.List
	for i := range b.jobs {
		job, j := &b.jobs[i], at[i]
		*job = to.job(*job)
		m.rebook(&accounts[i], job)
		r.touched = append(r.touched, j)
		if int(j) >= r.jobs.Len() {
			r.fresh = append(r.fresh, j)
		}
		r.jobs.replace(j, job)
		r.accounts.replace(j, &accounts[i])
	}
}

// dropJobs leaves holes where jobs were.
func (b *Builder) dropJobs(r *result) {
	for _, j := range b.change.jobsGone {
		r.jobs.replace(j, &Job{Queue: None})
		r.accounts.replace(j, &Account{})
		r.touched = append(r.touched, j)
	}
}

// updateTasks changes tasks and phases, and forms the accounts of their jobs anew.
func (b *Builder) updateTasks(r *result) {
	for _, p := range b.change.phases {
		r.jobs.change(p.job).Phase = p.phase
		r.touched = append(r.touched, p.job)
	}
	booked := map[JobID]bool{}
	for _, u := range b.change.updates {
		task := r.tasks.change(u.task)
		if u.HasNode {
			task.Node = u.Node
		}
		if u.HasStatus && task.Status != u.Status {
			task.Status = u.Status
			booked[task.Job] = true
		}
	}
	m := r.Model
	m.Tasks = r.tasks.List
	for _, u := range b.change.updates {
		j := r.tasks.At(u.task).Job
		if !booked[j] {
			continue
		}
		booked[j] = false
		job := r.jobs.At(j)
		account := new(accountStore).open([]Job{*job}, int(job.EndGroup-job.FirstGroup), b.width)
		m.rebook(&account[0], job)
		r.accounts.replace(j, &account[0])
		r.touched = append(r.touched, j)
	}
}

// leaveNodes takes tasks off the nodes that were removed.
func (b *Builder) leaveNodes(r *result) {
	if len(b.change.nodesGone) == 0 {
		return
	}
	for j := range JobID(r.jobs.Len()) {
		job := r.jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if n := r.tasks.At(t).Node; n != None && !r.HasNode(n) {
				task := r.tasks.change(t)
				task.Node = None
				if task.Status.Occupies() {
					r.OffNode++
				}
			}
		}
	}
}

// indexTasks indexes the tasks of the change by uid, and records those whose uid another task has. at is where each job comes to lie.
func (b *Builder) indexTasks(at []JobID) sorted {
	c, of := b.change, flatTexts{&b.flat}
	var tasks sorted
	tasks.build(0, len(b.tasks), of, nil, func(earlier, later int32) {
		b.taken(TaskID(later), TaskID(c.base.Tasks.Len())+TaskID(earlier))
	})
	for i := range b.jobs {
		was := Job{}
		if int(at[i]) < c.base.Jobs.Len() {
			was = *c.base.Jobs.At(at[i])
		}
		for t, same := b.jobs[i].FirstTask, was.FirstTask; t < b.jobs[i].EndTask; t, same = t+1, same+1 {
			uid := of.uid(int32(t))
			// Most jobs that are set have their tasks in the order in which they had them.
			if len(uid) == 0 || same < was.EndTask && bytes.Equal(uid, c.base.at(c.base.Tasks.At(same).uid)) {
				continue
			}
			earlier, found := c.base.TaskOf(string(uid))
			if !found {
				continue
			}
			if _, goes := c.jobIDs[c.base.Tasks.At(earlier).Job]; !goes {
				b.taken(t, earlier)
			}
		}
	}
	return tasks
}

// index finds what is new by its text. tasks are those of the change, counted from its first.
func (r *result) index(tasks sorted) {
	m, base := r.Model, r.base
	for i := range tasks.entries {
		tasks.entries[i] += uint64(base.Tasks.Len())
	}
	var jobs, requests sorted
	none := func(int32, int32) {}
	jobs.build(base.Jobs.Len(), len(r.fresh), jobTexts{m}, nil, none)
	requests.build(len(base.Requests), len(m.Requests)-len(base.Requests), requestTexts{m}, nil, none)
	m.jobIndex = base.jobIndex.with(jobs, jobTexts{m}.gone)
	m.taskIndex = base.taskIndex.with(tasks, taskTexts{m}.gone)
	m.requestIndex = base.requestIndex.with(requests, func(int32) bool { return false })
}

// order lists jobs in order, those of every queue too.
func (r *result) order() {
	m, base := r.Model, r.base
	uid := func(j JobID) string {
		if int(j) < base.Jobs.Len() {
			return base.Jobs.At(j).UID
		}
		return m.Jobs.At(j).UID
	}
	compare := func(l, r JobID) int { return strings.Compare(uid(l), uid(r)) }
	var gone []JobID
	left, entered := map[QueueID][]JobID{}, map[QueueID][]JobID{}
	for _, j := range r.touched {
		was, is := QueueID(None), m.Jobs.At(j).Queue
		if int(j) < base.Jobs.Len() {
			was = base.Jobs.At(j).Queue
		}
		if is == None {
			gone = append(gone, j)
		}
		if was == is {
			continue
		}
		if was != None {
			left[was] = append(left[was], j)
		}
		if is != None {
			entered[is] = append(entered[is], j)
		}
	}
	m.JobOrder = reordered(m.JobOrder, gone, r.fresh, compare)
	if len(left)+len(entered) == 0 && len(m.QueueJobs) == len(m.Queues) {
		return
	}
	m.QueueJobs = append(slices.Clip(m.QueueJobs), make([][]JobID, len(m.Queues)-len(m.QueueJobs))...)
	if len(m.QueueJobs) == len(base.QueueJobs) {
		m.QueueJobs = slices.Clone(m.QueueJobs)
	}
	for q, jobs := range left {
		m.QueueJobs[q] = reordered(m.QueueJobs[q], jobs, entered[q], compare)
		delete(entered, q)
	}
	for q, jobs := range entered {
		m.QueueJobs[q] = reordered(m.QueueJobs[q], nil, jobs, compare)
	}
}

// orderNames lists nodes and queues in order.
func (r *result) orderNames(c *change) {
	m, base := r.Model, r.base
	nodes := func(n NodeID) string {
		if int(n) < len(base.Nodes) {
			return base.Nodes[n].Name
		}
		return m.Nodes[n].Name
	}
	queues := func(q QueueID) string {
		if int(q) < len(base.Queues) {
			return base.Queues[q].Name
		}
		return m.Queues[q].Name
	}
	var gone []QueueID
	for _, g := range c.queuesGone {
		gone = append(gone, g.queue)
	}
	m.NodeOrder = reordered(m.NodeOrder, slices.Clone(c.nodesGone), since[NodeID](len(base.Nodes), len(m.Nodes)),
		func(l, r NodeID) int { return strings.Compare(nodes(l), nodes(r)) })
	m.QueueOrder = reordered(m.QueueOrder, gone, since[QueueID](len(base.Queues), len(m.Queues)),
		func(l, r QueueID) int { return strings.Compare(queues(l), queues(r)) })
}

// since lists the positions from first to n-1.
func since[ID ~int32](first, n int) []ID {
	list := make([]ID, 0, n-first)
	for i := first; i < n; i++ {
		list = append(list, ID(i))
	}
	return list
}

// reordered returns a sorted list without some of its entries and with others; it is the same list if there are none of either.
func reordered[ID ~int32](list, gone, added []ID, compare func(l, r ID) int) []ID {
	if len(gone)+len(added) == 0 {
		return list
	}
	slices.SortFunc(gone, compare)
	slices.SortFunc(added, compare)
	out := make([]ID, 0, len(list)-len(gone)+len(added))
	for len(gone)+len(added) > 0 {
		next := added
		if drop := len(added) == 0 || len(gone) > 0 && compare(gone[0], added[0]) < 0; drop {
			next = gone
		}
		at, found := slices.BinarySearchFunc(list, next[0], compare)
		out = append(out, list[:at]...)
		list = list[at:]
		if len(gone) > 0 && &next[0] == &gone[0] {
			if found {
				list = list[1:]
			}
			gone = gone[1:]
			continue
		}
		out, added = append(out, added[0]), added[1:]
	}
	return append(out, list...)
}

// checkQueues records the queues that were removed though jobs are left in them.
func (b *Builder) checkQueues(r *result) {
	for _, g := range b.change.queuesGone {
		if jobs := r.QueueJobs[g.queue]; len(jobs) > 0 {
			b.faults.Add(g.path, "job %q is in the queue, and %d in all", r.Jobs.At(jobs[0]).UID, len(jobs))
		}
	}
}

// own counts what the result has of its own.
func (b *Builder) own(r *result) *Own {
	m, base, c := r.Model, r.base, b.change
	o := &Own{
		Jobs: r.jobs.fresh, Tasks: r.tasks.fresh, Sums: r.summed, Requests: len(m.Requests) - len(base.Requests),
		Pages: len(r.jobs.pointers.own) + len(r.accounts.pointers.own) + len(r.tasks.own),
		Bytes: int(m.jobIndex.bytes()-base.jobIndex.bytes()) + int(m.taskIndex.bytes()-base.taskIndex.bytes()) +
			r.jobs.ownBytes() + r.accounts.ownBytes(),
	}
	if len(b.jobs) > 0 {
		o.Groups, o.Counts, o.Details = len(b.groups), len(b.counts), len(b.details)
		o.Pages += len(m.Groups.pages) + len(m.Counts.pages) + len(m.Details.pages) + len(m.text.pages)
		o.Bytes += len(b.written) + 1<<paperShift
	}
	if len(m.Requests) > len(base.Requests) {
		o.Requests = len(m.Requests)
	}
	if c.ownNodes {
		o.Nodes = len(m.Nodes)
	}
	if c.ownNodeSets {
		o.NodeSets = len(m.NodeSets)
	}
	if c.ownQueues {
		o.Queues = len(m.Queues)
	}
	if len(r.fresh)+len(c.jobsGone) > 0 {
		o.Order = len(m.JobOrder)
	}
	if base != c.given {
		o.Nodes, o.Queues, o.Sums, o.Jobs, o.Requests = len(m.Nodes), len(m.Queues), len(m.Queues), m.Jobs.Len(), len(m.Requests)
	}
	return o
}
