package comparison

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Outcome contains the decisions of one policy about one cluster, by names, so that outcomes of different clusters can be compared.
type Outcome struct {
	Queues map[string]*Queue
	Jobs   map[string]*Job
}

// Queue contains the decisions about a queue. Amounts are by resource, in the units of the contract.
type Queue struct {
	Deserved, Limit, Guarantee, Allocated map[string]float64
	Overused                              bool
	// Rank counts from 1; 0: the queue has no jobs.
	Rank int
	// Evictable contains its tasks that some waiting job may evict; under kueue its workloads.
	Evictable map[string]bool
	// Why is the reason for overused.
	Why string
	// victims are the workloads that Kueue would evict for those that wait.
	victims map[string]bool
}

// Job contains the decisions about a job.
type Job struct {
	Queue string
	// Admission says whether the job may enter its queue, and Allocation whether nothing else keeps it from starting, each with the reason:
	// yes, no, not known, or not asked about a job that does not wait. Allocation is empty for a job that may not enter.
	Admission, Allocation       string
	AdmissionWhy, AllocationWhy string
	// Blocked says in a few words what keeps a job from starting whose Allocation is no.
	Blocked string
}

// notAsked is the verdict about a job that does not wait.
const notAsked = "not asked"

// OutcomeOf reads the answers to the steps of the plan.
func (p *Plan) OutcomeOf(answers []*apportionv1.Answer, names text.Names) *Outcome {
	o := &outcome{Plan: p, names: names, Outcome: &Outcome{Queues: map[string]*Queue{}, Jobs: map[string]*Job{}}}
	o.queues(answers[sharesAt].GetShares())
	o.addJobs(p.snapshot)
	o.jobs(answers[explainAt].GetExplain())
	return o.Outcome
}

// outcome builds an Outcome.
type outcome struct {
	*Plan
	*Outcome

	names text.Names
}

func (o *outcome) queues(a *apportionv1.SharesAnswer) {
	for _, q := range o.snapshot.GetQueues() {
		o.Queues[q.GetName()] = &Queue{victims: map[string]bool{}}
	}
	for _, share := range dividing(a) {
		q := o.Queues[o.names.Queue(share.GetQueue())]
		q.Deserved, q.Limit = o.amounts(share.GetDeserved()), o.amounts(share.GetRealCapability())
		q.Guarantee, q.Allocated = o.amounts(share.GetGuarantee()), o.amounts(share.GetAllocated())
		if share.GetKueue() != nil {
			q.quotas(share.GetKueue())
		}
	}
	for _, s := range a.GetStandings() {
		q := o.Queues[o.names.Queue(s.GetQueue())]
		q.Overused, q.Why = s.GetOverused(), text.Reasons(o.names, s.GetCauses())
		if s.Rank != nil {
			q.Rank = int(s.GetRank()) + 1
		}
	}
}

// quotas sums Kueue's quotas up over flavors: the nominal quota is what a queue deserves, and its limit is all that it could ever use.
func (q *Queue) quotas(share *apportionv1.KueueShare) {
	q.Deserved, q.Limit, q.Allocated = map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, a := range share.GetAccounts() {
		q.Deserved[a.GetResource()] += a.GetNominal()
		q.Allocated[a.GetResource()] += a.GetUsage()
		q.Limit[a.GetResource()] += a.GetPotential()
	}
}

func (o *outcome) amounts(r *apportionv1.Resource) map[string]float64 {
	amounts := make(map[string]float64, len(r.GetDimensions()))
	for i, dimension := range r.GetDimensions() {
		amounts[o.names.Dimension(dimension)] = r.GetAmounts()[i]
	}
	return amounts
}

// addJobs adds all jobs, none of which waits.
func (o *Outcome) addJobs(snapshot *lookup.Snapshot) {
	for _, job := range snapshot.GetJobs() {
		o.Jobs[lookup.JobName(job)] = &Job{Queue: job.GetQueue(), Admission: notAsked, Allocation: notAsked}
	}
}

// jobs notes what blocks the jobs that wait.
func (o *outcome) jobs(explained *apportionv1.ExplainAnswer) {
	for _, e := range explained.GetJobs() {
		job := o.Jobs[e.GetName()]
		if e.Blocking != nil && e.GetFindings()[e.GetBlocking()].GetCheck() == apportionv1.CheckKind_CHECK_KIND_ADMISSION {
			job.Admission, job.AdmissionWhy, job.Allocation = yesOrNo(false), text.Found(e), ""
		} else {
			job.Admission, job.AdmissionWhy = yesOrNo(true), text.Found(e)
			job.Allocation, job.AllocationWhy = word(e), text.Found(e)
			if e.Blocking != nil {
				job.Blocked = text.Fares(e)
			}
		}
		for _, v := range e.GetKueue().GetVictims() {
			victim := o.snapshot.GetJobs()[v.GetJob()]
			o.Queues[victim.GetQueue()].victims[lookup.JobName(victim)] = true
		}
	}
}

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
