package main

import (
	"context"
	"slices"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Eviction is a task that had to give way.
type Eviction struct {
	At    int64
	Queue string
	// Within tells a preemption by a job of the same queue from a reclaim by another queue.
	Within bool
	// LostSeconds of one task's work, of GPUs each, are to be done again.
	LostSeconds, GPUs int64
}

// cycle takes all decisions of one moment, in the order of Volcano's actions.
type cycle struct {
	state     *State
	desk      *Desk
	evictions []Eviction
	// undo takes back what the attempt under way has done to the state, the last first.
	undo []func()
	// tentative evictions count when the attempt succeeds.
	tentative []Eviction
	// placements counts the attempts that succeeded, seen are the states after them, and repeats counts those that were seen before.
	placements, repeats int
	seen                map[string]bool
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
	c := &cycle{state: state, desk: desk, seen: map[string]bool{state.key(): true}}
	actions := []func() error{c.enqueue, c.allocate, c.preempt, c.reclaim}
	if policy.Plans {
		actions = []func() error{c.enqueue, c.allocateAll, c.preempt, c.reclaimByPlans}
	}
	for _, action := range actions {
		if err := action(); err != nil {
			return nil, 0, err
		}
	}
	return c.evictions, c.repeats, desk.close()
}

// enqueue lets jobs in.
func (c *cycle) enqueue() error {
	admitted, err := c.desk.admit()
	for _, job := range admitted {
		job.Admitted = true
	}
	return err
}

// waiting are the admitted jobs of each queue that could use another task.
func (c *cycle) waiting() [][]*Job {
	waiting := make([][]*Job, len(c.state.cluster.Queues))
	for _, job := range c.state.jobs {
		if job.Admitted && job.pending() >= 0 {
			queue := c.state.cluster.queue(job.Queue)
			waiting[queue] = append(waiting[queue], job)
		}
	}
	return waiting
}

// allocate gives out what is free: to the first queue in order, there to the first job, and then looks anew.
func (c *cycle) allocate() error {
	waiting := c.waiting()
	for {
		queue, err := c.nextQueue(waiting)
		if err != nil || queue < 0 {
			return err
		}
		jobs, err := c.desk.inOrder(waiting[queue])
		if err != nil {
			return err
		}
		placed, err := c.attempt(jobs[0])
		if err != nil {
			return err
		}
		if !placed || jobs[0].pending() < 0 {
			jobs = jobs[1:]
		}
		waiting[queue] = jobs
	}
}

// nextQueue is the first queue to be served that has a job waiting, -1 if there is none.
func (c *cycle) nextQueue(waiting [][]*Job) (int, error) {
	if !slices.ContainsFunc(waiting, func(jobs []*Job) bool { return len(jobs) > 0 }) {
		return -1, nil
	}
	queues, err := c.desk.queues(false)
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

// preempt lets jobs evict others of their own queue, reclaim those of other queues.
func (c *cycle) preempt() error { return c.evictBy(apportionv1.PlanMeans_PLAN_MEANS_PREEMPT) }
func (c *cycle) reclaim() error { return c.evictBy(apportionv1.PlanMeans_PLAN_MEANS_RECLAIM) }

func (c *cycle) evictBy(means apportionv1.PlanMeans) error {
	waiting := c.waiting()
	for {
		queue, err := c.nextQueue(waiting)
		if err != nil || queue < 0 {
			return err
		}
		jobs, err := c.desk.inOrder(waiting[queue])
		if err != nil {
			return err
		}
		waiting[queue] = jobs[1:]
		plan, err := c.desk.plan(jobs[0], means)
		if err != nil {
			return err
		}
		if plan == nil {
			continue
		}
		if err := c.carryOut(jobs[0], plan); err != nil {
			return err
		}
	}
}

// attempt places tasks of a job where there is room until the job is ready. If it does not get that far nothing has happened.
func (c *cycle) attempt(job *Job) (bool, error) {
	mark, err := c.desk.mark()
	if err != nil {
		return false, err
	}
	c.undo, c.tentative = nil, nil
	for task := job.pending(); task >= 0; task = job.pending() {
		node, err := c.fill(job, task)
		if err != nil {
			return false, err
		}
		if node == idle {
			break
		}
		if err := c.place(job, task, node); err != nil {
			return false, err
		}
		ready, err := c.desk.ready(job)
		if err != nil {
			return false, err
		}
		if ready {
			c.commit(job)
			return true, nil
		}
	}
	for _, back := range slices.Backward(c.undo) {
		back()
	}
	return false, c.desk.rollback(mark)
}

// fill finds a node with room for a task, if its queue may use that much more.
func (c *cycle) fill(job *Job, task int) (int, error) {
	use, err := c.desk.allowed(job, task)
	if err != nil || !use {
		return idle, err
	}
	return c.desk.node(job, task)
}

// place and evict change the state and tell Apportion.
func (c *cycle) place(job *Job, task, node int) error {
	c.state.place(job, task, node)
	c.undo = append(c.undo, func() { c.state.remove(job, task) })
	return c.desk.placed(job, task, node)
}

func (c *cycle) evict(number uint32, within bool) error {
	job, task := c.desk.owner(number)
	was := job.Tasks[task]
	lost := (c.state.now - was.Since) % checkpoint
	c.state.remove(job, task)
	job.Remaining += lost
	c.undo = append(c.undo, func() {
		job.Remaining -= lost
		c.state.place(job, task, was.Node)
		job.Tasks[task] = was
	})
	c.tentative = append(c.tentative, Eviction{
		At: c.state.now, Queue: job.Queue, Within: within, LostSeconds: lost, GPUs: job.Each.GPU,
	})
	return c.desk.evicted(job, task)
}
