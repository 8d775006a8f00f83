package engine

import (
	"math/big"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Means says how a plan may make room. The values are those of the contract's PlanMeans.
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

// PlanQuestion asks how the tasks of a job get their place.
type PlanQuestion struct {
	Job model.JobID
	// Tasks are to be placed, all of them; they are pending, of the job, and each occurs once. nil: those that the gang needs at least, or
	// one task of a job that has its minimum.
	Tasks []model.TaskID
	// Means is one of the above.
	Means Means
	// MaxVictims bounds the victims; 0: no bound.
	MaxVictims int
	// Quick leaves out what costs most: smaller sets of victims are not tried beyond those that the search task by task finds, a miss has
	// nothing but its check, and victims do not say whether they could return.
	Quick bool
}

// PlanOutcome says whether there is a plan. The values are those of the contract's PlanOutcome.
type PlanOutcome uint8

// The outcomes of a plan.
const (
	// PlanMade: the plan was carried out by events of the session and undone again.
	PlanMade PlanOutcome = 1
	// NoPlan: it is proven that there is none.
	NoPlan PlanOutcome = 2
	// PlanNotFound: none was found, and it is not proven that there is none.
	PlanNotFound PlanOutcome = 3
)

// Plan says where the tasks of a job go, and which tasks are evicted for that. It is whole or not at all.
type Plan struct {
	Job     model.JobID
	Outcome PlanOutcome
	// Least: it is proven that no plan has fewer victims.
	Least bool
	// CutShort: the search ended at a bound on its work.
	CutShort bool
	// Enters: the job is to be admitted first, and may be.
	Enters bool
	// Ready: the job has its minimum after the plan.
	Ready bool
	// Tasks are those asked about, in order of service.
	Tasks []model.TaskID
	// Nodes are those of Tasks; nil without a plan.
	Nodes []model.NodeID
	// Released says for each task whether its node has room only after tasks are gone that are being released already.
	Released []bool
	// Victims are in the order in which they are to be evicted.
	Victims []Evicted
	// Fall and Rise are by how much a plan of a policy with a potential lowers and raises it; nil for other policies, and where no task of
	// other queues is evicted.
	Fall, Rise *[3]*big.Rat
	// Miss says what a plan lacks; nil with a plan.
	Miss *Miss
	// Looked counts the nodes and the sets of victims that the search asked the policy about.
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
	// Limit: it is evicted so that a queue stays within its limit, and the node of For has room without it.
	Limit bool
	// Tier is the position of the tier that decided; Plugins are those of it that let the task go.
	Tier    int
	Plugins []string
	// Returns says what the victim could do at once.
	Returns Return
}

// Return says how a victim could get its place back at once. The values are those of the contract's VictimReturn.
type Return uint8

// The ways to return.
const (
	// NoReturn: it could not, by what the policy says of the state after the plan.
	NoReturn Return = 1
	// ServedFirst: its queue is served before that of the job, and may use the room that the victim left before the job gets it.
	ServedFirst Return = 2
	// TakesBack: when the job runs, the victim may evict a task of it.
	TakesBack Return = 3
)

// Miss says what a plan lacks.
type Miss struct {
	// Check is what no plan gets past.
	Check CheckKind
	// Reasons of the check, or in CheckNodes why no task may be evicted.
	Reasons []policy.Reason
	// Placed is for how many of the tasks a place was found.
	Placed int
	// Task has no place; None: the miss is about all.
	Task model.TaskID
	// Node is where Task lacks least once all tasks are gone that it may evict there, or None; Short is what it lacks there, absent if
	// nothing.
	Node  model.NodeID
	Short resource.Row
	// Protected says what keeps tasks on Node, and Counts of how many tasks that is true.
	Protected []policy.Reason
	Counts    []int
	// Victims is how many victims a plan needs that has more than it may; 0: that is not what it lacks.
	Victims int
}

// planEvaluations bounds the nodes that a search asks the policy about, each time that it starts afresh.
const planEvaluations = 1 << 13

// Plan finds a place for tasks of a job, with as few victims as it can: fewer before more, then those of lower priority, then younger ones,
// then by name. Every limit of the policy holds afterwards and the policy lets every victim go; what is answered was carried out by the
// events of the session, and undone. No victim can be left out: its node, or a limit, lacks it.
//
// The search looks at each running task once and then, for each task to place, at the few nodes that promise most; where victims are few
// and candidates too it then tries every smaller set of victims. It changes nothing. The error is policy.ErrStopped, or a
// *policy.WorkError.
func (s *Session) Plan(q *PlanQuestion) (*Plan, error) {
	p := &planner{Session: s, question: q, plan: Plan{Job: q.Job}}
	x := explainer{Session: s}
	waiting := x.waiting(q.Job)
	if p.tasks = q.Tasks; q.Tasks == nil {
		p.tasks = waiting.needed
	}
	p.plan.Tasks = p.tasks
	miss, err := p.refusal(waiting)
	if miss == nil && err == nil {
		miss, err = p.search()
	}
	if err != nil {
		return nil, err
	}
	if p.plan.Miss = miss; miss != nil && p.plan.Outcome == 0 {
		p.plan.Outcome = PlanNotFound
	}
	return &p.plan, nil
}

// planner searches a plan.
type planner struct {
	*Session

	question *PlanQuestion
	plan     Plan
	tasks    []model.TaskID
	// queue is that of the job.
	queue model.QueueID
	// place, reclaim and preempt are what the policy lets the job do; refused says why it may not reclaim.
	place, reclaim, preempt bool
	refused                 []policy.Reason
	refusedBy               CheckKind
	// released is what a node has more, once what is being released is gone and what waits for that has its place.
	released map[model.NodeID]*resource.Row
	pool     pool
	// hosts says that some task alone makes room for several; asked counts the nodes looked at since the search started afresh.
	hosts bool
	asked int
	// missed is what the first attempt among all tasks lacks.
	missed *Miss
}

// refusal returns what keeps the job from any plan, and finds out what it may do.
func (p *planner) refusal(w *waiting) (*Miss, error) {
	v, j := p.view, p.question.Job
	p.queue = v.Jobs.At(j).Queue
	var why policy.Reasons
	refuse := func(check CheckKind) (*Miss, error) {
		p.plan.Outcome = NoPlan
		return &Miss{Check: check, Reasons: why.List, Task: model.None, Node: model.None}, nil
	}
	if len(p.tasks) == 0 {
		if w.gated > 0 {
			gated := policy.Because("", policy.TasksGated, model.None)
			gated.Have = float64(w.gated)
			why.Add(gated)
		}
		return refuse(CheckTasks)
	}
	if !p.Valid(j, &why) {
		return refuse(CheckTasks)
	}
	admitted, ready := true, true
	err := p.undone(func() error {
		if admitted = p.enter(&why); !admitted {
			return nil
		}
		p.may()
		for _, t := range p.tasks {
			p.Book(t, model.Allocated, model.None)
		}
		ready = p.Ready(j, &why)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !admitted:
		return refuse(CheckAdmission)
	case !ready && p.question.Tasks == nil:
		return refuse(CheckTasks)
	case !p.place && !p.reclaim && !p.preempt:
		why.List = p.refused
		return refuse(p.refusedBy)
	}
	return nil, nil //nolint:nilnil // No refusal, no error.
}

// enter admits the job if it waits for that, and reports whether it may go on.
func (p *planner) enter(why *policy.Reasons) bool {
	if p.view.Phase(p.question.Job) != model.PhasePending {
		return p.view.Phase(p.question.Job) != model.PhaseCompleted
	}
	p.plan.Enters = true
	return p.Enqueue(p.question.Job, why)
}

// may finds out what the policy lets the job do. As in Volcano's actions, only a job that lacks tasks may evict, an overused queue is
// served only by preemption, and only a queue that may take from others reclaims.
func (p *planner) may() {
	means := p.question.Means
	var why policy.Reasons
	overused := p.IsOverused(p.queue, &why)
	if p.place = !overused; overused {
		p.refused, p.refusedBy = why.List, CheckQueue
	}
	if means == PlaceOnly {
		return
	}
	why = policy.Reasons{}
	if (len(p.by.starving) > 0 || !p.Plans()) && !p.Starving(p.question.Job, &why) {
		p.refuseEviction(why.List)
		return
	}
	p.preempt = means != ByReclaim
	if means == ByPreempt {
		return
	}
	if overused {
		p.refuseEviction(p.refused)
		return
	}
	why = policy.Reasons{}
	for i := 0; i < len(p.tasks) && !p.reclaim; i++ {
		why.List = why.List[:0]
		if p.Plans() {
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
		p.refused, p.refusedBy = reasons, CheckEviction
	}
}

// undone carries something out and undoes it.
func (p *planner) undone(do func() error) error {
	return (&explainer{Session: p.Session}).tried(do)
}

// future sets row to what a node will have left once what is being released is gone.
func (p *planner) future(n model.NodeID, row *resource.Row) {
	p.view.Idle(n, row)
	if more := p.released[n]; more != nil {
		row.Add(*more)
	}
}

// findReleased sums what is being released, less what waits for it, by node.
func (p *planner) findReleased() {
	v := p.view
	p.released = map[model.NodeID]*resource.Row{}
	for _, j := range v.Present() {
		account := v.Account(j)
		if account.Tasks[model.Releasing]+account.Tasks[model.Pipelined] == 0 {
			continue
		}
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			status, n := v.Status(t), v.NodeOf(t)
			if n == model.None || status != model.Releasing && status != model.Pipelined {
				continue
			}
			row := p.released[n]
			if row == nil {
				made := resource.NewRow(v.Dims.Len())
				row, p.released[n] = &made, &made
			}
			if status == model.Releasing {
				row.Add(v.Request(t))
			} else {
				row.Sub(v.Request(t))
			}
		}
	}
}
