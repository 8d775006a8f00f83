package volcano

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// claimants are the jobs that an action serves and that lack tasks.
func (r *run) claimants() []model.JobID {
	return slices.DeleteFunc(slices.Clone(r.jobs), func(j model.JobID) bool {
		return !r.served(j) || !r.Job(j).Starving(nil)
	})
}

// preempt evicts tasks of the claimant's own queue: for each queue first those of other jobs, as long as its jobs lack tasks, then, for the
// jobs that lacked tasks when the action began, those of the job itself.
func (r *run) preempt() {
	jobs := r.claimants()
	tasks, m := map[model.JobID]*cycle.Line[model.TaskID]{}, memory{}
	for _, j := range jobs {
		tasks[j] = r.taskLine(r.pending(j, every))
	}
	w := r.lineUp(jobs)
	for !w.queues.Empty() {
		q := w.queues.Take()
		for line := w.jobs[q]; !line.Empty() && !r.stop(); {
			j := line.Take()
			last := false
			for r.Job(j).Starving(nil) && !tasks[j].Empty() {
				t := tasks[j].Take()
				last = r.preemptFor(t, m, func(c model.TaskID) bool { return r.view.Tasks.At(c).Job != j })
			}
			if r.keep(j) && last {
				line.Put(j)
			}
		}
		for _, j := range jobs {
			if r.queueOf(j) == q {
				r.preemptOwn(j, m)
			}
		}
	}
}

// preemptOwn evicts tasks of a job for others of it, each success for itself, until one fails.
func (r *run) preemptOwn(j model.JobID, m memory) {
	for tasks := r.taskLine(r.pending(j, every)); !tasks.Empty() && !r.stop(); {
		t := tasks.Take()
		done := r.preemptFor(t, m, func(c model.TaskID) bool { return r.view.Tasks.At(c).Job == j })
		r.commit(j)
		if !done {
			return
		}
	}
}

// preemptFor places a task on the first node, by score, on which its queue may have it and it fits once tasks there are evicted of those
// that a condition holds for, and reports whether there is one. There may be room without an eviction.
func (r *run) preemptFor(t model.TaskID, m memory, of func(c model.TaskID) bool) bool {
	if r.view.NeverPreempts(t) || r.nominates(t) {
		return false
	}
	claim := claim{task: t, of: func(c model.TaskID) bool {
		status := r.view.Status(c)
		return (status == model.Running || status == model.Bound) && r.view.QueueOf(c) == r.view.QueueOf(t) && of(c) &&
			(r.asks(t) || r.bestEffort(c))
	}}
	room := func() bool {
		return r.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil)
	}
	for _, n := range r.byScore(t, slices.Clone(r.search(t, r.order, m, true, nil))) {
		if r.stop() {
			return false
		}
		victims, enough := r.victims(claim, r.candidates(n, claim.of), r.Preempt(), n)
		if !enough {
			continue
		}
		few, asked := len(r.attempt), false
		for line := r.victimLine(t, victims); !line.Empty() && !(room() && r.fitsIn(t, n, future)); {
			v := line.Take()
			asked = asked || r.asks(v)
			r.evict(v)
		}
		if room() && r.fitsIn(t, n, future) {
			r.place(t, n, pipelined, asked)
			return !r.PlacesNothing()
		}
		r.undo(few)
	}
	return false
}

// nominates reports whether an earlier session nominated a node for a task on which it is admitted still: it then evicts no task. A filter
// that did not prepare for the task in this session admits it nowhere.
func (r *run) nominates(t model.TaskID) bool {
	n := r.nomination(t)
	if n == model.None {
		return false
	}
	if !r.FiltersNodes() {
		return true
	}
	return r.prepared[t] && r.admits(t, n, false)
}

// claim is a task that asks for room, and which tasks may be evicted for it as far as the action is concerned.
type claim struct {
	task model.TaskID
	of   func(c model.TaskID) bool
}

