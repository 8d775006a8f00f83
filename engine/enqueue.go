package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Enqueueable reports whether a job may enter its queue by the plugins' votes, regardless of its phase: no opinion is a permit (Volcano's
// JobEnqueueable). A permit books what the plugins book.
func (s *Session) Enqueueable(j model.JobID, why *policy.Reasons) bool {
	return s.enqueueVote(j, why) != policy.Reject
}

func (s *Session) enqueueVote(j model.JobID, why *policy.Reasons) policy.Vote {
	vote, tier := policy.Abstain, 0
	for _, e := range s.by.enqueue {
		if vote == policy.Permit && e.tier != tier {
			break
		}
		tier = e.tier
		switch e.part.Enqueueable(j, why) {
		case policy.Reject:
			return policy.Reject
		case policy.Permit:
			vote, s.permitted = policy.Permit, true
		case policy.Abstain:
		}
	}
	return vote
}

// Enqueue does for one job what Volcano's enqueue action does: only a pending job is considered, a job without minimum resources enters
// without a check, and an admitted job is then in phase Inqueue. It reports whether the job was admitted.
func (s *Session) Enqueue(j model.JobID, why *policy.Reasons) bool {
	if !s.pending(j, why) {
		return false
	}
	if s.view.Jobs.At(j).MinResources.Absent() {
		why.Add(policy.Because("", policy.NoMinResources, model.None))
	} else if !s.Enqueueable(j, why) {
		return false
	}
	s.admit(j)
	return true
}

func (s *Session) pending(j model.JobID, why *policy.Reasons) bool {
	if s.view.Phase(j) == model.PhasePending {
		return true
	}
	why.Add(policy.Because("", policy.JobNotPending, model.None))
	return false
}

func (s *Session) admit(j model.JobID) {
	for _, e := range s.by.enqueued {
		e.Enqueued(j)
	}
	s.view.SetPhase(j, model.PhaseInqueue)
}

// PendingInOrder lists the pending jobs in the order of the enqueue action: queue by queue, job by job. Volcano puts a queue back after
// each of its jobs, but enqueueing does not change the order of queues or jobs.
func (s *Session) PendingInOrder() []model.JobID {
	pending := s.byQueue(func(j model.JobID) bool { return s.view.Phase(j) == model.PhasePending })
	return slices.Concat(pending...)
}
