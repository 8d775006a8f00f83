package volcano

import (
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
)

// enqueue lets jobs into their queues: queue by queue, since an admission changes no share, and in each the first job first. A job that is
// refused is not asked for again.
func (r *run) enqueue() {
	var queues []model.QueueID
	waiting := map[model.QueueID]*cycle.Line[model.JobID]{}
	for _, j := range r.jobs {
		q := r.queueOf(j)
		if waiting[q] == nil {
			waiting[q] = r.jobLine()
			queues = append(queues, q)
		}
		if r.view.Phase(j) == model.PhasePending {
			waiting[q].Put(j)
		}
	}
	line := r.queueLine(queues...)
	for !line.Empty() && !r.stop() {
		q := line.Take()
		if waiting[q].Empty() {
			continue
		}
		if j := waiting[q].Take(); r.Job(j).Enqueue(nil) {
			r.tell(&cycle.Decision{Action: cycle.Enqueue, Job: j})
		}
		line.Put(q)
	}
}

// letIn is what allocate does where no action admits jobs: all that are pending enter, and no plugin is asked or told.
func (r *run) letIn() {
	for _, j := range r.jobs {
		if r.view.Phase(j) == model.PhasePending {
			r.view.SetPhase(j, model.PhaseInqueue)
			r.tell(&cycle.Decision{Action: cycle.Enqueue, Job: j})
		}
	}
}
