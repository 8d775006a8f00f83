package main

import (
	"context"
	"iter"
	"slices"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/cycle"
)

// Eviction is a task that had to give way.
type Eviction struct {
	At    int64
	Queue string
	// Within is true for a preemption by a job of the same queue, false for a reclaim by another queue.
	Within bool
	// LostSeconds is the time of work that an evicted task has to repeat, on GPUs each.
	LostSeconds, GPUs int64
}

// round is the scheduler of one moment: package cycle says in which order it acts.
type round struct {
	state *State
	desk  *Desk
	// plans is true if the policy reclaims by plans.
	plans     bool
	evictions []Eviction
	// undo takes back what the attempt under way has done to the state, the last first.
	undo []func()
	// tentative evictions count when the attempt succeeds.
	tentative []Eviction
	// commits counts the attempts that succeeded, seen are the states after them, and repeats counts those that were seen before.
	commits, repeats int
	seen             map[string]bool
}

// decide runs a cycle on the state and returns who was evicted, and how often the cluster came back to where it was before.
func decide(ctx context.Context, decider *client.Client, policy Policy, state *State) (evictions []Eviction, repeats int, err error) {
	if len(state.jobs) == 0 {
		return nil, 0, nil
	}
	desk, err := openDesk(ctx, decider, policy.Message, state)
	if err != nil {
		return nil, 0, err
	}
	r := &round{state: state, desk: desk, plans: policy.Plans, seen: map[string]bool{state.key(): true}}
	c := cycle.Cycle[*Job]{Scheduler: r, Plans: policy.Plans}
	if err := c.Run(cycle.Actions()...); err != nil {
		return nil, 0, err
	}
	return r.evictions, r.repeats, desk.close()
}

// Enqueue lets jobs in.
func (r *round) Enqueue() error {
	admitted, err := r.desk.admit()
	for _, job := range admitted {
		job.Admitted = true
	}
	return err
}

// Waiting yields the admitted jobs that could use another task: the first job of the first queue, and then who is first after what was done
// for it. Reclaim by plans also serves queues that use all they may.
func (r *round) Waiting(action cycle.Action) iter.Seq2[*Job, error] {
	return func(yield func(*Job, error) bool) {
		waiting := make([][]*Job, len(r.state.cluster.Queues))
		for _, job := range r.state.jobs {
			if job.Admitted && job.pending() >= 0 {
				queue := r.state.cluster.queue(job.Queue)
				waiting[queue] = append(waiting[queue], job)
			}
		}
		for {
			queue, err := r.nextQueue(waiting, action.ServesOverused(r.plans))
			if queue < 0 && err == nil {
				return
			}
			var jobs []*Job
			if err == nil {
				jobs, err = r.desk.inOrder(waiting[queue])
			}
			if err != nil {
				yield(nil, err)
				return
			}
			before := r.commits
			if !yield(jobs[0], nil) {
				return
			}
			if action != cycle.Allocate || r.commits == before || jobs[0].pending() < 0 {
				jobs = jobs[1:]
			}
			waiting[queue] = jobs
		}
	}
}

// nextQueue is the first queue to be served that has a job waiting, -1 if there is none.
func (r *round) nextQueue(waiting [][]*Job, all bool) (int, error) {
	if !slices.ContainsFunc(waiting, func(jobs []*Job) bool { return len(jobs) > 0 }) {
		return -1, nil
	}
	queues, err := r.desk.queues(all)
	if err != nil {
		return -1, err
	}
	for _, queue := range queues {
		if len(waiting[queue]) > 0 {
			return queue, nil
		}
	}
	return -1, nil
}

// Allocate places tasks of a job where there is room until the job is ready. If a step fails, the state is unchanged.
func (r *round) Allocate(job *Job) (bool, error) {
	mark, err := r.desk.mark()
	if err != nil {
		return false, err
	}
	r.undo, r.tentative = nil, nil
	for task := job.pending(); task >= 0; task = job.pending() {
		node, err := r.fill(job, task)
		if err != nil {
			return false, err
		}
		if node == idle {
			break
		}
		if err := r.place(job, task, node); err != nil {
			return false, err
		}
		ready, err := r.desk.ready(job)
		if err != nil {
			return false, err
		}
		if ready {
			r.commit(job)
			return true, nil
		}
	}
	for _, back := range slices.Backward(r.undo) {
		back()
	}
	return false, r.desk.rollback(mark)
}

// fill finds a node with room for a task, if its queue may use that much more.
func (r *round) fill(job *Job, task int) (int, error) {
	use, err := r.desk.allowed(job, task)
	if err != nil || !use {
		return idle, err
	}
	return r.desk.node(job, task)
}

// place and evict change the state and tell Apportion.
func (r *round) place(job *Job, task, node int) error {
	r.state.place(job, task, node)
	r.undo = append(r.undo, func() { r.state.remove(job, task) })
	return r.desk.placed(job, task, node)
}

func (r *round) evict(number uint32, within bool) error {
	job, task := r.desk.owner(number)
	was := job.Tasks[task]
	lost := (r.state.now - was.Since) % checkpoint
	r.state.remove(job, task)
	job.Remaining += lost
	r.undo = append(r.undo, func() {
		job.Remaining -= lost
		r.state.place(job, task, was.Node)
		job.Tasks[task] = was
	})
	r.tentative = append(r.tentative, Eviction{
		At: r.state.now, Queue: job.Queue, Within: within, LostSeconds: lost, GPUs: job.Each.GPU,
	})
	return r.desk.evicted(job, task)
}
