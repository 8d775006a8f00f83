package engine

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Enqueueable reports whether the job may enter its queue by the plugins' votes, regardless of its phase: no opinion is a permit (Volcano's
// JobEnqueueable). A permit books what the plugins book.
func (j Job) Enqueueable(why *policy.Reasons) bool { return j.EnqueueVote(why) != policy.Reject }

// EnqueueVote is Enqueueable, but distinguishes no opinion from a permit. The first tier with a permit and no rejection decides; a
// rejection decides at once. A plugin's booking stays when a later plugin of its tier rejects. A plugin that keeps room
// decides before all tiers: jobs that were admitted before and wait must not keep out the one that they wait for.
func (j Job) EnqueueVote(why *policy.Reasons) policy.Vote {
	for _, e := range j.s.by.entering {
		if vote := e.Enqueueable(j.id, why); vote != policy.Abstain {
			return vote
		}
	}
	vote, tier := policy.Abstain, 0
	for _, e := range j.s.by.enqueue {
		if vote == policy.Permit && e.tier != tier {
			break
		}
		tier = e.tier
		switch e.part.Enqueueable(j.id, why) {
		case policy.Reject:
			return policy.Reject
		case policy.Permit:
			vote, j.s.permitted = policy.Permit, true
		case policy.Abstain:
		}
	}
	return vote
}

// Enqueue does what Volcano's enqueue action does: only a pending job is considered, a job without minimum resources enters without a
// check, and an admitted job is then in phase Inqueue. It reports whether the job was admitted.
func (j Job) Enqueue(why *policy.Reasons) bool {
	if !j.pending(why) {
		return false
	}
	if j.s.view.Jobs.At(j.id).MinResources.Absent() {
		why.Add(policy.Because("", policy.NoMinResources, model.None))
	} else if !j.Enqueueable(why) {
		return false
	}
	j.admit()
	return true
}

// Admit admits a pending job without asking for votes, because the scheduler has decided: the plugins book it, and its phase becomes
// Inqueue. It reports whether the job was pending.
func (j Job) Admit(why *policy.Reasons) bool {
	if !j.pending(why) {
		return false
	}
	j.admit()
	return true
}

func (j Job) pending(why *policy.Reasons) bool {
	if j.s.view.Phase(j.id) == model.PhasePending {
		return true
	}
	why.Add(policy.Because("", policy.JobNotPending, model.None))
	return false
}

func (j Job) admit() {
	for _, e := range j.s.by.enqueued {
		e.Enqueued(j.id)
	}
	j.s.view.SetPhase(j.id, model.PhaseInqueue)
}
