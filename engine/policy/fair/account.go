package fair

import (
	"math"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// accounts are the sums over all tasks, in raw amounts.
type accounts struct {
	// held is a row for each place: what the tasks of its leaves hold.
	held []int64
	// demand is a row for each leaf.
	demand []int64
	// total is the snapshot's; others is what other schedulers use of the nodes, aside what tasks occupy that are set aside.
	total, others, aside []int64
	// occupied, releasing and pipelined are of the whole cluster.
	occupied, releasing, pipelined []int64
}

// demanded reports whether a task of this status is part of the demand. counts: its queue is open and it fits an empty cluster.
func demanded(status model.Status, gate model.Gate, counts bool) bool {
	switch {
	case status.Granted():
		return true
	case status == model.Pending:
		return gate != model.GateOther && counts
	}
	return status == model.Releasing && counts
}

// total returns the amount of a dimension that is divided.
func (s *State) total(d int) int64 {
	a := &s.accounts
	return max(0, a.total[d]-a.others[d]-a.aside[d])
}

// leafOf returns the leaf of a job, none if the job is set aside.
func (s *State) leafOf(j model.JobID) place { return s.leafOfQueue(s.v.Jobs.At(j).Queue) }

// leafOfQueue returns the leaf of a queue, none if its jobs are set aside.
func (s *State) leafOfQueue(q model.QueueID) place {
	p := s.tree.at[q]
	if p == none || !s.tree.isLeaf(p) {
		return none
	}
	return p
}

func (s *State) openAccounts() error {
	v, a := s.v, &s.accounts
	n := s.tree.len()
	a.held, a.demand = make([]int64, n*s.width), make([]int64, n*s.width)
	cells := make([]int64, 6*s.width)
	for i, row := range []*[]int64{&a.total, &a.others, &a.aside, &a.occupied, &a.releasing, &a.pipelined} {
		*row = cells[i*s.width : (i+1)*s.width]
	}
	for d := range a.total {
		a.total[d] = atMost(v.Total.V[d])
	}
	for i := range v.Nodes {
		for m := v.Nodes[i].UsedByOthers.Positive(); m != 0; m = m.Rest() {
			a.others[m.First()] += atLeast(v.Nodes[i].UsedByOthers.V[m.First()])
		}
	}
	plain, request := s.plainRequests(), resource.NewRow(s.width)
	for i, q := range v.QueueOrder {
		if v.Stopped(i) {
			return policy.ErrStopped
		}
		if plain && v.Fresh() && s.bookQueue(q) {
			continue
		}
		for i, j := range v.QueueJobs[q] {
			if v.Stopped(i) {
				return policy.ErrStopped
			}
			if !plain || !s.bookAccount(j, request) {
				s.bookJob(j)
			}
		}
	}
	for p := place(n) - 1; p > 0; p-- {
		add(s.row(a.held, s.tree.parent[p]), s.row(a.held, p))
	}
	return nil
}

// plainRequests reports whether every task asks for whole amounts and counts as far as it is up to its request and its nodes.
func (s *State) plainRequests() bool {
	if len(s.v.NodeSets) > 0 {
		return false
	}
	for i := range s.requests {
		if !s.requests[i].fits || !isWhole(s.v.Requests[i]) {
			return false
		}
	}
	return true
}

// isWhole reports whether all amounts are integers.
func isWhole(row resource.Row) bool {
	for _, x := range row.V {
		if x != math.Trunc(x) {
			return false
		}
	}
	return true
}

// bookQueue is bookJob for all jobs of a queue by the sums that the model keeps of their plain requests; false if these do not tell enough.
func (s *State) bookQueue(q model.QueueID) bool {
	of := s.v.QueueSumOf(q)
	if of.Moving > 0 || !isExact(of.Named) {
		return false
	}
	s.bookSums(s.leafOfQueue(q), of.Allocated, of.Request, of.Gated)
	return true
}

// bookAccount is bookJob by the account that the session keeps of a job's plain requests; false if it does not tell enough.
func (s *State) bookAccount(j model.JobID, request resource.Row) bool {
	of := s.v.Account(j)
	if of.Tasks[model.Pipelined]+of.Tasks[model.Releasing] > 0 || !isExact(of.Total) {
		return false
	}
	request.CopyFrom(of.Allocated)
	request.Add(of.Pending)
	s.bookSums(s.leafOf(j), of.Allocated, request, of.Gated)
	return true
}

// isExact reports whether sums of integers that come to this much at most are exact.
func isExact(most resource.Row) bool {
	return !slices.ContainsFunc(most.V, func(x float64) bool { return x >= maxExact })
}

// bookSums adds what tasks hold, what they request beside that, and what of it a gate holds.
func (s *State) bookSums(p place, allocated, request, gated resource.Row) {
	a := &s.accounts
	if p == none {
		for d, x := range allocated.V {
			a.aside[d] += int64(x)
		}
		return
	}
	held, demand := s.row(a.held, p), s.row(a.demand, p)
	for d, x := range allocated.V {
		held[d] += int64(x)
		a.occupied[d] += int64(x)
		if s.tree.open[p] {
			demand[d] += int64(request.V[d] - gated.V[d])
		} else {
			demand[d] += int64(x)
		}
	}
}

// bookJob adds the tasks of a job to its leaf, if it has one, and to the cluster.
func (s *State) bookJob(j model.JobID) {
	v, job, p := s.v, s.v.Jobs.At(j), s.leafOf(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		s.bookTasks(p, v.Status(t), v.Tasks.At(t).Gate, s.requestOf(t), s.fitsTask(t), 1)
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := v.Groups.At(g)
		for c := range v.CountsOf(g) {
			s.bookTasks(p, c.Status, c.Gate, &s.requests[group.Request], s.fits(group.Request, group.NodeSet), int64(c.N))
		}
	}
}

// bookTasks adds n tasks to a leaf, not to the places above it, and to the cluster.
func (s *State) bookTasks(p place, status model.Status, gate model.Gate, r *request, fits bool, n int64) {
	a := &s.accounts
	if p == none {
		if status.Occupies() {
			addTimes(a.aside, r, n)
		}
		return
	}
	if status.Granted() {
		addTimes(s.row(a.held, p), r, n)
	}
	if demanded(status, gate, fits && s.tree.open[p]) {
		addTimes(s.row(a.demand, p), r, n)
	}
	s.bookCluster(status, r, n)
}

func (s *State) bookCluster(status model.Status, r *request, n int64) {
	a := &s.accounts
	if status.Occupies() {
		addTimes(a.occupied, r, n)
	}
	switch status { //nolint:exhaustive // No other status moves anything.
	case model.Releasing:
		addTimes(a.releasing, r, n)
	case model.Pipelined:
		addTimes(a.pipelined, r, n)
	}
}

// free is what of the cluster can be given now, future what can be given once what is being released is free. Both may be negative.
func (s *State) free(d int) int64 { return min(s.idle(d), s.future(d)) }

func (s *State) idle(d int) int64 { return s.total(d) - s.accounts.occupied[d] }

func (s *State) future(d int) int64 {
	return s.idle(d) + s.accounts.releasing[d] - s.accounts.pipelined[d]
}

func add(sum, row []int64) {
	for d, x := range row {
		sum[d] += x
	}
}

func addTimes(sum []int64, r *request, n int64) {
	for m := r.positive; m != 0; m = m.Rest() {
		d := m.First()
		sum[d] += n * r.amount[d]
	}
}

// Moved books a task whose status or node has changed; before that they were the ones given.
func (s *State) Moved(t model.TaskID, from model.Status, node model.NodeID) {
	to, on := s.v.Status(t), s.v.NodeOf(t)
	s.v.Journal.UndoWith(s.again, s.version, 0)
	version := s.version
	s.move(t, from, node, to, on)
	s.follow(version, t, from, to)
	s.v.Journal.UndoWith(s.back, uint64(uint32(t))|uint64(from)<<32|uint64(to)<<40, uint64(uint32(node))|uint64(uint32(on))<<32)
}

// moveBack undoes what Moved did. Its arguments have the form in which Moved saves them.
func (s *State) moveBack(a, b uint64) {
	t, from, to := model.TaskID(uint32(a)), model.Status(uint8(a>>32)), model.Status(uint8(a>>40))
	s.unfollow(t, model.NodeID(uint32(b>>32)))
	s.move(t, to, model.NodeID(uint32(b>>32)), from, model.NodeID(uint32(b)))
}

// versionAgain returns to the version of the accounts before a move, once it is undone.
func (s *State) versionAgain(version, _ uint64) { s.version = version }

func (s *State) move(t model.TaskID, from model.Status, was model.NodeID, to model.Status, is model.NodeID) {
	s.latest++
	s.version = s.latest
	task := s.v.Tasks.At(t)
	r, p := s.requestOf(t), s.leafOf(task.Job)
	if s.rooms.idle != nil {
		s.bookRoom(was, from, p == none, r, -1)
		s.bookRoom(is, to, p == none, r, 1)
	}
	if p == none {
		if from.Occupies() != to.Occupies() {
			addTimes(s.accounts.aside, r, sign(to.Occupies()))
			s.division.stale |= r.positive
		}
		return
	}
	s.bookCluster(from, r, -1)
	s.bookCluster(to, r, 1)
	s.order.touch(p)
	s.owned.touch(task.Job, p)
	if from.Granted() != to.Granted() {
		s.hold(task.Job, p, r, sign(to.Granted()))
	}
	if w := s.waitOf(task.Job); w != nil {
		w.stale = true
		if pended, pends := from == model.Pending, to == model.Pending; pended != pends && s.waits(t) {
			s.await(w, t, int32(sign(pends)))
		}
	}
	counts := s.tree.open[p] && s.fitsTask(t)
	if before, after := demanded(from, task.Gate, counts), demanded(to, task.Gate, counts); before != after {
		addTimes(s.row(s.accounts.demand, p), r, sign(after))
		s.division.stale |= r.positive
	}
}

// hold adds n times a request to what a job and the places of its path hold.
func (s *State) hold(j model.JobID, p place, r *request, n int64) {
	for a := p; a != none; a = s.tree.parent[a] {
		addTimes(s.row(s.accounts.held, a), r, n)
	}
	if a := s.inqueue.jobs[j]; a != nil {
		addTimes(a.held, r, n)
		s.updateLack(a, p)
	}
}

// waitOf returns what a job waits for; nil if it never waits, or was not asked for yet.
func (s *State) waitOf(j model.JobID) *wait {
	if !s.blocks.known {
		return nil
	}
	return s.blocks.of[j]
}

func sign(more bool) int64 {
	if more {
		return 1
	}
	return -1
}
