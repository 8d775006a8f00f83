package volcano

import (
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// allocate gives out what is free. A queue has one turn after another as long as it has jobs and is not overused. In a turn its first job
// takes tasks until it is ready, so up to its minimum at first, then one task a turn.
func (r *run) allocate() {
	if !r.enqueues {
		r.letIn()
	}
	tasks := map[model.JobID]*cycle.Line[model.TaskID]{}
	var jobs []model.JobID
	for _, j := range r.jobs {
		if !r.served(j) || r.stop() {
			continue
		}
		if waiting := r.pending(j, r.asks); len(waiting) > 0 {
			jobs = append(jobs, j)
			tasks[j] = r.taskLine(waiting)
		}
	}
	w := r.lineUp(jobs)
	for !w.queues.Empty() && !r.stop() {
		q := w.queues.Take()
		if r.IsOverused(q, nil) || w.jobs[q].Empty() {
			continue
		}
		j := w.jobs[q].Take()
		if r.turn(j, tasks[j]) && !tasks[j].Empty() {
			w.jobs[q].Put(j)
		}
		w.queues.Put(q)
	}
}

// turn gives a job tasks until it is ready, and reports whether it is: what it took is then final. If it is not, but will be once there is
// room, what it took stays taken for the session, and nothing is bound. Else all is taken back.
func (r *run) turn(j model.JobID, tasks *cycle.Line[model.TaskID]) bool {
	m := memory{}
	for !tasks.Empty() && !r.stop() {
		t := tasks.Take()
		if !r.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) {
			continue
		}
		if g, ok := r.role(t); ok && r.failed[g] {
			continue
		}
		fits := r.nodesFor(t, m)
		if len(fits) == 0 {
			r.failed[r.view.Tasks.At(t).Group] = true
			if r.goesOn(j) {
				continue
			}
			break
		}
		n, as := r.choose(t, fits)
		r.place(t, n, as, false)
		if r.Job(j).Ready(nil) {
			break
		}
	}
	switch {
	case r.Job(j).Ready(nil):
		r.commit(j)
		return true
	case r.Job(j).Pipelined(nil):
		r.hold(j)
	default:
		r.undo(0)
	}
	return false
}

// hold leaves an attempt as it is: nothing is bound, and what it took stays taken.
func (r *run) hold(j model.JobID) {
	d := &cycle.Decision{Action: r.action, Job: j}
	for _, o := range r.attempt {
		if o.kind == pipelined {
			r.promise(o.task, d)
		}
	}
	r.attempt = r.attempt[:0]
	if len(d.Promised) > 0 {
		r.tell(d)
	}
}

// nodesFor lists the nodes on which a task has room, now or once what is being released is gone: the node nominated for it alone, if it is
// one.
func (r *run) nodesFor(t model.TaskID, m memory) []model.NodeID {
	if n := r.nomination(t); n != model.None && r.fitsIn(t, n, future) {
		if fits := r.search(t, []model.NodeID{n}, m, false, future); len(fits) > 0 {
			return fits
		}
	}
	return r.search(t, r.order, m, false, future)
}

// nomination returns the node that an earlier session nominated for a task, or model.None.
func (r *run) nomination(t model.TaskID) model.NodeID {
	if n, known := r.nominated[t]; known {
		return n
	}
	return r.view.NominatedNode(t)
}

// goesOn reports whether a job of which a role has failed may still get what it needs: it has more tasks than its minimum, and the other
// roles suffice, or each role that failed has its own minimum.
func (r *run) goesOn(j model.JobID) bool {
	job, account := r.view.Jobs.At(j), r.view.Account(j)
	if job.MinAvailable >= account.AllTasks() {
		return false
	}
	sum, others := int64(0), int32(0)
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		sum += int64(max(r.view.Groups.At(g).MinAvailable, 0))
		if !r.failed[g] {
			others += account.GroupTasks[g-job.FirstGroup][model.Pending]
		}
	}
	if int64(job.MinAvailable) < sum {
		return account.Ready()+others >= job.MinAvailable
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		at := int(g - job.FirstGroup)
		if r.failed[g] && account.GroupReady(at)+account.GroupPendingBestEffort[at] < r.view.Groups.At(g).MinAvailable {
			return false
		}
	}
	return true
}

// backfill gives pods without requests a node. What such pods were promised is taken back first.
func (r *run) backfill() {
	var jobs []model.JobID
	waiting := map[model.JobID][]model.TaskID{}
	for _, j := range r.jobs {
		if !r.served(j) || r.stop() {
			continue
		}
		job := r.view.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if r.view.Status(t) == model.Pipelined && r.bestEffort(t) {
				r.unplace(t)
			}
		}
		if waiting[j] = r.pending(j, r.bestEffort); len(waiting[j]) > 0 {
			jobs = append(jobs, j)
		}
	}
	w := r.lineUp(jobs)
	for !w.queues.Empty() {
		q := w.queues.Take()
		for !w.jobs[q].Empty() {
			j := w.jobs[q].Take()
			for tasks := r.taskLine(waiting[j]); !tasks.Empty() && !r.stop(); {
				r.fill(j, tasks.Take())
			}
		}
	}
}

// fill gives a pod without requests the best node. It is bound once its job is ready, with all that the job was given before.
func (r *run) fill(j model.JobID, t model.TaskID) {
	fits := r.search(t, r.order, nil, false, nil)
	if len(fits) == 0 {
		r.failed[r.view.Tasks.At(t).Group] = true
		return
	}
	r.put(t, r.best(t, fits), allocated)
	r.attempt = r.attempt[:0]
	if !r.Job(j).Ready(nil) {
		return
	}
	d, job := &cycle.Decision{Action: r.action, Job: j}, r.view.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if r.view.Status(t) == model.Allocated {
			r.bind(t, d)
		}
	}
	r.tell(d)
}
