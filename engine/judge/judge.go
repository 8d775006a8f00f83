// Package judge says whether a waiting job could start at once, whatever other jobs wait, and what is against it: may it enter its queue,
// has it its tasks, is its queue served, may the queue use that much, have the nodes room. Explanations, plans, forecasts and remedies all
// read its findings, so that none of them says of a job what another denies.
package judge

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Judgement says whether a job could start at once, regardless of other waiting jobs, and what blocks it if not. Every answer about a
// waiting job reads it: explanations, plans, forecasts and remedies.
type Judgement struct {
	Job model.JobID
	// Findings are the checks of the job regardless of other waiting jobs, in the order in which they block it.
	Findings []Finding
	// Waiting counts pending tasks; Counted those of them given as counts; Gated those with a gate; Needed is the minimum number of listed
	// ones that the gang needs.
	Waiting, Counted, Gated, Needed int
	// Unjudged are the placement constraints that the snapshot does not express.
	Unjudged model.Constraints
	// Tasks are those of the waiting ones that were chosen: as many as the gang needs. Where not every check is passed, they are the choice
	// that came furthest.
	Tasks []model.TaskID
	// Nodes are where Tasks have room, if the judge was to choose nodes and every check is passed.
	Nodes []model.NodeID
	// Enters: the job must be admitted first. Lacking: only tasks that are counted, not listed, can be those that the gang lacks. Blind: no
	// node states its allocatable amount, so that checks that depend on nodes are not made.
	Enters, Lacking, Blind bool
}

// Add adds a finding.
func (d *Judgement) Add(f Finding) *Finding {
	d.Findings = append(d.Findings, f)
	return &d.Findings[len(d.Findings)-1]
}

// Find adds a finding about no particular task.
func (d *Judgement) Find(check CheckKind, outcome Outcome, reasons ...policy.Reason) *Finding {
	return d.Add(Finding{Check: check, Outcome: outcome, Reasons: reasons, Task: model.None})
}

// Failed returns the first finding that holds the job back, nil if none does.
func (d *Judgement) Failed() *Finding {
	i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.Outcome == Failed })
	if i < 0 {
		return nil
	}
	return &d.Findings[i]
}

// Passes reports whether the job passes a check.
func (d *Judgement) Passes(check CheckKind) bool {
	return slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Check == check && f.Outcome == Passed })
}

// Against returns what holds the job back, or else leaves open whether it could start; nil if it could.
func (d *Judgement) Against() *Finding {
	if failed := d.Failed(); failed != nil {
		return failed
	}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.Outcome == NotKnown && f.Check != CheckConstraints {
			return f
		}
	}
	return nil
}

// Judge judges the jobs of one state, and remembers what is the same for several of them.
type Judge struct {
	engine.Host

	// Brief: the checks of a job end with the first that fails. Seats: nodes are chosen. Once: one job is judged, who asks has paid for
	// that, and the tasks are booked to see whether the policy lets them be placed one after the other.
	Brief, Seats, Once bool
	// room is the room of the nodes for each kind of task, gaining whether there is more of it later.
	room    map[engine.Kind]*kindRoom
	gaining map[engine.Kind]bool
	// queues holds for each queue whether it is served; nil until needed.
	queues []*Finding
	// free is what the nodes have left, now and later. released is what running tasks that are being released add, on the nodes in
	// releasing; nil until needed.
	free      [2]*freeNodes
	released  map[model.NodeID]*resource.Row
	releasing []model.NodeID
	// borrows: what the job may use depends on what others leave on the nodes.
	borrows bool
	// Booked are the nodes on which something was booked since then; nil: nothing may have been.
	Booked []model.NodeID
}

// New returns a judge of the present state.
func New(h engine.Host) *Judge {
	return &Judge{
		Host: h, queues: make([]*Finding, len(h.View().Queues)), room: make(map[engine.Kind]*kindRoom), gaining: make(map[engine.Kind]bool),
	}
}

// Once judges one job, and chooses nodes; brief: up to the first check that it fails.
func Once(h engine.Host, j model.JobID, w *engine.Need, brief bool) (*Judgement, error) {
	g := New(h)
	g.Brief, g.Seats, g.Once = brief, true, true
	return g.Check(j, w)
}

