package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A change makes a new model that shares all pages with its base that are alike in both. The base is never written: what differs is copied
// first (edit, tableEdit). Positions stay: a job, task, queue or node that is in both models has the same position, one that is gone leaves
// its position empty, and new ones come after all others. Orders are by name, so that no answer depends on positions. Sums are formed anew
// for the queues that changed alone, in the order of a model that is compiled from scratch, so that every amount is equal to its, bit for
// bit.

// result is the model that results from a change, under construction.
type result struct {
	*Model
	base     *Model
	jobs     tableEdit[JobID, Job]
	accounts tableEdit[JobID, Account]
	tasks    edit[TaskID, Task]
	// touched are the jobs that differ from the base, in no order.
	touched []JobID
	// pages counts those in the tables of groups, counts and details that are its own.
	pages int
	// summed counts the queues whose sums were formed anew.
	summed int
	// fresh are the jobs that the base does not have.
	fresh []JobID
}

// changed returns the model that results from a change. each runs work concurrently.
func (b *Builder) changed(each func(n int, f func(int))) (*Model, error) {
	c := b.change
	c.parts = slices.Insert(c.parts, 0, b)
	at := b.positions()
	b.checkUpdates()
	places := c.places(at)
	settled := make([]settled, len(c.parts))
	each(len(c.parts), func(i int) { settled[i] = c.parts[i].settle(&places[i]) })
	if err := c.faults(); err != nil {
		return nil, err
	}
	m := b.m
	r := &result{Model: &m, base: c.base}
	r.jobs.begin(&r.base.Jobs)
	r.accounts.begin(&r.base.Accounts)
	r.tasks.begin(&r.base.Tasks)
	r.setJobs(c.parts, places, settled)
	b.dropJobs(r)
	b.updateTasks(r)
	b.leaveNodes(r)
	m.Jobs, m.Tasks, m.Accounts = r.jobs.Table, r.tasks.List, r.accounts.Table
	tasks, ok := c.tasksOf(settled, &m)
	if !ok {
		return nil, errParts
	}
	r.index(tasks)
	r.order()
	b.checkQueues(r)
	b.checkNodeSets(r)
	b.checkBudgets(r)
	b.checkPodSets()
	b.checkPodRefs(r)
	if err := b.faults.OrNil(); err != nil {
		return nil, err
	}
	r.sum(each)
	r.orderNames(c)
	if c.ownNodes {
		m.findSmallNodes()
	}
	if !m.explicit && (c.ownNodes || r.base.explicit) {
		m.sumNodes()
	}
	m.Own = b.own(r)
	return &m, nil
}

// positions returns the positions in the result of the jobs that were set.
func (b *Builder) positions() []JobID {
	n := 0
	for _, p := range b.change.parts {
		n += len(p.jobs)
	}
	at := make([]JobID, 0, n)
	b.change.jobs.expect(n)
	next, fresh := JobID(b.change.base.Jobs.Len()), map[string]int{}
	for _, p := range b.change.parts {
		for i, j := range p.recognized.was {
			uid, by := p.jobs[i].UID, claim{at: int32(len(at))}
			if j != None {
				b.claimJob(j, by)
				at = append(at, j)
				continue
			}
			if earlier, twice := fresh[uid]; twice && uid != "" {
				b.faults.Add(by.String(), "job %q is jobs[%d] already", uid, earlier)
				at = append(at, at[earlier])
				continue
			}
			fresh[uid] = len(at)
			at = append(at, next)
			next++
		}
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
		if job := c.base.Tasks.At(u.task).Job; c.jobs.has(job) {
			b.faults.Add(path, "the job of task %d is %s", u.task, c.jobs.of(job))
		}
	}
	if b.counted > maxCount {
		b.faults.Add("jobs", "more than %d tasks in all", maxCount)
	}
	written := 0
	for _, p := range c.parts {
		written += len(p.written) + 1<<paperShift
	}
	if c.base.text.n > maxText-written {
		b.faults.Add("jobs", "the uids and names of all tasks together exceed %d bytes", maxText)
	}
}

// setJobs sets the jobs of the change and their accounts, and appends their groups and tasks.
func (r *result) setJobs(parts []*Builder, places []move, settled []settled) {
	m := r.Model
	var groups edit[GroupID, Group]
	var counts edit[int32, Count]
	var details edit[int32, Detail]
	var rares edit[int32, rare]
	groups.begin(&r.base.Groups)
	counts.begin(&r.base.Counts)
	details.begin(&r.base.Details)
	rares.begin(&r.base.rares)
	for k, p := range parts {
		groups.add(p.groups...)
		counts.add(p.counts...)
		details.add(p.details...)
		rares.add(p.rares...)
		r.tasks.add(p.tasks...)
		m.text = m.text.with(p.written)
		for i := range p.jobs {
			j := places[k].at[i]
			r.touched = append(r.touched, j)
			if int(j) >= r.jobs.Len() {
				r.fresh = append(r.fresh, j)
			}
			r.jobs.replace(j, &p.jobs[i])
			r.accounts.replace(j, &settled[k].accounts[i])
		}
	}
	m.Groups, m.Counts, m.Details, m.rares = groups.List, counts.List, details.List, rares.List
	r.pages = groups.ownPages() + counts.ownPages() + details.ownPages() + rares.ownPages()
}

