package engine

import (
	"errors"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// CheckKind is a check that can block a job. The values are those of the contract's CheckKind.
type CheckKind uint8

// The checks, in the order in which they hold a job back.
const (
	// CheckAdmission asks whether the job, by itself, may enter its queue.
	CheckAdmission CheckKind = 1
	// CheckTasks asks whether the job has the tasks that its gang needs.
	CheckTasks CheckKind = 2
	// CheckQueue asks whether the queue is served.
	CheckQueue CheckKind = 3
	// CheckShare asks whether the queue may use what the gang needs.
	CheckShare CheckKind = 4
	// CheckNodes asks whether the nodes have room for what the gang needs.
	CheckNodes CheckKind = 5
	// CheckOrder asks whether the jobs that are served before leave enough.
	CheckOrder CheckKind = 6
	// CheckConstraints asks whether placement depends on what the snapshot does not express.
	CheckConstraints CheckKind = 7
	// CheckEviction asks which tasks could be evicted for the job.
	CheckEviction CheckKind = 8
)

// Outcome is the outcome of a check. The values are those of the contract's CheckOutcome.
type Outcome uint8

// The outcomes.
const (
	// Passed: it does not block the job.
	Passed Outcome = 1
	// Failed: it blocks the job.
	Failed Outcome = 2
	// Noted: it is informative only.
	Noted Outcome = 3
	// NotKnown: it may block the job.
	NotKnown Outcome = 4
)

// Finding is one check of one job.
type Finding struct {
	Check   CheckKind
	Outcome Outcome
	// Reasons of a failed check, the most frequent first.
	Reasons []policy.Reason
	// Counts is the number of nodes (CheckNodes) or tasks (CheckEviction) with each reason; otherwise nil.
	Counts []int
	// Task represents the tasks that the check is about; None: all.
	Task model.TaskID
	// Amount is the request (CheckShare, CheckNodes) or what evictions would free. Absent: nothing.
	Amount resource.Row
	// Tasks that could be evicted, in order of eviction: those of Plan if it has any, otherwise all.
	Tasks []model.TaskID
	// Enough: evicting these tasks makes room for what the gang needs.
	Enough bool
	// Plan is the answer to the question which tasks must be evicted (CheckEviction); nil: no plan was searched.
	Plan *Plan
	// Jobs that are served before, in order.
	Jobs []model.JobID
	// Preempt: the tasks that could be evicted belong to the job's own queue.
	Preempt bool
}

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
	Job     model.JobID
	Verdict Verdict
	// Blocking is the position of the first finding that failed, or -1.
	Blocking int
	Findings []Finding
	// Waiting counts pending tasks; Counted those of them given as counts; Gated those with a gate; Needed is the minimum number of listed
	// ones that the gang needs.
	Waiting, Counted, Gated, Needed int
	// Rank is the position of the job's queue in queue order, or -1.
	Rank int
	// Unjudged are the placement constraints that the snapshot does not express.
	Unjudged model.Constraints
	// Forecast is when the job could start; nil if it was not asked for, or if no running job has an expected end.
	Forecast *Forecast
}

func (e *Explanation) add(f Finding) *Finding {
	e.Findings = append(e.Findings, f)
	return &e.Findings[len(e.Findings)-1]
}

// find adds a finding about no particular task.
func (e *Explanation) find(check CheckKind, outcome Outcome, reasons ...policy.Reason) *Finding {
	return e.add(Finding{Check: check, Outcome: outcome, Reasons: reasons, Task: model.None})
}

// failed reports whether a check failed.
func (e *Explanation) failed() bool {
	return slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Outcome == Failed })
}

// conclude derives the verdict from the findings.
func (e *Explanation) conclude(waits bool) {
	e.Blocking = slices.IndexFunc(e.Findings, func(f Finding) bool { return f.Outcome == Failed })
	switch {
	case e.Blocking >= 0:
		e.Verdict = Blocked
	case !waits:
		e.Verdict = Complete
	case slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Outcome == NotKnown }):
		e.Verdict = Undetermined
	default:
		e.Verdict = InTurn
	}
}

// Explain explains why each job waits, and changes nothing. With eviction it also returns the tasks that could be evicted for a blocked
// job, which visits every task for each job; of at most PlannedJobs jobs it returns the tasks that must be evicted, by a plan, and when
// the job could start at the earliest, by a forecast. It ends with the first error of each, with policy.ErrStopped, or with a
// *policy.WorkError before work that costs more than is left.
//
// Admission and the order of jobs are decided as in Volcano's actions: the jobs of a queue one after the other, each on the state that the
// previous ones left.
func (s *Session) Explain(jobs []model.JobID, eviction bool, each func(*Explanation) error) error {
	return newExplainer(s).each(jobs, eviction, each)
}

