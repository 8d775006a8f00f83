package volcano

import "github.com/apportion/apportion/engine/model"

// close writes the phases of jobs and the nominations, as Volcano does at the end of a session. What the session has bound does not count
// yet: such a job is in its queue still.
func (c *Cycle) close(r *run) {
	gang := r.loaded("gang")
	for _, j := range r.jobs {
		if to := r.phase(j, gang); to != r.view.Phase(j) {
			r.view.SetPhase(j, to)
		}
	}
	for t, n := range r.promised {
		switch r.view.Status(t) {
		case model.Pending, model.Allocated, model.Pipelined:
			if c.Nominated == nil {
				c.Nominated = map[model.TaskID]model.NodeID{}
			}
			c.Nominated[t] = n
		default:
		}
	}
}

// phase returns the phase of a job at the end of a session.
func (r *run) phase(j model.JobID, gang bool) model.Phase {
	job, account := r.view.Jobs.At(j), r.view.Account(j)
	tasks := &account.Tasks
	if gang && account.AllTasks() > 0 && account.Ready()+account.PendingBestEffort < job.MinAvailable && tasks[model.Running] > 0 {
		return model.PhaseUnknown
	}
	ended := tasks[model.Succeeded] + tasks[model.Failed]
	switch begun := tasks[model.Running] + tasks[model.Bound] + ended; {
	case begun >= job.MinAvailable && begun == ended:
		return model.PhaseCompleted
	case begun >= job.MinAvailable:
		return model.PhaseRunning
	case r.view.Phase(j) == model.PhaseInqueue:
		return model.PhaseInqueue
	}
	return model.PhasePending
}
