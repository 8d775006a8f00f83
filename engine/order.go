package engine

import (
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

// CompareQueues compares two queues by order of service. If no plugin distinguishes them, the older one comes first, then the one with the
// smaller name.
func (s *Session) CompareQueues(l, r model.QueueID) Comparison {
	c := s.by.compareQueues(l, r)
	return Comparison{c, c < 0 || c == 0 && olderQueue(s.view, l, r)}
}

// CompareJobs compares two jobs by order of service. If no plugin distinguishes them, the older one comes first, then the one with the
// smaller uid.
func (s *Session) CompareJobs(l, r model.JobID) Comparison {
	c := s.by.compareJobs(l, r)
	if c != 0 {
		return Comparison{c, c < 0}
	}
	lj, rj := s.view.Jobs.At(l), s.view.Jobs.At(r)
	return Comparison{0, older(lj.CreateTime, rj.CreateTime, lj.UID, rj.UID)}
}

// CompareTasks compares two tasks by order of service. If no plugin distinguishes them, the smaller index within the role comes first, then
// the older one, then the one with the smaller uid.
func (s *Session) CompareTasks(l, r model.TaskID) Comparison {
	c := s.by.compareTasks(l, r)
	return Comparison{c, s.by.lessTask(s.view, l, r)}
}

// SortVictims sorts candidates by order of eviction for a claimant.
func (s *Session) SortVictims(claimant model.TaskID, candidates []model.TaskID) {
	sortVictims(s.view, &s.by, claimant, candidates)
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

// QueuesInOrder sorts queues by order of service.
func (s *Session) QueuesInOrder(queues []model.QueueID) {
	if len(s.by.queueOrder) > 0 {
		if r, ok := s.by.queueOrder[0].(policy.QueueRanker); ok && r.RankQueues(queues) {
			return
		}
	}
	if keyer, ok := s.keyer(); ok {
		s.sortKeyed(keyer, queues)
		return
	}
	Sort(queues, s.queueName, func(l, r model.QueueID) bool { return s.CompareQueues(l, r).Less })
}

// JobsInOrder sorts jobs by order of service.
func (s *Session) JobsInOrder(jobs []model.JobID) {
	Sort(jobs, s.jobName, func(l, r model.JobID) bool { return s.CompareJobs(l, r).Less })
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
		if c := p.CompareVictimQueues(l, r, claimant); c != 0 {
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
