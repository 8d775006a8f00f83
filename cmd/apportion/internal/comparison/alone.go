package comparison

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// afterEvictions is the verdict about a job that runs once others have been evicted for it.
const afterEvictions = "after evictions"

// Alone returns the outcome of a policy that was asked about each job that waits by itself. Amounts of queues are not compared, because
// policies of different schedulers do not mean the same by them.
func Alone(snapshot *lookup.Snapshot, explained *apportionv1.ExplainAnswer) *Outcome {
	o := &Outcome{Queues: map[string]*Queue{}, Jobs: map[string]*Job{}}
	for _, q := range snapshot.GetQueues() {
		o.Queues[q.GetName()] = &Queue{Evictable: map[string]bool{}}
	}
	o.addJobs(snapshot)
	for _, e := range explained.GetJobs() {
		job := o.Jobs[e.GetName()]
		job.Allocation, job.AllocationWhy = word(e), text.Found(e)
		if len(e.GetKueue().GetVictims()) > 0 {
			job.Allocation = afterEvictions
		}
		for _, v := range e.GetKueue().GetVictims() {
			o.evicts(snapshot.GetJobs()[v.GetJob()])
		}
	}
	return o
}

// word returns the verdict about a job in a word or two.
func word(e *apportionv1.Explanation) string {
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		return yesOrNo(true)
	case apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED:
		return yesOrNo(false)
	default:
		return "not known"
	}
}

// evicts notes that a job may be evicted, as a whole.
func (o *Outcome) evicts(job *apportionv1.Job) {
	o.Queues[job.GetQueue()].Evictable[lookup.JobName(job)] = true
}

// AddPlan adds the plan of a job that cannot start without evictions. Victims are named by their jobs.
func (o *Outcome) AddPlan(snapshot *lookup.Snapshot, plan *apportionv1.PlanAnswer) {
	if plan.GetOutcome() != apportionv1.PlanOutcome_PLAN_OUTCOME_MADE {
		return
	}
	if len(plan.GetVictims()) > 0 {
		o.Jobs[snapshot.JobName(plan.GetJob())].Allocation = afterEvictions
	}
	for _, v := range plan.GetVictims() {
		o.evicts(snapshot.Tasks[v.GetTask()].Job)
	}
}