// Check makes the checks of a job by itself in their order. The other checks are made in the state in which the job is admitted.
func (g *Judge) Check(j model.JobID, w *engine.Need) (*Judgement, error) {
	d := &Judgement{
		Job: j, Waiting: len(w.Tasks) + w.Counted, Counted: w.Counted, Gated: w.Gated, Needed: len(w.Needed), Unjudged: w.Unjudged,
		Tasks: w.Needed, Enters: g.View().Phase(j) == model.PhasePending && g.Waits(j),
	}
	creates := g.CreatesTasks(j)
	if !d.Enters {
		d.Find(CheckAdmission, Passed)
	}
	switch nothing := NothingOffered(g.Host); {
	case nothing != nil && g.View().Total.Positive() == 0 && g.Waits(j):
		return d, g.blindly(d, w, creates, *nothing)
	case !d.Enters:
		return d, g.after(d, w, creates)
	}
	admitted := false
	err := g.Tried(func() error {
		why := policy.Reasons{Every: true}
		switch admitted = g.Job(j).Enqueue(&why); {
		case !admitted:
			d.Find(CheckAdmission, Failed, why.List...)
			return nil
		case len(why.List) > 0 && why.List[0].Code == policy.NoAction:
			d.Find(CheckAdmission, Passed, why.List...)
		case g.View().Jobs.At(j).MinResources.Absent():
			d.Find(CheckAdmission, Passed, policy.Because("", policy.NoMinResources, model.None))
		default:
			d.Find(CheckAdmission, Passed)
		}
		return g.after(d, w, creates)
	})
	if err != nil || admitted || g.Brief {
		return d, err
	}
	return d, g.after(d, w, creates)
}

// NothingOffered is the finding that no node states its allocatable amount; nil if some does.
func NothingOffered(h engine.Host) *policy.Reason {
	for _, n := range h.View().NodeOrder {
		if h.View().Nodes[n].Allocatable.Positive() != 0 {
			return nil
		}
	}
	nothing := policy.Because("", policy.NothingOffered, model.None)
	nothing.Limit = float64(len(h.View().NodeOrder))
	return &nothing
}

// blindly makes the check that needs no cluster, for snapshots without a total to divide.
func (g *Judge) blindly(d *Judgement, w *engine.Need, creates bool, nothing policy.Reason) error {
	if err := g.tasks(d, w, creates); err != nil || d.Failed() != nil {
		return err
	}
	g.blind(d, nothing)
	if w.Unjudged != 0 {
		d.Find(CheckConstraints, NotKnown)
	}
	return nil
}

// blind notes that no node states what it offers.
func (g *Judge) blind(d *Judgement, nothing policy.Reason) {
	d.Blind = true
	d.Find(CheckNodes, NotKnown, nothing)
}

// after makes the checks that follow the check of admission.
func (g *Judge) after(d *Judgement, w *engine.Need, creates bool) error {
	if err := g.tasks(d, w, creates); err != nil || g.Brief && d.Failed() != nil {
		return err
	}
	if len(w.Tasks) > 0 {
		if err := g.Placement(d, w); err != nil {
			return err
		}
	}
	if w.Unjudged != 0 {
		d.Find(CheckConstraints, NotKnown)
	}
	if w.Counted > 0 && (len(w.Tasks) == 0 || d.Lacking) {
		// Tasks without identity can be asked about neither shares nor nodes.
		d.Find(CheckNodes, NotKnown)
	}
	return nil
}

// Placement asks whether the waiting tasks of a job may be placed.
func (g *Judge) Placement(d *Judgement, w *engine.Need) error {
	if g.starts(d, w) {
		g.queue(d)
	}
	if g.Brief && d.Failed() != nil {
		return nil
	}
	o := place.OptionsOf(g.Host, w)
	if g.share(d, w, o); g.Brief && d.Against() != nil {
		return nil
	}
	return g.nodesFor(d, w, o)
}

// tasks asks whether a job has the tasks that its gang needs. Before admission it may have no plan yet: Volcano creates them afterwards.
// Tasks that a gate holds back are missing if the gang still needs them after all its other tasks are placed.
func (g *Judge) tasks(d *Judgement, w *engine.Need, creates bool) error {
	var why policy.Reasons
	switch {
	case creates:
		d.Find(CheckTasks, Noted)
		return nil
	case w.Gated > 0 && d.Waiting == 0:
		d.Find(CheckTasks, Failed, withGated(w, nil)...)
		return nil
	case !g.Job(d.Job).Valid(&why):
		d.Find(CheckTasks, Failed, withGated(w, why.List)...)
		return nil
	}
	settled := true
	if w.Short || w.Gated > 0 {
		if err := g.Tried(func() error {
			settled = g.SettledWith(d.Job, w.Needed, &why)
			return nil
		}); err != nil {
			return err
		}
	}
	d.Lacking = !settled && w.Counted > 0
	switch {
	case !settled && !d.Lacking:
		d.Find(CheckTasks, Failed, withGated(w, oncePlaced(w, why.List))...)
	case w.Gated > 0:
		d.Find(CheckTasks, Noted)
	default:
		d.Find(CheckTasks, Passed)
	}
	return nil
}

// oncePlaced notes in reasons that count ready tasks how many waiting tasks they count as ready.
func oncePlaced(w *engine.Need, reasons []policy.Reason) []policy.Reason {
	for i := range reasons {
		if code := reasons[i].Code; code == policy.NotReady || code == policy.RoleNotReady {
			reasons[i].Need = float64(len(w.Needed))
		}
	}
	return reasons
}

