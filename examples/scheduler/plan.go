package main

import (
	"fmt"

	"github.com/apportion/apportion/engine/cycle"
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

// block returns the tasks that a job places together: the tasks that its gang lacks, or else one task; nil if all run.
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

// Evict carries out the plan by which a job gets its place, if there is one.
func (r *round) Evict(job *Job, action cycle.Action) (bool, error) {
	means := apportionv1.PlanMeans_PLAN_MEANS_RECLAIM
	if action == cycle.Preempt {
		means = apportionv1.PlanMeans_PLAN_MEANS_PREEMPT
	}
	plan, err := r.desk.plan(job, means)
	if err != nil || plan == nil {
		return false, err
	}
	return true, r.carryOut(job, plan)
}

// carryOut evicts a plan's victims and lets its job run.
func (r *round) carryOut(job *Job, plan *apportionv1.PlanAnswer) error {
	r.undo, r.tentative = nil, nil
	for _, victim := range plan.GetVictims() {
		if err := r.evict(victim.GetTask(), victim.GetOwnQueue()); err != nil {
			return err
		}
	}
	for _, placed := range plan.GetPlacements() {
		_, task := r.desk.owner(placed.GetTask())
		if err := r.place(job, task, int(placed.GetNode())); err != nil {
			return err
		}
	}
	r.commit(job)
	return nil
}

// commit keeps what the attempt under way has done.
func (r *round) commit(job *Job) {
	r.evictions = append(r.evictions, r.tentative...)
	r.commits++
	if job.Began == never {
		job.Began = r.state.now
	}
	key := r.state.key()
	if r.seen[key] {
		r.repeats++
	}
	r.seen[key] = true
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
