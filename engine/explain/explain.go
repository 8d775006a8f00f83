// Package explain says why jobs wait: the findings of package judge, the jobs that come first, the tasks that could be evicted, and whether
// the job could ever run.
package explain

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
)

// Verdict is the result of the checks of a job. The values are those of the contract's PendingVerdict.
type Verdict uint8

// The verdicts.
const (
	// Blocked: a check failed.
	Blocked Verdict = 1
	// Undetermined: no check failed, but something decisive is unknown.
	Undetermined Verdict = 2
	// InTurn: nothing blocks the job; its scheduler has not served it yet.
	InTurn Verdict = 3
	// Complete: the job waits for nothing.
	Complete Verdict = 4
)

// Explanation explains why a job waits.
type Explanation struct {
	judge.Judgement

	Verdict Verdict
	// Blocking is the position of the first finding that failed, or -1.
	Blocking int
	// Plan says which tasks must be evicted (CheckEviction); nil: no plan was searched.
	Plan *plan.Plan
	// Rank is the position of the job's queue in queue order, or -1.
	Rank int
	// Forecast is when the job could start; nil if it was not asked for, or if no running job has an expected end.
	Forecast *forecast.Forecast
}

// conclude derives the verdict from the findings.
func (e *Explanation) conclude(waits bool) {
	e.Blocking = slices.IndexFunc(e.Findings, func(f judge.Finding) bool { return f.Outcome == judge.Failed })
	switch {
	case e.Blocking >= 0:
		e.Verdict = Blocked
	case !waits:
		e.Verdict = Complete
	case slices.ContainsFunc(e.Findings, func(f judge.Finding) bool { return f.Outcome == judge.NotKnown }):
		e.Verdict = Undetermined
	default:
		e.Verdict = InTurn
	}
}

// Jobs explains why each job waits, and changes nothing. With eviction it also returns the tasks that could be evicted for a blocked
// job, which visits every task for each job; of at most PlannedJobs jobs it returns the tasks that must be evicted, by a plan, and when
// the job could start at the earliest, by a forecast. It ends with the first error of each, with policy.ErrStopped, or with a
// *policy.WorkError before work that costs more than is left.
//
// Admission and the order of jobs are decided as in Volcano's actions: the jobs of a queue one after the other, each on the state that the
// previous ones left.
func Jobs(s *engine.Session, jobs []model.JobID, eviction bool, each func(*Explanation) error) error {
	return newExplainer(s.Host()).each(jobs, eviction, each)
}

func (x *explainer) each(jobs []model.JobID, eviction bool, each func(*Explanation) error) error {
	x.plans = eviction && len(jobs) <= PlannedJobs
	for _, j := range jobs {
		if x.View().Stop != nil && x.View().Stop() {
			return policy.ErrStopped
		}
		if err := x.spendOnJob(); err != nil {
			return err
		}
		e, err := x.explain(j, eviction)
		if err != nil {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// spendOnJob spends what the checks of a job's queue, share and tasks cost, and the division that a tried admission calls for where
// plugins divide when they are asked.
func (x *explainer) spendOnJob() error {
	v := x.View()
	n := 32 * (1 + x.Reclaim().Voters())
	if x.Reclaim().Plans() {
		n += len(v.Queues) + v.Jobs.Len()
	}
	return v.Work.Spend(n, v.Dims.Len())
}

// explainer explains jobs of one state, and remembers what is the same for several of them.
type explainer struct {
	*judge.Judge

	// plans requests a plan and a forecast for each blocked job.
	plans bool
	// rank is the position of each queue in queue order, -1 for one without jobs.
	rank []int
	// entry holds, for each pending job, the result of admission in order; nil until needed.
	entry map[model.JobID]*turn
	// turns says how jobs of a queue go in turn; a queue is missing until needed.
	turns map[model.QueueID]map[model.JobID]*turn
	// reclaims has what claimants that are alike may reclaim.
	reclaims engine.Reclaims
	// served are the jobs of each queue that are served in turn; nil until needed.
	served [][]model.JobID
	// empty has what empty nodes hold of each kind of task.
	empty map[engine.Kind]*emptyRoom
}

// turn is the finding about a job after the jobs that come first.
type turn struct {
	ok      bool
	check   judge.CheckKind
	reasons []policy.Reason
	// first are the jobs that come first and take resources.
	first []model.JobID
}

func newExplainer(h engine.Host) *explainer {
	v := h.View()
	x := &explainer{
		Judge: judge.New(h), rank: make([]int, len(v.Queues)), turns: make(map[model.QueueID]map[model.JobID]*turn),
		reclaims: h.Reclaims(),
	}
	for q := range x.rank {
		x.rank[q] = -1
	}
	busy := v.Busy()
	h.Order().SortQueues(busy)
	for i, q := range busy {
		x.rank[q] = i
	}
	return x
}

// explain makes all checks of a job.
func (x *explainer) explain(j model.JobID, eviction bool) (*Explanation, error) {
	w := x.NeedOf(j)
	judged, err := x.Check(j, w)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Judgement: *judged, Rank: x.rank[x.View().Jobs.At(j).Queue]}
	waits := x.Waits(j)
	if waits && e.Failed() == nil && !e.Blind {
		if err := x.order(e, w); err != nil {
			return nil, err
		}
	}
	x.doubt(e)
	e.conclude(waits)
	var never []judge.Finding
	impossible := waits && !e.Blind && (e.Verdict == Blocked || x.CreatesTasks(j))
	if impossible {
		// What evictions are refused for says nothing about the job.
		if never, err = x.infeasible(&e.Judgement, w); err != nil {
			return nil, err
		}
	}
	if eviction && !e.Blind && (e.Verdict == Blocked || e.Verdict == Undetermined) {
		if err := x.helps(e, w); err != nil {
			return nil, err
		}
	}
	if impossible {
		e.precede(never)
		e.conclude(waits)
	}
	return e, nil
}

// helps finds what would let a blocked job start: evictions, or the ends of running jobs.
func (x *explainer) helps(e *Explanation, w *engine.Need) error {
	switch {
	case len(w.Tasks) > 0 && !x.plans:
		return x.eviction(e, w)
	case len(w.Tasks) > 0:
		if err := x.plannedEviction(e, w); err != nil {
			return err
		}
	case !x.plans || !x.CreatesTasks(e.Job):
		return nil
	}
	var err error
	e.Forecast, err = forecast.For(x.Session, e.Job)
	return err
}

// Causes is Jobs without the findings after the blocking check: verdicts, blocking findings and their reasons are the same.
func Causes(s *engine.Session, jobs []model.JobID, each func(*Explanation) error) error {
	x := newExplainer(s.Host())
	x.Brief = true
	return x.each(jobs, false, each)
}
