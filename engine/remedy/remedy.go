// Package remedy finds the smallest changes of a cluster that make a waiting job run. Each was tried on a session of the changed cluster.
package remedy

import (
	"cmp"
	"errors"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Kind is a kind of change that may make a job run. See Kind.Edits for its kind of edits.
type Kind uint8

// The kinds, in the order in which they are tried and listed.
const (
	// SmallerMinimum lowers how many tasks the gang of the job needs.
	SmallerMinimum Kind = 1
	// SmallerRequest lowers what the waiting tasks of a role ask for.
	SmallerRequest Kind = 2
	// OtherQueue moves the job.
	OtherQueue Kind = 3
	// OpenQueue opens a queue that takes no jobs.
	OpenQueue Kind = 4
	// HigherCapability raises the limit of the job's queue or of a queue above it.
	HigherCapability Kind = 5
	// HigherGuarantee raises what is kept for such a queue.
	HigherGuarantee Kind = 6
	// HigherDeserved raises what such a queue deserves by its settings.
	HigherDeserved Kind = 7
	// HigherWeight raises the weight of such a queue.
	HigherWeight Kind = 8
	// MoreNodes adds nodes that are like one of the cluster.
	MoreNodes Kind = 9
	// Uncordoned lets cordoned nodes take new tasks.
	Uncordoned Kind = 10
	// Combined changes a setting of the queue together with something of another kind. It is tried where neither alone makes the job run.
	Combined Kind = 11
	// JobsEnd ends running jobs.
	JobsEnd Kind = 12
	// Eviction evicts running tasks by a plan; see plan.For.
	Eviction Kind = 13
	// Wait changes nothing: running jobs end when they are expected to; see forecast.For.
	Wait Kind = 14
	// OtherNodes lets the waiting tasks of the job use nodes that their node sets leave out.
	OtherNodes Kind = 15

	// LastKind is the last of them.
	LastKind = OtherNodes
)

// Remedy is a smallest change that makes a job run, which was tried: with all edits the job runs, and with one Step less of any edit it
// does not. With edits and a Plan, the plan makes the job run after the edits, and with one Step less there is no plan.
type Remedy struct {
	Kind Kind
	// Edits that follow from others come last, and have no Step.
	Edits []edit.Edit
	// Loses are the queues that deserve less, the greatest loss first, and Losing how many there are in all.
	Loses  []QueueLoss
	Losing int
	// Ended counts the tasks that hold resources of the jobs that end, and Freed sums what they hold.
	Ended int
	Freed resource.Row
	// Plan is the plan of an Eviction, or the one that a SmallerMinimum needs besides. Its tasks are those of the cluster after the edits,
	// where the victims have the numbers that they have now.
	Plan *plan.Plan
	// At is when the last job of a Wait is expected to end, in Unix nanoseconds.
	At int64
}

// QueueLoss is a queue that deserves less under a remedy.
type QueueLoss struct {
	Queue model.QueueID
	// Plugin that divides.
	Plugin string
	// Before and After are its deserved amounts in the dimensions in which it deserves less, and Allocated is what it holds in them.
	Before, After, Allocated resource.Row
}

// Outcome says whether remedies were found. The values are those of the contract's RemedyOutcome.
type Outcome uint8

// The outcomes.
const (
	// Found: there is at least one.
	Found Outcome = 1
	// NotFound: nothing that was tried makes the job run.
	NotFound Outcome = 2
	// RunsNow: nothing blocks the job.
	RunsNow Outcome = 3
	// WaitsForNothing: the job has everything that it requests.
	WaitsForNothing Outcome = 4
	// NotJudged: nothing was tried; Check and Reasons say why. The job has no task that may be placed, or no node states what it offers, or
	// nothing that is judged holds the job back, but its placement also depends on Unjudged.
	NotJudged Outcome = 5
)

// UntriedCause is the reason why a change was not tried. The values are those of the contract's UntriedCause.
type UntriedCause uint8

// The causes.
const (
	// NoneThere: the cluster or the job has nothing of that kind.
	NoneThere UntriedCause = 1
	// BeyondBound: there are more than Of of them; Tried were tried.
	BeyondBound UntriedCause = 2
	// TriesSpent: the bound on all tries, or on the work of the question, was reached.
	TriesSpent UntriedCause = 3
	// NotNeeded: smaller remedies of other kinds were found.
	NotNeeded UntriedCause = 4
)

// UntriedBound says what a bound counts. The values are those of the contract's UntriedBound.
type UntriedBound uint8

// The bounds. The search of a plan has no count.
const (
	BoundShapes UntriedBound = 1
	// BoundAddedNodes counts the nodes that are added of one shape.
	BoundAddedNodes UntriedBound = 2
	BoundNodes      UntriedBound = 3
	BoundRoles      UntriedBound = 4
	BoundQueues     UntriedBound = 5
	// BoundLevels counts the levels of the queue tree, from the job's queue upwards.
	BoundLevels UntriedBound = 6
	BoundJobs   UntriedBound = 7
	// BoundWeight is the highest weight that is tried.
	BoundWeight UntriedBound = 8
)

// Untried is a set of changes that were not tried.
type Untried struct {
	Kind  Kind
	Cause UntriedCause
	// Tried of Of were, with BeyondBound; Of is 0 if the number is not known.
	Tried, Of int
	Bound     UntriedBound
}

// Answer says what would make a job run.
type Answer struct {
	Job     model.JobID
	Outcome Outcome
	// Unjudged are the placement constraints of the waiting tasks that the snapshot does not express.
	Unjudged model.Constraints
	// Check and Reasons say what holds the job back first.
	Check   judge.CheckKind
	Reasons []policy.Reason
	// List holds the remedies by kind, in the order of the kinds.
	List []Remedy
	// Untried says what was not tried, in the order of the kinds. A change that was tried and is not listed does not help.
	Untried []Untried
	// Tries counts the changed clusters about which the policy was asked.
	Tries int
}

// remedyTries bounds the changed clusters that one question opens.
const remedyTries = 320

// errSpent ends the search at a bound on its tries.
var errSpent = errors.New("no tries are left")

// Question asks what would make a job run.
type Question struct {
	Job model.JobID
	// Kinds are tried; nil: all.
	Kinds []Kind
}

// Find finds the smallest changes of each kind that make a waiting job run. Each was tried: the engine opened a session on the changed
// cluster and found that the job runs there, in the sense of PlaceOnly of Plan; and that it does not run with one step less of the change.
// Amounts and counts are found by bisection, sets by a greedy search whose members are then left out one by one. Jobs that come first are
// not considered; see Explain.
//
// It changes nothing. The error is policy.ErrStopped, or a *policy.WorkError if not even the first question can be paid; later it ends the
// search, and TriesSpent says so.
func Find(s *engine.Session, q *Question) (*Answer, error) {
	h, j, out := s.Host(), q.Job, &Answer{Job: q.Job}
	if !h.Waits(j) {
		out.Outcome = WaitsForNothing
		return out, nil
	}
	err := h.Afresh(false, func() error {
		r := &remedier{Host: h, job: j, out: out, base: s.View().Model, names: s.View().Dims.Names(), asked: map[string]*standing{}}
		return r.find(q.Kinds)
	})
	return out, err
}

// remedier finds remedies.
type remedier struct {
	engine.Host

	job model.JobID
	out *Answer
	// base is the model that is changed, names its dimensions.
	base  *model.Model
	names []string
	// asked remembers how the job stands under changes that were tried.
	asked map[string]*standing
	// evicts: a job runs, too, if a plan with evictions serves it.
	evicts bool
	// need is the least amount that the gang requests: the sum of its tasks, or its minimum resources. gang are these tasks.
	need resource.Row
	gang []model.TaskID
	// kinds has the first of the waiting tasks of each kind.
	kinds []model.TaskID
	// path holds the queue of the job and those above it, the nearest first.
	path []model.QueueID
	// shapes of nodes, those first of which a task could use a node, and of these those first of which there are most; nil until needed.
	shapes []shape
	// beside is turned together with each change that is listed, and is at its most in what is asked about others.
	beside []dial
	// warned counts the warnings by what they are about.
	warned map[warningKey]int
	// deserved holds the present deserved amounts of queues, by divider.
	deserved []map[model.QueueID]resource.Row
}

// find finds all remedies.
func (r *remedier) find(kinds []Kind) error {
	now, err := r.standing(nil)
	if err != nil {
		return err
	}
	w := r.NeedOf(r.job)
	r.out.Check, r.out.Reasons, r.out.Unjudged = now.check, now.reasons, w.Unjudged
	switch {
	case now.runs && w.Unjudged != 0:
		r.out.Outcome, r.out.Check = NotJudged, judge.CheckConstraints
		return nil
	case now.runs:
		r.out.Outcome = RunsNow
		return nil
	}
	r.prepare(w)
	if now.blind || len(r.gang) == 0 && r.View().Account(r.job).AllTasks() > 0 {
		r.out.Outcome = NotJudged
		return nil
	}
	asked := func(kind Kind) bool { return kinds == nil || slices.Contains(kinds, kind) }
	for kind := Kind(1); kind <= LastKind; kind++ {
		if !asked(kind) || kind == Combined {
			continue
		}
		if err := r.unlessSpent(kind, r.try(kind)); err != nil {
			return err
		}
	}
	if asked(SmallerMinimum) && asked(Eviction) && !r.found(Eviction) {
		if err := r.unlessSpent(SmallerMinimum, r.smallerMinimumWithEvictions()); err != nil {
			return err
		}
	}
	// What is not enough alone is known by then.
	if asked(Combined) {
		if err := r.unlessSpent(Combined, r.combined()); err != nil {
			return err
		}
	}
	slices.SortStableFunc(r.out.List, func(a, b Remedy) int { return cmp.Compare(a.Kind, b.Kind) })
	slices.SortStableFunc(r.out.Untried, func(a, b Untried) int { return cmp.Compare(a.Kind, b.Kind) })
	if r.out.Outcome = Found; len(r.out.List) == 0 {
		r.out.Outcome = NotFound
	}
	return nil
}

// prepare finds out what the job asks for, and remembers what others have.
func (r *remedier) prepare(w *engine.Need) {
	v := r.View()
	r.gang = w.Needed
	seen := map[engine.Kind]bool{}
	for _, t := range w.Tasks {
		if key := r.KindOf(t); !seen[key] {
			seen[key] = true
			r.kinds = append(r.kinds, t)
		}
	}
	r.need = r.Sum(r.gang)
	job := v.Jobs.At(r.job)
	if minimum := job.MinResources; !minimum.Absent() && v.Phase(r.job) == model.PhasePending {
		r.need.Max(minimum)
	}
	r.path = r.pathOf(job.Queue)
	r.warned = r.warnings()
	for _, d := range r.Dividers() {
		r.deserved = append(r.deserved, deservedOf(v, d))
	}
}

// try finds remedies of a kind.
func (r *remedier) try(kind Kind) error {
	switch kind {
	case SmallerMinimum:
		return r.smallerMinimum()
	case SmallerRequest:
		return r.smallerRequest()
	case OtherQueue:
		return r.otherQueue()
	case OpenQueue, HigherCapability, HigherGuarantee, HigherDeserved, HigherWeight:
		return r.setting(kind)
	case MoreNodes:
		return r.moreNodes()
	case Uncordoned:
		return r.uncordoned()
	case Combined:
		_, err := r.list(kind, nil)
		return err
	case JobsEnd:
		return r.jobsEnd()
	case Eviction:
		return r.eviction()
	case Wait:
		return r.wait()
	case OtherNodes:
		return r.otherNodes()
	}
	return nil
}

// unlessSpent returns the error of a search for remedies of a kind, unless it is that the tries are spent, which it notes.
func (r *remedier) unlessSpent(kind Kind, err error) error {
	if !errors.Is(err, errSpent) {
		return err
	}
	r.untried(kind, TriesSpent)
	return nil
}

func (r *remedier) untried(kind Kind, cause UntriedCause) {
	r.out.Untried = append(r.out.Untried, Untried{Kind: r.as(kind), Cause: cause})
}

// cut notes a bound that cut the search for remedies of a kind, once.
func (r *remedier) cut(kind Kind, bound UntriedBound, tried, of int) {
	if noted := (Untried{r.as(kind), BeyondBound, tried, of, bound}); !slices.Contains(r.out.Untried, noted) {
		r.out.Untried = append(r.out.Untried, noted)
	}
}

// found reports whether a remedy of one of some kinds is listed.
func (r *remedier) found(kinds ...Kind) bool {
	return slices.ContainsFunc(r.out.List, func(listed Remedy) bool { return slices.Contains(kinds, listed.Kind) })
}
