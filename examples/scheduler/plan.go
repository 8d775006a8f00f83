package main

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// plan asks where the tasks go that a job needs, and which tasks must be evicted for that; nil: there is no plan. It is whole: nothing is
// left to choose here.
func (d *Desk) plan(job *Job, means apportionv1.PlanMeans) (*apportionv1.PlanAnswer, error) {
	answers, err := d.ask(&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
		Job: d.named([]*Job{job}), Means: means, OmitNames: true,
	}}})
	if err != nil || answers[0].GetPlan().GetOutcome() != apportionv1.PlanOutcome_PLAN_OUTCOME_MADE {
		return nil, err
	}
	return answers[0].GetPlan(), nil
}

// block is what a job asks for at once: what its gang lacks, or else one task; nil if all run.
func (j *Job) block() []int {
	size := max(1, j.Min-int(j.running()))
	var block []int
	for task := range j.Tasks {
		if j.Tasks[task].Node == idle && len(block) < size {
			block = append(block, task)
		}
	}
	return block
}

// reclaimByPlans carries out plans, the first there is, and gives out what is free after each, until there is none.
func (c *cycle) reclaimByPlans() error {
	for {
		moved, err := c.firstPlan()
		if err != nil || !moved {
			return err
		}
		if err := c.allocateAll(); err != nil {
			return err
		}
	}
}

// firstPlan carries out the plan of the first job in order that has one.
func (c *cycle) firstPlan() (bool, error) {
	queues, err := c.desk.queues(true)
	if err != nil {
		return false, err
	}
	waiting := c.waiting()
	for _, queue := range queues {
		jobs, err := c.desk.inOrder(waiting[queue])
		if err != nil {
			return false, err
		}
		for _, job := range jobs {
			plan, err := c.desk.plan(job, apportionv1.PlanMeans_PLAN_MEANS_RECLAIM)
			if err != nil {
				return false, err
			}
			if plan != nil {
				return true, c.carryOut(job, plan)
			}
		}
	}
	return false, nil
}

// carryOut evicts a plan's victims and lets its job run.
func (c *cycle) carryOut(job *Job, plan *apportionv1.PlanAnswer) error {
	c.undo, c.tentative = nil, nil
	for _, victim := range plan.GetVictims() {
		if err := c.evict(victim.GetTask(), victim.GetOwnQueue()); err != nil {
			return err
		}
	}
	for _, placed := range plan.GetPlacements() {
		_, task := c.desk.owner(placed.GetTask())
		if err := c.place(job, task, int(placed.GetNode())); err != nil {
			return err
		}
	}
	c.commit(job)
	return nil
}

// allocateAll gives out what is free until nothing more is taken: a refusal may rest on what others could still have been given.
func (c *cycle) allocateAll() error {
	for {
		before := c.placements
		if err := c.allocate(); err != nil || c.placements == before {
			return err
		}
	}
}

// commit keeps what the attempt under way has done.
func (c *cycle) commit(job *Job) {
	c.evictions = append(c.evictions, c.tentative...)
	c.placements++
	if job.Began == never {
		job.Began = c.state.now
	}
	key := c.state.key()
	if c.seen[key] {
		c.repeats++
	}
	c.seen[key] = true
}

// key names what runs where.
func (s *State) key() string {
	var key []byte
	for _, job := range s.jobs {
		for task := range job.Tasks {
			key = fmt.Appendf(key, "%d ", job.Tasks[task].Node)
		}
	}
	return string(key)
}

// wasted counts GPUs that are idle although a job waits for them: those of blocks that would fit now.
func (s *State) wasted() int64 {
	free := append([]Room(nil), s.free...)
	gpus := int64(0)
	for _, job := range s.jobs {
		block := job.block()
		if len(block) == 0 {
			continue
		}
		left, fits := append([]Room(nil), free...), 0
		for node := range left {
			for fits < len(block) && left[node].holds(job.Each) {
				left[node] = left[node].minus(job.Each)
				fits++
			}
		}
		if fits == len(block) {
			free, gpus = left, gpus+int64(fits)*job.Each.GPU
		}
	}
	return gpus
}
