package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Comparison is the result of comparing two items of one kind.
type Comparison struct {
	// Plugins is the first plugin's comparison that is not 0: negative if the left comes first.
	Plugins int
	// Less: the left comes first, including fallbacks.
	Less bool
}

// Order compares and sorts queues, jobs and tasks as a session's policy orders them.
type Order struct{ s *Session }

// Order returns the order of service and of eviction in the current state.
func (s *Session) Order() Order { return Order{s} }

// CompareQueues compares two queues by order of service. If no plugin distinguishes them, the older one comes first, then the one with the
// smaller name.
func (o Order) CompareQueues(l, r model.QueueID) Comparison {
	c := o.s.by.compareQueues(l, r)
	return Comparison{c, c < 0 || c == 0 && olderQueue(o.s.view, l, r)}
}

// SortQueuesOnce sorts distinct queues as SortQueues does, if each queue has a place of its own in the order: then any two need not be
// compared to see whether there is an order. Otherwise it returns false and changes nothing. The plugins do not distinguish the queue at
// position i from the next one if tied(i), which is valid until queues are sorted again.
func (o Order) SortQueuesOnce(queues []model.QueueID) (tied func(i int) bool, ok bool) {
	by := &o.s.by
	return by.queues.tied, by.queues.sort(o.s.view, by, queues)
}

// Ranks returns the positions of queues in the order of service of the queues that have jobs, and model.None for a queue that has none.
func (o Order) Ranks(queues []model.QueueID) []int32 {
	busy := o.s.view.Busy()
	o.SortQueues(busy)
	all, ranks := make([]int32, len(o.s.view.Queues)), make([]int32, len(queues))
	for i, q := range busy {
		all[q] = int32(i) + 1
	}
	for i, q := range queues {
		ranks[i] = all[q] - 1
	}
	return ranks
}

// CompareVictimQueues compares two queues by the order in which they lose tasks to a claimant's queue. If no plugin distinguishes them, it
// is the reverse of CompareQueues.
func (o Order) CompareVictimQueues(l, r, claimant model.QueueID) Comparison {
	c := o.s.by.compareVictimQueues(l, r, claimant)
	return Comparison{c, o.s.by.lessVictimQueue(o.s.view, l, r, claimant)}
}

// CompareJobs compares two jobs by order of service. If no plugin distinguishes them, the older one comes first, then the one with the
// smaller uid.
func (o Order) CompareJobs(l, r model.JobID) Comparison {
	c := o.s.by.compareJobs(l, r)
	if c != 0 {
		return Comparison{c, c < 0}
	}
	lj, rj := o.s.view.Jobs.At(l), o.s.view.Jobs.At(r)
	return Comparison{0, older(lj.CreateTime, rj.CreateTime, lj.UID, rj.UID)}
}

// CompareTasks compares two tasks by order of service. If no plugin distinguishes them, the smaller index within the role comes first, then
// the older one, then the one with the smaller uid.
func (o Order) CompareTasks(l, r model.TaskID) Comparison {
	c := o.s.by.compareTasks(l, r)
	return Comparison{c, o.s.by.lessTask(o.s.view, l, r)}
}

// CompareVictims compares two candidates by order of eviction for a claimant: by their queues, then by their jobs, then by themselves, the
// last in service first (Volcano's BuildVictimsPriorityQueue).
func (o Order) CompareVictims(l, r, claimant model.TaskID) Comparison {
	return o.s.by.compareVictims(o.s.view, l, r, o.s.view.QueueOf(claimant))
}

// SortVictims sorts candidates by order of eviction for a claimant.
func (o Order) SortVictims(claimant model.TaskID, candidates []model.TaskID) {
	sortVictims(o.s.view, &o.s.by, claimant, candidates)
}

// Sort sorts distinct ids by less, which orders any two. A comparison that is not transitive has no sorted order; the result then depends
// only on the comparison and the order of name.
func Sort[ID ~int32](ids []ID, name func(l, r ID) int, less func(l, r ID) bool) {
	slices.SortFunc(ids, name)
	slices.SortStableFunc(ids, func(l, r ID) int {
		switch {
		case l == r:
			return 0
		case less(l, r):
			return -1
		}
		return 1
	})
}

// SortQueues sorts queues by order of service.
func (o Order) SortQueues(queues []model.QueueID) {
	if _, sorted := o.SortQueuesOnce(queues); sorted {
		return
	}
	Sort(queues, o.s.queueName, func(l, r model.QueueID) bool { return o.CompareQueues(l, r).Less })
}