func (x *explainer) each(jobs []model.JobID, eviction bool, each func(*Explanation) error) error {
	x.plans = eviction && len(jobs) <= PlannedJobs
	for _, j := range jobs {
		if x.view.Stop != nil && x.view.Stop() {
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
	v := x.view
	n := 32 * (1 + len(x.by.reclaim))
	if x.Reclaim().Plans() {
		n += len(v.Queues) + v.Jobs.Len()
	}
	return v.Work.Spend(n, v.Dims.Len())
}

// Waiting lists the jobs that wait for admission or have waiting tasks: queue by queue in queue order, job by job in job order.
func (s *Session) Waiting() []model.JobID {
	return slices.Concat(s.byQueue(s.waits)...)
}

// waits reports whether a job is to be admitted, or has pending tasks, or lacks tasks that it needs to start.
func (s *Session) waits(j model.JobID) bool {
	pending := s.view.Account(j).Tasks[model.Pending] > 0
	switch s.view.Phase(j) {
	case model.PhaseCompleted:
		return false
	case model.PhasePending, model.PhaseInqueue:
		return pending || !s.Job(j).Ready(nil) || s.view.Account(j).AllTasks() == 0
	default:
		return pending
	}
}

// explainer explains jobs of one state, and remembers what is the same for several of them.
type explainer struct {
	*Session

	nodes []model.NodeID
	// plans requests a plan and a forecast for each blocked job.
	plans bool
	// rank is the position of each queue in queue order, -1 for one without jobs.
	rank []int
	// room is what the nodes have for each kind of task.
	room map[kindKey]*kindRoom
	// entry says how admission in turn goes for each pending job; nil until needed.
	entry map[model.JobID]*turn
	// queues says of each queue whether it is served; nil until needed.
	queues []*Finding
	// turns says how jobs of a queue go in turn; a queue is missing until needed.
	turns map[model.QueueID]map[model.JobID]*turn
	// served are the jobs of each queue that are served in turn; nil until needed.
	served [][]model.JobID
	// free is what the nodes have left; nil until needed.
	free *freeNodes
	// brief: the checks of a job end with the first that fails.
	brief bool
}

// turn is how a job fares after those that come first.
type turn struct {
	ok      bool
	check   CheckKind
	reasons []policy.Reason
	// first are the jobs that come first and take resources.
	first []model.JobID
}

func newExplainer(s *Session) *explainer {
	v := s.view
	x := &explainer{
		Session: s, nodes: v.NodeOrder, rank: make([]int, len(v.Queues)), queues: make([]*Finding, len(v.Queues)),
		room: make(map[kindKey]*kindRoom), turns: make(map[model.QueueID]map[model.JobID]*turn),
	}
	for q := range x.rank {
		x.rank[q] = -1
	}
	busy := s.View().Busy()
	s.Order().SortQueues(busy)
	for i, q := range busy {
		x.rank[q] = i
	}
	return x
}

// errUndone ends a change that was only tried.
var errUndone = errors.New("undone")

// tried carries out a change and undoes it.
func (s *Session) tried(change func() error) error {
	err := s.Try(func() error {
		if err := change(); err != nil {
			return err
		}
		return errUndone
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// explain makes all checks of a job.
func (x *explainer) explain(j model.JobID, eviction bool) (*Explanation, error) {
	job := x.view.Jobs.At(j)
	w := x.waiting(j)
	e := &Explanation{
		Job: j, Waiting: len(w.tasks) + w.counted, Counted: w.counted, Gated: w.gated, Needed: len(w.needed), Rank: x.rank[job.Queue],
		Unjudged: w.unjudged,
	}
	waits := x.waits(j)
	if err := x.checks(e, w, waits); err != nil {
		return nil, err
	}
	e.conclude(waits)
	if eviction && (e.Verdict == Blocked || e.Verdict == Undetermined) {
		return e, x.helps(e, w)
	}
	return e, nil
}

// checks makes the checks of a job in their order.
func (x *explainer) checks(e *Explanation, w *waiting, waits bool) error {
	for _, check := range [...]func() error{
		func() error { return x.admission(e, waits) },
		func() error { return x.tasks(e, w) },
		func() error { return x.placement(e, w) },
		func() error { x.beyond(e, w); return nil },
	} {
		if err := check(); err != nil || x.brief && e.failed() {
			return err
		}
	}
	if waits && !e.failed() {
		return x.order(e, w)
	}
	return nil
}

// placement asks whether the waiting tasks of a job may be placed.
func (x *explainer) placement(e *Explanation, w *waiting) error {
	if len(w.tasks) == 0 {
		return nil
	}
	if x.queue(e); x.brief && e.failed() {
		return nil
	}
	if x.share(e, w); x.brief && e.failed() {
		return nil
	}
	return x.nodesFor(e, w)
}

// helps finds what would let a blocked job start: evictions, or the ends of running jobs.
func (x *explainer) helps(e *Explanation, w *waiting) error {
	switch {
	case len(w.tasks) > 0 && !x.plans:
		return x.eviction(e, w)
	case len(w.tasks) > 0:
		if err := x.plannedEviction(e, w); err != nil {
			return err
		}
	case !x.plans || !x.createsTasks(e.Job):
		return nil
	}
	var err error
	e.Forecast, err = x.Forecast(e.Job)
	return err
}

// admission asks whether a job may enter its queue by itself.
func (x *explainer) admission(e *Explanation, waits bool) error {
	if !waits || x.view.Phase(e.Job) != model.PhasePending {
		e.find(CheckAdmission, Passed)
		return nil
	}
	if x.view.Jobs.At(e.Job).MinResources.Absent() {
		e.find(CheckAdmission, Passed, policy.Because("", policy.NoMinResources, model.None))
		return nil
	}
	var why policy.Reasons
	vote := policy.Permit
	err := x.tried(func() error {
		vote = x.Job(e.Job).EnqueueVote(&why)
		return nil
	})
	if vote == policy.Reject {
		e.find(CheckAdmission, Failed, why.List...)
	} else {
		e.find(CheckAdmission, Passed)
	}
	return err
}

// tasks asks whether a job has the tasks that its gang needs. Before admission it may have none yet: Volcano creates them afterwards.
// Tasks that a gate holds back are missing if the gang lacks them once all others that it needs are placed.
func (x *explainer) tasks(e *Explanation, w *waiting) error {
	var why policy.Reasons
	switch {
	case x.createsTasks(e.Job):
		e.find(CheckTasks, Noted)
	case e.Gated > 0 && e.Waiting == 0:
		gated := policy.Because("", policy.TasksGated, model.None)
		gated.Have = float64(e.Gated)
		e.find(CheckTasks, Failed, gated)
	case !x.Job(e.Job).Valid(&why):
		e.find(CheckTasks, Failed, why.List...)
	case e.Gated > 0:
		ready := true
		err := x.tried(func() error {
			// Tasks that are counted, not listed, cannot be placed to find out.
			ready = e.Counted > 0 || x.readyWith(e.Job, w.needed, &why)
			return nil
		})
		if err != nil {
			return err
		}
		if !ready {
			e.find(CheckTasks, Failed, why.List...)
		} else {
			e.find(CheckTasks, Noted)
		}
	default:
		e.find(CheckTasks, Passed)
	}
	return nil
}

// queue asks whether the job's queue is served, once for all jobs of the queue.
func (x *explainer) queue(e *Explanation) {
	q := x.view.Jobs.At(e.Job).Queue
	f := x.queues[q]
	if f == nil {
		f = &Finding{Check: CheckQueue, Outcome: Passed, Task: model.None}
		var why policy.Reasons
		if x.IsOverused(q, &why) {
			f.Outcome, f.Reasons = Failed, why.List
		}
		x.queues[q] = f
	}
	e.add(*f)
}

// share asks whether the queue may use what each kind of task asks for, and what the gang needs.
func (x *explainer) share(e *Explanation, w *waiting) {
	var why policy.Reasons
	for _, t := range w.kinds {
		why = policy.Reasons{}
		if !x.Allocatable([]model.TaskID{t}, policy.InSession, &why, nil) {
			f := e.find(CheckShare, Failed, why.List...)
			f.Task, f.Amount = t, x.view.Request(t)
			return
		}
	}
	outcome := Passed
	// A gang of one task has been asked about.
	if !slices.Equal(w.needed, w.kinds) || len(w.needed) > 1 {
		why = policy.Reasons{}
		if !x.Allocatable(w.needed, policy.InSession, &why, nil) {
			outcome = Failed
		}
	}
	e.find(CheckShare, outcome, why.List...).Amount = x.sum(w.needed)
}

// sum adds up what tasks ask for.
func (s *Session) sum(tasks []model.TaskID) resource.Row {
	sum := resource.NewRow(s.view.Dims.Len())
	for _, t := range tasks {
		sum.Add(s.view.Request(t))
	}
	return sum
}

// beyond notes what no check here can judge.
func (x *explainer) beyond(e *Explanation, w *waiting) {
	if w.unjudged != 0 {
		e.find(CheckConstraints, NotKnown)
	}
	if w.counted > 0 && len(w.tasks) == 0 {
		// Tasks without identity can be asked about neither shares nor nodes.
		e.find(CheckNodes, NotKnown)
	}
}
