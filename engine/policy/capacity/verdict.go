package capacity

import (
	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
)

// Allocatable reports whether a queue and all its ancestors stay within real capability in every dimension that is asked for, `pods` left
// out. A session asks for an open queue (the states of ancestors do not count), a simulation only for the numbers. why receives the first
// account that does not fit, or all if it requests them; checks receives all.
func (s *State) Allocatable(q model.QueueID, r policy.Request, mode policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	if s.refused(why, checks) || !s.admits(q, mode, why, checks) {
		return false
	}
	fits := true
	for at := q; at != model.None; at = s.above(at) {
		if !s.within(at, r.Row, why, checks) {
			fits = false
			if !why.All() {
				why = nil
			}
			if checks == nil && why == nil {
				break
			}
		}
	}
	return fits
}

// Preemptive reports whether a queue, being open, stays within real capability as in Allocatable, its ancestors not asked, and within
// deserved in at least one dimension that is asked for; where the queue itself does not, any of the nearest ancestors below the root may
// (AncestorReclaimLevel). Best effort asks for no dimension and never may.
func (s *State) Preemptive(q model.QueueID, r policy.Request, why *policy.Reasons, checks *policy.Checks) bool {
	if s.refused(why, checks) || !s.partOf(q, why, checks) || !s.open(q, why, checks) || !s.within(q, r.Row, why, checks) {
		return false
	}
	asked := r.Row.Positive() &^ s.v.Dims.Pods()
	if asked == 0 {
		return policy.Refuse(why, checks, policy.Because(name, policy.BestEffortClaimant, q))
	}
	if s.deserves(q, r.Row, asked, checks) {
		return true
	}
	at := q
	for range s.level {
		if at = s.above(at); at == model.None || s.above(at) == model.None {
			break
		}
		if s.deserves(at, r.Row, asked, checks) {
			return true
		}
	}
	why.Add(s.comparison(policy.NoDimensionWithinDeserved, q, asked.First(), s.allocated[q], r.Row, s.deserved[q]))
	return false
}

// Enqueueable permits a job if in its queue and in all ancestors the job's minimum, what is allocated and what is admitted, less what is
// elastic, stay within real capability, in the dimensions that the minimum asks for, `pods` left out. A permit before policy.V116 adds the
// minimum, less what gated tasks ask for, to what is admitted in all of them. A job without a minimum needs only an open queue.
func (s *State) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	job := s.v.Jobs.At(j)
	if s.refused(why, nil) || !s.admits(job.Queue, policy.InSession, why, nil) {
		return policy.Reject
	}
	if job.MinResources.Absent() {
		return policy.Permit
	}
	fits := true
	for q := job.Queue; q != model.None && (fits || why.All()); q = s.above(q) {
		if !account.Fits(name, q, job.MinResources, s.allocated[q], s.inqueue[q], s.elastic[q], s.realCapability[q], s.v.Dims.Pods(), why) {
			fits = false
		}
	}
	if !fits {
		return policy.Reject
	}
	if s.v.Release < policy.V116 {
		s.enqueue(j)
	}
	return policy.Permit
}

// Enqueued adds the minimum of an admitted job, less what gated tasks ask for, to what is admitted in its queue and in all ancestors, as
// policy.V116 does.
func (s *State) Enqueued(j model.JobID) {
	job := s.v.Jobs.At(j)
	if s.v.Release >= policy.V116 && !job.MinResources.Absent() && s.takesPart[job.Queue] {
		s.enqueue(j)
	}
}

func (s *State) enqueue(j model.JobID) {
	account.InqueueNeed(s.v, j, &s.need)
	for q := s.v.Jobs.At(j).Queue; q != model.None; q = s.above(q) {
		s.v.Journal.Row(&s.inqueue[q])
		s.inqueue[q].Add(s.need)
	}
}

// admits reports whether a queue accepts tasks and jobs at all: it takes part, is open (ignored in a simulation), and is a leaf.
func (s *State) admits(q model.QueueID, mode policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	if !s.partOf(q, why, checks) || mode == policy.InSession && !s.open(q, why, checks) {
		return false
	}
	return s.tree == nil || s.tree.IsLeaf(q) || policy.Refuse(why, checks, refusal(fault{Kind: hierarchy.NotLeaf, Node: q}))
}

// partOf reports whether the queue has an account: if flat, queues without jobs have none.
func (s *State) partOf(q model.QueueID, why *policy.Reasons, checks *policy.Checks) bool {
	return s.takesPart[q] || policy.Refuse(why, checks, policy.Because(name, policy.QueueTakesNoPart, q))
}

func (s *State) open(q model.QueueID, why *policy.Reasons, checks *policy.Checks) bool {
	return s.v.Queues[q].State == model.Open || policy.Refuse(why, checks, policy.Because(name, policy.QueueNotOpen, q))
}

// within reports whether one queue stays within its real capability, strictly and without tolerance.
func (s *State) within(q model.QueueID, request resource.Row, why *policy.Reasons, checks *policy.Checks) bool {
	limit, counted := s.realCapability[q], ^s.v.Dims.Pods()
	over := resource.Exceeding(limit, s.allocated[q], request, counted)
	if why == nil && checks == nil {
		return over == 0
	}
	noted := request.Positive() & counted
	if checks == nil {
		noted &= over
	}
	for m := noted; m != 0; m = m.Rest() {
		d := m.First()
		reason := s.comparison(policy.AboveRealCapability, q, d, s.allocated[q], request, limit)
		if over.Has(d) {
			why.Add(reason)
		}
		checks.Add(model.None, !over.Has(d), reason)
	}
	return over == 0
}

// deserves reports whether one queue stays within what it deserves in some dimension of asked, with the absolute tolerance Threshold. A
// dimension in which it would neither use nor deserve anything does not count (Volcano's LessEqualPartlyWithDimensionZeroFiltered).
func (s *State) deserves(q model.QueueID, request resource.Row, asked resource.Mask, checks *policy.Checks) bool {
	deserves := false
	for m := asked; m != 0; m = m.Rest() {
		d := m.First()
		used, limit := s.allocated[q].V[d]+request.V[d], s.deserved[q].V[d]
		if used < resource.Threshold && limit < resource.Threshold {
			continue
		}
		fits := used-limit < resource.Threshold
		deserves = deserves || fits
		if checks != nil {
			checks.Add(model.None, fits, s.comparison(policy.AboveDeserved, q, d, s.allocated[q], request, s.deserved[q]))
		} else if fits {
			break
		}
	}
	return deserves
}

func (s *State) comparison(code policy.Code, q model.QueueID, d int, have, need, limit resource.Row) policy.Reason {
	return policy.Reason{Plugin: name, Code: code, Queue: q, Dimension: d, Have: have.V[d], Need: need.V[d], Limit: limit.V[d]}
}