// SortJobs sorts jobs by order of service.
func (o Order) SortJobs(jobs []model.JobID) {
	Sort(jobs, o.s.jobName, func(l, r model.JobID) bool { return o.CompareJobs(l, r).Less })
}

// Pending lists the pending jobs in the order of the enqueue action: queue by queue, job by job. Volcano puts a queue back after each of
// its jobs, but enqueueing does not change the order of queues or jobs.
func (o Order) Pending() []model.JobID {
	pending := o.s.byQueue(func(j model.JobID) bool { return o.s.view.Phase(j) == model.PhasePending })
	return slices.Concat(pending...)
}

func (s *Session) queueName(l, r model.QueueID) int {
	return strings.Compare(s.view.Queues[l].Name, s.view.Queues[r].Name)
}

func (s *Session) jobName(l, r model.JobID) int {
	return strings.Compare(s.view.Jobs.At(l).UID, s.view.Jobs.At(r).UID)
}

func (t *table) compareQueues(l, r model.QueueID) int {
	for _, p := range t.queueOrder {
		if c := p.CompareQueues(l, r); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) compareVictimQueues(l, r, claimant model.QueueID) int {
	for _, p := range t.victimQueueOrder {
		if c := cmp.Compare(p.Nearness(r, claimant), p.Nearness(l, claimant)); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) compareJobs(l, r model.JobID) int {
	for _, p := range t.jobOrder {
		if c := p.CompareJobs(l, r); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) compareTasks(l, r model.TaskID) int {
	for _, p := range t.taskOrder {
		if c := p.CompareTasks(l, r); c != 0 {
			return c
		}
	}
	return 0
}

func (t *table) lessVictimQueue(v *policy.View, l, r, claimant model.QueueID) bool {
	if c := t.compareVictimQueues(l, r, claimant); c != 0 {
		return c < 0
	}
	c := t.compareQueues(l, r)
	return c > 0 || c == 0 && !olderQueue(v, l, r)
}

func (t *table) lessTask(v *policy.View, l, r model.TaskID) bool {
	if c := t.compareTasks(l, r); c != 0 {
		return c < 0
	}
	lt, rt := v.Tasks.At(l), v.Tasks.At(r)
	switch {
	case lt.Index >= 0 && rt.Index >= 0 && lt.Index != rt.Index:
		return lt.Index < rt.Index
	case lt.CreateTime != rt.CreateTime:
		return lt.CreateTime < rt.CreateTime
	}
	return v.CompareTasks(l, r) < 0
}

// compareVictims compares jobs only by the plugins, without Volcano's fallback between jobs.
func (t *table) compareVictims(v *policy.View, l, r model.TaskID, claimant model.QueueID) Comparison {
	lj, rj := v.Tasks.At(l).Job, v.Tasks.At(r).Job
	if lq, rq := v.Jobs.At(lj).Queue, v.Jobs.At(rj).Queue; lq != rq {
		c := t.compareVictimQueues(lq, rq, claimant)
		if c == 0 {
			c = -t.compareQueues(lq, rq)
		}
		return Comparison{c, t.lessVictimQueue(v, lq, rq, claimant)}
	}
	if lj != rj {
		if c := t.compareJobs(lj, rj); c != 0 {
			return Comparison{-c, c > 0}
		}
	}
	return Comparison{-t.compareTasks(l, r), !t.lessTask(v, l, r)}
}

func olderQueue(v *policy.View, l, r model.QueueID) bool {
	lq, rq := &v.Queues[l], &v.Queues[r]
	return older(lq.CreateTime, rq.CreateTime, lq.Name, rq.Name)
}

func older(l, r int64, lName, rName string) bool {
	if l != r {
		return l < r
	}
	return lName < rName
}

// byQueue lists the jobs that a condition holds for: a list for each queue that has some, in queue order, each in job order.
func (s *Session) byQueue(holds func(model.JobID) bool) [][]model.JobID {
	of := make(map[model.QueueID][]model.JobID)
	var queues []model.QueueID
	for _, j := range s.view.Present() {
		if !holds(j) {
			continue
		}
		q := s.view.Jobs.At(j).Queue
		if of[q] == nil {
			queues = append(queues, q)
		}
		of[q] = append(of[q], j)
	}
	s.Order().SortQueues(queues)
	lists := make([][]model.JobID, len(queues))
	for i, q := range queues {
		s.Order().SortJobs(of[q])
		lists[i] = of[q]
	}
	return lists
}