// withGated adds to reasons why a job lacks tasks that gates hold some of them back.
func withGated(w *engine.Need, reasons []policy.Reason) []policy.Reason {
	if w.Gated == 0 {
		return reasons
	}
	gated := policy.Because("", policy.TasksGated, model.None)
	gated.Have, gated.Need = float64(w.Gated), float64(len(w.Tasks)+w.Counted)
	return append(reasons, gated)
}

// starts reports whether the cycle has the actions that give the needed tasks their nodes; without them no queue is served.
func (g *Judge) starts(d *Judgement, w *engine.Need) bool {
	p := g.Policy()
	for _, t := range w.Needed {
		if action := g.Starts(t); !p.Acts(action) {
			d.Find(CheckQueue, Failed, engine.Missing(action))
			return false
		}
	}
	return true
}

// queue asks whether the job's queue is served, once for all jobs of the queue that are admitted already.
func (g *Judge) queue(d *Judgement) {
	q := g.View().Jobs.At(d.Job).Queue
	f := g.queues[q]
	if f == nil || d.Enters || g.Booked != nil {
		f = &Finding{Check: CheckQueue, Outcome: Passed, Task: model.None}
		var why policy.Reasons
		if g.IsOverused(q, &why) {
			f.Outcome, f.Reasons = Failed, why.List
		}
		if !d.Enters && g.Booked == nil {
			g.queues[q] = f
		}
	}
	d.Add(*f)
}

// share asks whether the queue may use what the gang needs. The tasks are chosen so that the policy permits them, if possible.
func (g *Judge) share(d *Judgement, w *engine.Need, o *place.Options) {
	why := policy.Reasons{Every: true}
	if g.Allocatable(w.Needed, policy.InSession, &why, nil) {
		d.Find(CheckShare, Passed, why.List...).Amount = g.Sum(w.Needed)
		return
	}
	all := true
	if o != nil {
		for i := range o.Classes {
			if c := &o.Classes[i]; !g.Allocatable(c.Tasks[:1], policy.InSession, nil, nil) {
				c.Most = 0
			}
		}
		var permit policy.Reasons
		var chosen []model.TaskID
		chosen, all = first(o, func(tasks []model.TaskID) bool {
			permit = policy.Reasons{}
			return g.Allocatable(tasks, policy.InSession, &permit, nil)
		})
		if chosen != nil {
			d.Tasks = chosen
			d.Find(CheckShare, Passed, permit.List...).Amount = g.Sum(chosen)
			return
		}
	}
	outcome := Failed
	if !all {
		outcome = NotKnown
	}
	for _, t := range w.Kinds {
		alone := policy.Reasons{Every: true}
		if !g.Allocatable([]model.TaskID{t}, policy.InSession, &alone, nil) {
			f := d.Find(CheckShare, outcome, alone.List...)
			f.Task, f.Amount = t, g.View().Request(t)
			return
		}
	}
	d.Find(CheckShare, outcome, why.List...).Amount = g.Sum(w.Needed)
}

// maxChoices bounds the choices of tasks that one check tries.
const maxChoices = 64

// first returns the first choice that passes, nil if none was found, and whether all were tried.
func first(o *place.Options, passes func([]model.TaskID) bool) (chosen []model.TaskID, all bool) {
	tried := 0
	all = !o.Bounded
	o.Each(func(tasks []model.TaskID) bool {
		if tried++; tried > maxChoices {
			all = false
			return false
		}
		if passes(tasks) {
			chosen = tasks
		}
		return chosen == nil
	})
	return chosen, all
}

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
	// CheckFeasibility asks whether the job could run if nothing else ran. It is a finding only where the job could not, before all others.
	CheckFeasibility CheckKind = 9
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
	// Reasons of a failed check: in CheckNodes those of nodes that have enough left first, then those of nodes that come
	// closest; in CheckEviction the most frequent first.
	Reasons []policy.Reason
	// Counts is the number of nodes (CheckNodes, CheckFeasibility) or tasks (CheckEviction) with each reason; otherwise nil.
	Counts []int
	// NodeCounts says in CheckNodes and CheckFeasibility why no node has room for Task, each node counted once; otherwise nil.
	NodeCounts []place.NodeCount
	// Task represents the tasks that the check is about; None: all.
	Task model.TaskID
	// Amount is the request (CheckShare, CheckNodes) or what evictions would free. Absent: nothing.
	Amount resource.Row
	// Tasks that could be evicted, in order of eviction: the victims of the plan if it has any, otherwise all.
	Tasks []model.TaskID
	// Enough: evicting these tasks makes room for what the gang needs.
	Enough bool
	// Jobs that are served before, in order.
	Jobs []model.JobID
	// Preempt: the tasks that could be evicted belong to the job's own queue.
	Preempt bool
}
