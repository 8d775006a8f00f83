package proportion

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
)

// Allocatable reports whether a queue stays within deserved in every dimension that is asked for; `pods` does not count. A session asks
// for an open queue, a simulation only for the numbers; best effort is always allocatable.
func (s *State) Allocatable(q model.QueueID, r policy.Request, mode policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	if mode == policy.InSession && !s.open(q, why, checks) {
		return false
	}
	if r.BestEffort {
		return true
	}
	deserved, allocated := s.deserved.Row(int(q)), s.allocated(q)
	over := resource.Exceeding(deserved, allocated, r.Row, ^s.v.Dims.Pods())
	if why != nil || checks != nil {
		noted := r.Row.Positive() &^ s.v.Dims.Pods()
		if checks == nil {
			noted &= over
		}
		for m := noted; m != 0; m = m.Rest() {
			d := m.First()
			reason := policy.Reason{
				Plugin: name, Code: policy.AboveDeserved, Queue: q, Dimension: d,
				Have: allocated.V[d], Need: r.Row.V[d], Limit: deserved.V[d],
			}
			if over.Has(d) {
				why.Add(reason)
			}
			checks.Add(model.None, !over.Has(d), reason)
		}
	}
	return over == 0
}

// Preemptive is Allocatable: a queue may take from others as long as it stays within deserved.
func (s *State) Preemptive(q model.QueueID, r policy.Request, why *policy.Reasons, checks *policy.Checks) bool {
	return s.Allocatable(q, r, policy.InSession, why, checks)
}

func (s *State) open(q model.QueueID, why *policy.Reasons, checks *policy.Checks) bool {
	return s.v.Queues[q].State == model.Open || policy.Refuse(why, checks, policy.Because(name, policy.QueueNotOpen, q))
}

// Enqueueable permits a job if its minimum, what the queue has allocated and what it has admitted, less what is elastic, stay within real
// capability, in the dimensions that the minimum asks for. A permit before policy.V116 adds the minimum, less what
// gated pods ask for, to what is admitted.
func (s *State) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	job := s.v.Jobs.At(j)
	q := job.Queue
	if !s.open(q, why, nil) {
		return policy.Reject
	}
	if job.MinResources.Absent() {
		return policy.Permit
	}
	limit := s.realCapability.Row(int(q))
	if !account.Fits(name, q, job.MinResources, s.allocated(q), s.inqueue(q), s.elastic(q), limit, s.v.Dims.Pods(), why) {
		return policy.Reject
	}
	if s.v.Release < policy.V116 {
		s.enqueue(j)
	}
	return policy.Permit
}

// Enqueued adds the minimum of an admitted job, less what gated pods ask for, to what is admitted, as policy.V116 does.
func (s *State) Enqueued(j model.JobID) {
	if s.v.Release >= policy.V116 && !s.v.Jobs.At(j).MinResources.Absent() {
		s.enqueue(j)
	}
}

func (s *State) enqueue(j model.JobID) {
	q := s.v.Jobs.At(j).Queue
	account.InqueueNeed(s.v, j, &s.need)
	s.changed.inqueue.Change(s.v, q, s.v.QueueSumOf(q).Inqueue).Add(s.need)
}

// ReclaimClass returns one class for all claimants: only the account of the candidate's queue counts.
func (*State) ReclaimClass(model.TaskID) (class uint64, local bool) { return 0, true }

// Reclaimable takes candidates, in the order given, whose queue has more than it deserves in some dimension, whatever the candidate uses
// and the claimant needs; each one taken is subtracted before the next is judged. Its vote is a permit even for no victims.
func (s *State) Reclaimable(_ model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	s.begin(candidates)
	for i, t := range candidates {
		s.v.Yield(i)
		q := s.losing[i]
		left := s.left(q)
		over := resource.Uncovered(s.deserved.Row(int(q)), left)
		if over == 0 {
			if g != nil {
				g.Protect(t, s.reason(q, left, t, s.v.Request(t).Positive()))
			}
			continue
		}
		if g.Explains() {
			g.Pass(t, s.reason(q, left, t, over))
		}
		dst = append(dst, t)
		s.take(q, s.v.Request(t))
	}
	return dst, policy.Permit
}

// reason compares what a queue has with what it deserves, in the dimension of mask where the former is largest in proportion.
func (s *State) reason(q model.QueueID, allocated resource.Row, t model.TaskID, mask resource.Mask) policy.Reason {
	deserved := s.deserved.Row(int(q))
	_, d := resource.DominantShare(allocated, deserved, mask&deserved.AtLeastThreshold())
	switch {
	case d >= 0:
	case mask == 0:
		return policy.Because(name, policy.WithinDeserved, q)
	default:
		d = mask.First()
	}
	return policy.Reason{
		Plugin: name, Code: policy.WithinDeserved, Queue: q,
		Dimension: d, Have: allocated.V[d], Need: s.v.Request(t).V[d], Limit: deserved.V[d],
	}
}

// begin starts a new round of judging with the accounts of queues in the session.
func (s *State) begin(candidates []model.TaskID) {
	s.losing = s.v.QueuesOf(candidates, s.losing)
	if s.running == nil {
		s.running, s.stamp = resource.NewAccounts(len(s.v.Queues), s.v.Dims.Len()), make([]uint32, len(s.v.Queues))
	}
	if s.epoch++; s.epoch == 0 {
		clear(s.stamp)
		s.epoch = 1
	}
}

// left returns what a queue has left after the victims so far.
func (s *State) left(q model.QueueID) resource.Row {
	if s.stamp[q] == s.epoch {
		return s.running[q]
	}
	return s.allocated(q)
}

// take subtracts a victim from the rest of its queue.
func (s *State) take(q model.QueueID, request resource.Row) {
	if s.stamp[q] != s.epoch {
		s.stamp[q] = s.epoch
		s.running[q].CopyFrom(s.allocated(q))
	}
	s.running[q].SubWithin(request)
}
