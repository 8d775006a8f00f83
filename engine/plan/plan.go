// Package plan finds nodes for the tasks of a job together with the tasks to evict for them. A plan is carried out by events of the session
// before it is returned, and undone: what it promises was seen to hold.
package plan

import (
	"math/big"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Means selects how a plan may make room. The values are those of the contract's PlanMeans.
type Means uint8

// The means.
const (
	// PlaceOnly evicts no task.
	PlaceOnly Means = 1
	// ByReclaim evicts tasks of other queues.
	ByReclaim Means = 2
	// ByPreempt evicts tasks of the job's own queue.
	ByPreempt Means = 3
	// ByAny evicts tasks of any queue.
	ByAny Means = 4
)

// Question asks where the tasks of a job can be placed, and which tasks must be evicted for them.
type Question struct {
	Job model.JobID
	// Tasks to place: pending, of the job, each once. nil: the minimum that the gang needs, or one task of a job that has its minimum.
	Tasks []model.TaskID
	// Means is one of the above.
	Means Means
	// MaxVictims limits the number of victims; 0: no limit.
	MaxVictims int
	// Quick leaves out what costs most: smaller sets of victims are not tried beyond those that the search task by task finds, a miss has
	// nothing but its check, and victims do not say whether they could return.
	Quick bool
}

// Outcome says whether there is a plan. The values are those of the contract's PlanOutcome.
type Outcome uint8

// The outcomes of a plan.
const (
	// Made: the plan was executed by events of the session and undone.
	Made Outcome = 1
	// None: it is proven that there is no plan.
	None Outcome = 2
	// NotFound: no plan was found, but this is not proven.
	NotFound Outcome = 3
)

// Plan contains the placement of the tasks of a job, and the tasks to evict for it: all or nothing.
type Plan struct {
	Job     model.JobID
	Outcome Outcome
	// Least: it is proven that no plan has fewer victims.
	Least bool
	// CutShort: the search reached a bound on its work.
	CutShort bool
	// Enters: the job must be admitted first, and may be.
	Enters bool
	// Ready: the job has its minimum after the plan.
	Ready bool
	// Tasks are the requested ones, in order of service.
	Tasks []model.TaskID
	// Nodes are those of Tasks; nil without a plan.
	Nodes []model.NodeID
	// Released says for each task whether its node has room only after tasks that are already being released are gone.
	Released []bool
	// Victims are in the order of eviction.
	Victims []Evicted
	// Fall and Rise are the amounts by which a plan of a policy with a potential lowers and raises it; nil for other policies, and if no
	// task of other queues is evicted.
	Fall, Rise *[3]*big.Rat
	// Unjudged are the placement constraints of the waiting tasks that the snapshot does not express.
	Unjudged model.Constraints
	// Miss describes the nearest miss; nil with a plan.
	Miss *Miss
	// Looked counts the nodes and sets of victims for which the search evaluated the policy.
	Looked int
}

// Evicted is a victim of a plan.
type Evicted struct {
	Task model.TaskID
	// Node is where it runs, or model.None.
	Node model.NodeID
	// For is the task that needs its place.
	For model.TaskID
	// Own: it belongs to the queue of the job.
	Own bool
	// Limit: it is evicted to keep a queue within its limit; the node of For has room without this eviction.
	Limit bool
	// Tier is the position of the tier that decided; Plugins are its plugins that permit the eviction.
	Tier    int
	Plugins []string
	// Returns says how the victim could get its place back at once.
	Returns Return
}

// Return says how a victim could get its place back at once. The values are those of the contract's VictimReturn.
type Return uint8

// The ways to return.
const (
	// NoReturn: it could not, according to the policy in the state after the plan.
	NoReturn Return = 1
	// ServedFirst: its queue is served before the job's queue, and may use the room that the victim left before the job gets it.
	ServedFirst Return = 2
	// TakesBack: when the job runs, the victim may evict a task of it.
	TakesBack Return = 3
)

// Miss describes why there is no plan.
type Miss struct {
	// Check that fails.
	Check judge.CheckKind
	// Reasons of the check, or in CheckNodes why no task may be evicted.
	Reasons []policy.Reason
	// Placed is the number of tasks for which a place was found.
	Placed int
	// Task without a place; None: the miss is about all.
	Task model.TaskID
	// Node is where Task lacks least after all possible evictions there, or None; Short is the amount that it lacks there, absent if
	// nothing.
	Node  model.NodeID
	Short resource.Row
	// Protected are the reasons that protect tasks on Node, and Counts the number of tasks with each.
	Protected []policy.Reason
	Counts    []int
	// NodeCounts says why no node takes Task, each node counted once; room is what is left after all possible evictions.
	NodeCounts []place.NodeCount
	// Victims is the number of victims of a plan that exceeds the limit; 0: there is no such plan.
	Victims int
}

// planEvaluations bounds the nodes that a search asks the policy about, each time that it starts afresh.
const planEvaluations = 1 << 13

// planWork is the cost of the search of a plan for each dimension and plugin, beyond visiting all tasks and nodes.
const planWork = 1 << 18

// For finds a place for tasks of a job, with as few victims as possible: fewer victims first, then lower priorities, then younger tasks,
// then names. Afterwards every limit of the policy holds, and the policy permits every eviction; before it is returned, a plan is executed
// by the events of the session, and undone. Every victim is necessary for its node or for a limit, where tasks are placed one after the
// other in their order, as schedulers place them.
//
// The search visits each running task once and then, for each task to place, the few most promising nodes; if there are few victims and
// candidates, it then tries every smaller set of victims. Of tasks that differ it tries several choices. It changes nothing. The error is
// policy.ErrStopped, or a *policy.WorkError.
func For(s *engine.Session, q *Question) (*Plan, error) {
	h := s.Host()
	var w *engine.Need
	if q.Tasks == nil {
		w = h.NeedOf(q.Job)
	} else {
		w = h.NeedFor(q.Job, q.Tasks)
	}
	p := &planner{Judge: judge.New(h), question: q, queue: s.View().Jobs.At(q.Job).Queue}
	p.Seats, p.Once, p.Brief = true, true, q.Means == PlaceOnly
	p.plan = Plan{Job: q.Job, Enters: s.View().Phase(q.Job) == model.PhasePending, Unjudged: w.Unjudged}
	p.about(w.Needed)
	miss, err := p.find(w)
	if err != nil {
		return nil, err
	}
	if miss != nil {
		p.plan.Miss = miss
	}
	if p.plan.Miss != nil && p.plan.Outcome == 0 {
		p.plan.Outcome = NotFound
	}
	return &p.plan, nil
}

// planner searches a plan.
type planner struct {
	*judge.Judge

	question *Question
	plan     Plan
	tasks    []model.TaskID
	// queue is the job's queue.
	queue model.QueueID
	// place, reclaim and preempt report whether the policy lets the job do so; refused is the reason why it may not reclaim. asks is true
	// if permission to reclaim depends on the request.
	place, reclaim, preempt, asks bool
	refused                       []policy.Reason
	refusedBy                     judge.CheckKind
	pool                          pool
	// hosts says that some task alone makes room for several; asked counts the nodes looked at since the search started afresh.
	hosts bool
	asked int
	// missed is the amount that the first attempt among all tasks lacks.
	missed *Miss
}

// about makes tasks those that the plan is about.
func (p *planner) about(tasks []model.TaskID) { p.tasks, p.plan.Tasks = tasks, tasks }

// find makes the plan, or returns what it lacks. What the judge says stands where no eviction can change it.
func (p *planner) find(w *engine.Need) (*Miss, error) {
	if p.View().Phase(p.question.Job) == model.PhaseCompleted {
		return p.refuse(judge.CheckAdmission, nil)
	}
	d, err := p.Check(p.question.Job, w)
	if err != nil {
		return nil, err
	}
	against := d.Against()
	switch {
	case against != nil && (against.Check == judge.CheckAdmission || against.Check == judge.CheckTasks):
		return p.refuse(against.Check, against.Reasons)
	case against != nil && len(against.Reasons) > 0 && against.Reasons[0].Code == policy.NoAction:
		return p.refuse(against.Check, against.Reasons)
	case len(w.Tasks) == 0 && w.Counted == 0:
		return p.refuse(judge.CheckTasks, nil)
	case d.Blind && (against.Outcome != judge.Failed || p.question.Means != PlaceOnly):
		nothing := []policy.Reason{*judge.NothingOffered(p.Host)}
		return &Miss{Check: judge.CheckNodes, Reasons: nothing, Task: model.None, Node: model.None}, nil
	case len(w.Tasks) == 0 || d.Lacking && (against.Outcome != judge.Failed || p.question.Means != PlaceOnly):
		return &Miss{Check: judge.CheckTasks, Task: model.None, Node: model.None}, nil
	}
	p.about(d.Tasks)
	if against == nil {
		p.plan.Least = true
		return nil, p.conclude(&draft{nodes: d.Nodes})
	}
	if p.question.Means == PlaceOnly {
		return p.unplaced(against, against.Outcome == judge.Failed)
	}
	return p.evictingFor(d, against, w)
}

// evictingFor makes a plan with evictions for a job that the judge holds back, as far as the policy permits the job to evict.
func (p *planner) evictingFor(d *judge.Judgement, against *judge.Finding, w *engine.Need) (*Miss, error) {
	proven := against.Outcome == judge.Failed
	if err := p.Tried(func() error {
		p.enter()
		p.permitMeans()
		return nil
	}); err != nil {
		return nil, err
	}
	switch {
	case !p.place && !p.reclaim && !p.preempt:
		return p.refuse(p.refusedBy, p.refused)
	case against.Check == judge.CheckQueue && d.Nodes != nil && d.Passes(judge.CheckShare) && place.OptionsOf(p.Host, w) == nil:
		// The tasks have room, and their queue may use that much, so that no victim would be necessary.
		miss, err := p.refuse(judge.CheckQueue, p.refused)
		miss.Placed = len(p.tasks)
		return miss, err
	case !p.reclaim && !p.preempt && (!p.asks || place.OptionsOf(p.Host, w) == nil):
		if proven {
			p.plan.Outcome = None
		}
		return p.lacking()
	}
	return p.evicting(w, proven)
}

// refuse records that there is no plan.
func (p *planner) refuse(check judge.CheckKind, reasons []policy.Reason) (*Miss, error) {
	p.plan.Outcome = None
	return &Miss{Check: check, Reasons: reasons, Task: model.None, Node: model.None}, nil
}

// unplaced says what a plan without evictions lacks.
func (p *planner) unplaced(against *judge.Finding, proven bool) (*Miss, error) {
	if proven {
		p.plan.Outcome = None
	}
	if against.Check != judge.CheckNodes {
		return &Miss{Check: against.Check, Reasons: against.Reasons, Task: against.Task, Node: model.None}, nil
	}
	miss, err := p.lacking()
	if err == nil && miss.Check != judge.CheckNodes {
		miss = &Miss{Check: judge.CheckNodes, Task: model.None, Node: model.None, Placed: int(against.Reasons[0].Have)}
	}
	return miss, err
}

// enter admits the job if it waits for that, and reports whether it may go on.
func (p *planner) enter() bool {
	if p.View().Phase(p.question.Job) != model.PhasePending {
		return p.View().Phase(p.question.Job) != model.PhaseCompleted
	}
	p.plan.Enters = true
	return p.Job(p.question.Job).Enqueue(nil)
}

// permitMeans sets which means the policy permits for the job. As in Volcano's actions, only a job that lacks tasks may evict, a queue that
// is passed over is served only by preemption, and only a queue that may take from others reclaims.
func (p *planner) permitMeans() {
	means := p.question.Means
	var why policy.Reasons
	overused := p.IsOverused(p.queue, &why)
	if p.place = !overused; overused {
		p.refused, p.refusedBy = why.List, judge.CheckQueue
	}
	if means == PlaceOnly {
		return
	}
	why = policy.Reasons{}
	if !p.Preempt().Asks(p.question.Job, &why) {
		p.refuseEviction(why.List)
		return
	}
	p.preempt = means != ByReclaim && p.Preempt().Runs(&why)
	if why.Len() > 0 {
		p.refuseEviction(why.List)
	}
	if means == ByPreempt {
		return
	}
	if !p.Reclaim().Runs(&why) {
		p.refuseEviction(why.List)
		return
	}
	if !p.Reclaim().Asks(p.question.Job, &why) {
		p.refuseEviction(p.refused)
		return
	}
	p.asks = true
	p.permitReclaim()
}

// permitReclaim sets whether the policy lets the job take from other queues for its tasks.
func (p *planner) permitReclaim() {
	var why policy.Reasons
	p.reclaim = false
	for i := 0; i < len(p.tasks) && !p.reclaim; i++ {
		why.List = why.List[:0]
		if p.Reclaim().Plans() {
			p.reclaim, i = p.Preemptive(p.tasks, &why, nil), len(p.tasks)
		} else {
			p.reclaim = p.Preemptive(p.tasks[i:i+1], &why, nil)
		}
	}
	if !p.reclaim {
		p.refuseEviction(why.List)
	}
}

func (p *planner) refuseEviction(reasons []policy.Reason) {
	if p.place || p.refusedBy == 0 {
		p.refused, p.refusedBy = reasons, judge.CheckEviction
	}
}

// Spend spends the cost of the search of a plan.
func Spend(h engine.Host) error {
	v := h.View()
	if err := v.Work.Spend(2, place.Work); err != nil {
		return err
	}
	return v.Work.Spend(v.Tasks.Len()+len(v.Nodes)+planWork, v.Dims.Len()*len(h.Plugins()))
}
