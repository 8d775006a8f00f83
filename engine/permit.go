package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Job answers for one job whether it can be scheduled, runs, starves, or may enter its queue.
type Job struct {
	s  *Session
	id model.JobID
}

// Job returns the questions about a job.
func (s *Session) Job(j model.JobID) Job { return Job{s, j} }

// Valid reports whether the job can be scheduled at all, according to every plugin.
func (j Job) Valid(why *policy.Reasons) bool {
	for _, p := range j.s.by.valid {
		if !p.Valid(j.id, why) {
			return false
		}
	}
	return true
}

// Ready reports whether enough tasks of the job run, according to every plugin.
func (j Job) Ready(why *policy.Reasons) bool {
	for _, p := range j.s.by.ready {
		if !p.Ready(j.id, why) {
			return false
		}
	}
	return true
}

// Pipelined reports whether enough tasks of the job run or wait for resources that are being released, by the plugins' votes: the first
// tier with a permit and no rejection decides, a rejection decides at once, and no opinion is a yes (Volcano's JobPipelined).
func (j Job) Pipelined(why *policy.Reasons) bool {
	permitted, tier := false, 0
	for _, e := range j.s.by.pipelined {
		if permitted && e.tier != tier {
			break
		}
		tier = e.tier
		switch e.part.Pipelined(j.id, why) {
		case policy.Reject:
			return false
		case policy.Permit:
			permitted = true
		case policy.Abstain:
		}
	}
	return true
}

// Starving reports whether the job lacks tasks that it needs: the first tier with an opinion decides, and all its plugins must agree
// (Volcano's JobStarving). Without any opinion no job starves.
func (j Job) Starving(why *policy.Reasons) bool {
	if len(j.s.by.starving) == 0 {
		why.Add(policy.Because("", policy.NotStarving, model.None))
		return false
	}
	for i, e := range j.s.by.starving {
		if i > 0 && e.tier != j.s.by.starving[0].tier {
			break
		}
		if !e.part.Starving(j.id, why) {
			return false
		}
	}
	return true
}

// Waiting lists the jobs that wait for admission or have waiting tasks: queue by queue in queue order, job by job in job order.
func (s *Session) Waiting() []model.JobID {
	return slices.Concat(s.byQueue(s.Host().Waits)...)
}

// Waits reports whether a job is to be admitted, or has pending tasks, or lacks tasks that it needs to start.
func (h Host) Waits(j model.JobID) bool {
	pending := h.view.Account(j).Tasks[model.Pending] > 0
	switch h.view.Phase(j) {
	case model.PhaseCompleted:
		return false
	case model.PhasePending, model.PhaseInqueue:
		return pending || !h.Job(j).Ready(nil) || h.view.Account(j).AllTasks() == 0
	default:
		return pending
	}
}

// CreatesTasks reports whether the tasks of a job are created once it has entered its queue, as Volcano does.
func (h Host) CreatesTasks(j model.JobID) bool {
	return h.view.Phase(j) == model.PhasePending && h.view.Account(j).AllTasks() == 0
}

// Occupies reports whether a job holds resources, or resources of it are being released.
func (h Host) Occupies(j model.JobID) bool {
	account := h.view.Account(j)
	return account.Holding()+account.Tasks[model.Releasing] > 0
}

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
// check, and an admitted job is then in phase Inqueue. Without that action every job enters, and nobody books it. It reports whether the
// job was admitted.
func (j Job) Enqueue(why *policy.Reasons) bool {
	if !j.pending(why) {
		return false
	}
	if !j.s.policy.Acts(ActionEnqueue) {
		// Volcano's allocate lets every job in (pkg/scheduler/actions/allocate/allocate.go, pickUpQueuesAndJobs).
		why.Add(Missing(ActionEnqueue))
		j.s.view.SetPhase(j.id, model.PhaseInqueue)
		return true
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

// Allocatable reports whether every plugin permits the tasks' queue to use their requests. The tasks belong to one queue; several are
// tested as their sum. A plugin may give reasons for a permit; a rejection has only the reasons of the plugin that rejects.
func (s *Session) Allocatable(tasks []model.TaskID, mode policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	q, r := s.request(tasks)
	before := why.Len()
	for _, p := range s.by.allocatable {
		permits := why.Len()
		if !p.Allocatable(q, r, mode, why, checks) {
			why.Drop(before, permits)
			return false
		}
	}
	return true
}

// Preemptive reports whether every plugin permits the tasks' queue to take their requests from others.
func (s *Session) Preemptive(tasks []model.TaskID, why *policy.Reasons, checks *policy.Checks) bool {
	q, r := s.request(tasks)
	for _, p := range s.by.preemptive {
		if !p.Preemptive(q, r, why, checks) {
			return false
		}
	}
	return true
}

// request sums what tasks ask for; the row is valid until the next question.
func (s *Session) request(tasks []model.TaskID) (model.QueueID, policy.Request) {
	v := s.view
	q := v.QueueOf(tasks[0])
	row := v.Request(tasks[0])
	if len(tasks) > 1 {
		sum := &s.scratch
		sum.Clear(row.Has)
		for _, t := range tasks {
			sum.Add(v.Request(t))
		}
		row = *sum
	}
	return q, policy.Request{Row: row, BestEffort: v.BestEffort(row), Tasks: tasks}
}

// IsOverused reports whether a queue is overused according to some plugin.
func (s *Session) IsOverused(q model.QueueID, why *policy.Reasons) bool {
	for _, p := range s.by.overused {
		if p.Overused(q, why) {
			return true
		}
	}
	return false
}

// IsPassedOver is IsOverused for a scheduler that asks this before it takes from others too, as Volcano does: a queue is not passed over
// that may take what it is entitled to.
func (s *Session) IsPassedOver(q model.QueueID, why *policy.Reasons) bool {
	plans := s.Reclaim().Plans()
	for _, p := range s.by.overused {
		if !p.Overused(q, why) {
			continue
		}
		if planner, ok := p.(policy.Planner); !ok || !plans || !planner.Entitles(q) {
			return true
		}
	}
	return false
}

// reclaimPassesOver reports whether reclaim passes a queue over. Volcano's action takes nothing for an overused queue, because such a queue
// has all that it deserves. A policy that plans decides by what the claimant is entitled to: its queue may be at a limit, and the place of
// another below that limit be what it is entitled to.
func (s *Session) reclaimPassesOver(q model.QueueID) bool {
	plans := s.Reclaim().Plans()
	return slices.ContainsFunc(s.by.overused, func(o policy.Overuser) bool {
		_, planner := o.(policy.Planner)
		return !(plans && planner) && o.Overused(q, nil)
	})
}

// Sum adds up what tasks ask for.
func (h Host) Sum(tasks []model.TaskID) resource.Row {
	sum := resource.NewRow(h.view.Dims.Len())
	for _, t := range tasks {
		sum.Add(h.view.Request(t))
	}
	return sum
}
