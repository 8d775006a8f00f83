package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
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

// Pipelined reports whether enough tasks of the job run or wait for resources that are being released, according to every plugin.
func (j Job) Pipelined(why *policy.Reasons) bool {
	for _, p := range j.s.by.pipelined {
		if !p.Pipelined(j.id, why) {
			return false
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