// candidates lists the tasks on a node that may be preempted and that a condition holds for.
func (r *run) candidates(n model.NodeID, of func(c model.TaskID) bool) []model.TaskID {
	var list []model.TaskID
	for _, c := range r.nodes[n].tasks {
		if r.view.Tasks.At(c).Preemptable && of(c) {
			list = append(list, c)
		}
	}
	return list
}

// victims asks the policy about all candidates of a node at once. enough says that the claimant fits once they are all gone.
func (r *run) victims(c claim, candidates []model.TaskID, by engine.Victims, n model.NodeID) (victims []model.TaskID, enough bool) {
	r.spend(len(candidates) * max(by.Voters(), 1))
	if len(candidates) > 0 && r.err == nil {
		choice := by.Choose(&policy.Claim{Tasks: []model.TaskID{c.task}, Candidates: candidates}, false)
		victims = choice.Victims
	}
	free := r.nodes[n].future.Clone()
	for _, v := range victims {
		free.Add(r.view.Request(v))
	}
	return victims, resource.FirstUncovered(free, r.view.Request(c.task)) < 0
}

// reclaim evicts tasks of other queues for the jobs of queues that are not overused.
func (r *run) reclaim() {
	m := memory{}
	r.reclaimers(true, func(j model.JobID) {
		for tasks := r.taskLine(r.pending(j, every)); !tasks.Empty() && r.Job(j).Starving(nil) && !r.stop(); {
			t := tasks.Take()
			if !r.view.NeverPreempts(t) && r.Preemptive([]model.TaskID{t}, nil, nil) {
				r.reclaimFor(t, m)
			}
		}
		r.keep(j)
	})
}

// reclaimers calls serve for each job that lacks tasks, queue by queue, and passes over overused queues if that is asked for.
func (r *run) reclaimers(overused bool, serve func(j model.JobID)) {
	var queues []model.QueueID
	jobs := map[model.QueueID]*cycle.Line[model.JobID]{}
	for _, j := range r.jobs {
		if !r.served(j) {
			continue
		}
		q := r.queueOf(j)
		if jobs[q] == nil {
			queues, jobs[q] = append(queues, q), r.jobLine()
		}
		if r.Job(j).Starving(nil) {
			jobs[q].Put(j)
		}
	}
	for line := r.queueLine(queues...); !line.Empty(); {
		q := line.Take()
		if overused && r.IsOverused(q, nil) {
			continue
		}
		for !jobs[q].Empty() && !r.stop() {
			serve(jobs[q].Take())
		}
	}
}

// reclaimFor places a task on the first node, in the order of the snapshot, that has candidates and on which it fits once those are evicted
// that the policy names.
func (r *run) reclaimFor(t model.TaskID, m memory) {
	c := claim{task: t, of: func(c model.TaskID) bool {
		q := r.view.QueueOf(c)
		return r.view.Status(c) == model.Running && q != r.view.QueueOf(t) && r.view.Queues[q].Reclaimable
	}}
	for _, n := range slices.Clone(r.search(t, r.order, m, true, nil)) {
		if r.stop() {
			return
		}
		candidates := r.candidates(n, c.of)
		if len(candidates) == 0 {
			continue
		}
		victims, enough := r.victims(c, candidates, r.Reclaim(), n)
		if !enough {
			continue
		}
		few, emptied := len(r.attempt), false
		for line := r.victimLine(t, victims); !line.Empty() && !r.fitsIn(t, n, future); {
			r.evict(line.Take())
			emptied = true
		}
		if r.fitsIn(t, n, future) {
			r.place(t, n, pipelined, emptied)
			return
		}
		r.undo(few)
	}
}

// shuffle evicts the tasks that the policy names, in no job's place.
func (r *run) shuffle() {
	var running []model.TaskID
	for _, j := range r.jobs {
		job := r.view.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if r.view.Status(t) == model.Running {
				running = append(running, t)
			}
		}
	}
	for _, t := range r.VictimTasks(running) {
		r.evict(t)
		r.commit(r.view.Tasks.At(t).Job)
	}
}