// dropJobs removes jobs and leaves their positions empty.
func (b *Builder) dropJobs(r *result) {
	for _, j := range b.change.jobsGone {
		r.jobs.replace(j, &Job{Queue: None})
		r.accounts.replace(j, &Account{})
		r.touched = append(r.touched, j)
	}
}

// updateTasks changes tasks and phases, and computes the accounts of their jobs again.
func (b *Builder) updateTasks(r *result) {
	for _, p := range b.change.phases {
		r.jobs.change(p.job).Phase = p.phase
		r.touched = append(r.touched, p.job)
	}
	for _, j := range slices.Sorted(maps.Keys(b.change.extras)) {
		r.jobs.change(j).Extra = b.change.extras[j]
		r.touched = append(r.touched, j)
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
				if task.Status.Counts() {
					r.OffNode++
				}
			}
		}
	}
}

// index adds new jobs, requests and tasks to the indexes; tasks are those of the change.
func (r *result) index(tasks sorted) {
	m, base := r.Model, r.base
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
		gone = append(gone, g.id)
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

// reordered returns a sorted list without the entries gone and with those added. It returns list itself if both are empty.
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
		if jobs := r.QueueJobs[g.id]; len(jobs) > 0 {
			b.faults.Add(g.path, "job %q is in the queue, and %d in all", r.Jobs.At(jobs[0]).UID, len(jobs))
		}
	}
}

// ownTerms returns the memory of the lists of node groups that queues do not share with those of the base.
func ownTerms(m, base *Model) int {
	const term = 16
	n := 0
	for q := range m.Queues {
		if a := m.Queues[q].Affinity; q >= len(base.Queues) || a != base.Queues[q].Affinity {
			n += a.Len()
		}
	}
	return n * term
}

// ownUsages returns the memory of what queues say of usage that they do not share with the base.
func ownUsages(m, base *Model) int {
	bytes := 0
	for q := range m.Queues {
		if of := m.Queues[q].Memory; q >= len(base.Queues) || of != base.Queues[q].Memory {
			bytes += of.Bytes()
		}
	}
	return bytes
}

// own counts the parts that the result does not share with the base.
func (b *Builder) own(r *result) *Own {
	m, base, c := r.Model, r.base, b.change
	o := &Own{
		Jobs: r.jobs.fresh, Tasks: r.tasks.fresh, Sums: r.summed, Requests: len(m.Requests) - len(base.Requests),
		Pages: r.pages + r.jobs.pointers.ownPages() + r.accounts.pointers.ownPages() + r.tasks.ownPages(),
		Bytes: int(m.jobIndex.bytes()-base.jobIndex.bytes()) + int(m.taskIndex.bytes()-base.taskIndex.bytes()) +
			r.jobs.ownBytes() + r.accounts.ownBytes(),
	}
	o.Bytes += r.countExtras(c)
	for _, p := range c.parts {
		m.rareBytes += p.rareBytes
		o.Bytes += p.rareBytes
	}
	if b.budgets.own || b.quotas.own {
		o.Bytes += m.entryBytes()
	}
	for _, p := range c.parts {
		o.Groups, o.Counts, o.Details = o.Groups+len(p.groups), o.Counts+len(p.counts), o.Details+len(p.details)
		o.Bytes += cap(p.written)
	}
	if m.text.n > base.text.n {
		o.Pages += len(m.text.pages)
		o.Bytes += 1 << paperShift
	}
	if len(m.Requests) > len(base.Requests) {
		o.Requests = len(m.Requests)
	}
	if c.ownNodes || b.podsGiven {
		o.Bytes += ownPods(m, base) + ownReservations(m, base)
	}
	if c.ownNodes {
		o.Nodes = len(m.Nodes)
	}
	if c.ownNodeSets {
		o.NodeSets = len(m.NodeSets)
	}
	if c.ownQueues {
		o.Queues = len(m.Queues)
		o.Bytes += ownTerms(m, base) + ownUsages(m, base) + ownLimits(m, base)
	}
	if len(r.fresh)+len(c.jobsGone) > 0 {
		o.Order = len(m.JobOrder)
	}
	if base != c.given {
		o.Nodes, o.Queues, o.Sums, o.Jobs, o.Requests = len(m.Nodes), len(m.Queues), len(m.Queues), m.Jobs.Len(), len(m.Requests)
	}
	return o
}
