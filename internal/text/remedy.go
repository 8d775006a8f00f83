package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// Remedies summarises the remedies of a job in a few sentences. The texts of the remedies are set.
func Remedies(names Names, a *apportionv1.RemediesAnswer) string {
	job := visible.Text(names.job(a.GetJob()))
	var head string
	switch a.GetOutcome() {
	case apportionv1.RemedyOutcome_REMEDY_OUTCOME_WAITS_FOR_NOTHING:
		return job + " waits for nothing."
	case apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW:
		head = job + " can run as soon as its scheduler serves it: nothing but jobs that come first can hold it back."
		if left := kueueLeft(a.GetKueue()); left != "" {
			head += " " + left
		}
		return head
	case apportionv1.RemedyOutcome_REMEDY_OUTCOME_NOT_JUDGED:
		switch {
		case nothingOffered(a.GetCauses()):
			return "No change was tried, and " + job + " is not judged: " + Reasons(names, a.GetCauses()) + "."
		case a.GetCheck() == apportionv1.CheckKind_CHECK_KIND_CONSTRAINTS:
			return job + " passes every check that is made here, so that no change was tried; " +
				alsoDepends(a.GetUnjudgedConstraints()) + "."
		}
		head = "No change was tried: " + job + " has no task that may be placed"
		if reasons := Reasons(names, a.GetCauses()); reasons != "" {
			head += ": " + reasons
		}
		return head + "."
	case apportionv1.RemedyOutcome_REMEDY_OUTCOME_FOUND:
		head = fmt.Sprintf("%s were found, each of which lets %s run unless jobs that come first take the room.",
			Count(len(a.GetRemedies()), "change"), job)
		if len(a.GetRemedies()) == 1 {
			head = "1 change was found that lets " + job + " run unless jobs that come first take the room."
		}
		if len(a.GetUnjudgedConstraints()) > 0 {
			head += " " + capital(alsoDepends(a.GetUnjudgedConstraints())) + "."
		}
	default:
		head = "No change that was tried lets " + job + " run."
	}
	sentences := []string{head}
	if left := kueueLeft(a.GetKueue()); left != "" {
		sentences = append(sentences, left)
	}
	for _, remedy := range a.GetRemedies() {
		sentences = append(sentences, remedy.GetText())
	}
	for _, untried := range a.GetUntriedKinds() {
		if CutShort(untried) {
			sentences = append(sentences, Untried(untried))
		}
	}
	return strings.Join(sentences, " ")
}

// Remedy is one remedy in a sentence, and what it costs others.
func Remedy(names Names, job uint32, r *apportionv1.Remedy) string {
	if r.GetKueue() != nil {
		return Sentence(kueueRemedy(names, r))
	}
	w := remedied{names, job, r}
	var clauses []string
	switch {
	case r.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION:
		clauses = append(clauses, w.evict()+", as plan says")
	case r.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_WAIT:
		clauses = append(clauses, "wait until "+moment(r.GetTime())+" for the end of "+w.running())
	case EditsOf(r) == apportionv1.EditKind_EDIT_KIND_END:
		clauses = append(clauses, "end "+w.running())
	default:
		for _, edit := range r.GetEdits() {
			if clause := w.clause(edit); !follows(edit) && !slices.Contains(clauses, clause) {
				clauses = append(clauses, clause)
			}
		}
		if len(r.GetVictims()) > 0 {
			clauses = append(clauses, w.evict()+", as plan says then")
		}
	}
	sentence := capital(and(clauses)) + "."
	if losses := w.losses(); losses != "" {
		sentence += " " + losses + "."
	}
	return Sentence(sentence)
}

// EditsOf returns the kind of the edits of a remedy; unspecified if they are of several kinds, or there are none.
func EditsOf(r *apportionv1.Remedy) apportionv1.EditKind {
	if r.GetMeans() != apportionv1.RemedyMeans_REMEDY_MEANS_EDITS || len(r.GetEdits()) == 0 {
		return apportionv1.EditKind_EDIT_KIND_UNSPECIFIED
	}
	return r.GetEdits()[0].GetKind()
}

// follows reports whether an edit of a remedy follows from others.
func follows(e *apportionv1.Edit) bool { return e.Amount != nil && e.Step == nil }

// remedied is a remedy that is put into words.
type remedied struct {
	names  Names
	job    uint32
	remedy *apportionv1.Remedy
}

// evict says how much is evicted.
func (w remedied) evict() string {
	tasks := Count(len(w.remedy.GetVictims()), "running task")
	return fmt.Sprintf("evict %s (%s)", tasks, amounts(w.names, w.remedy.GetFreed()))
}

// nodes names the nodes that edits of a kind are about.
func (w remedied) nodes(kind apportionv1.EditKind) string {
	var nodes []string
	for _, edit := range w.remedy.GetEdits() {
		switch {
		case edit.GetKind() != kind:
		case edit.GetTo() != nil:
			nodes = append(nodes, w.names.node(edit.GetTo().GetIndex()))
		default:
			nodes = append(nodes, w.names.node(edit.GetNode().GetIndex()))
		}
	}
	return plural(len(nodes), "node") + " " + Few(nodes)
}

// clause says what one edit changes, and for nodes what all edits of the kind do.
func (w remedied) clause(e *apportionv1.Edit) string {
	queue := "queue " + w.names.Queue(e.GetQueue().GetIndex())
	switch e.GetKind() {
	case apportionv1.EditKind_EDIT_KIND_CAPABILITY:
		return fmt.Sprintf("raise the capability of %s %s", queue, w.from(e))
	case apportionv1.EditKind_EDIT_KIND_GUARANTEE:
		return fmt.Sprintf("raise the guarantee of %s %s", queue, w.from(e))
	case apportionv1.EditKind_EDIT_KIND_DESERVED:
		return fmt.Sprintf("raise what %s deserves %s", queue, w.from(e))
	case apportionv1.EditKind_EDIT_KIND_WEIGHT:
		return fmt.Sprintf("raise the weight of %s %s", queue, w.from(e))
	case apportionv1.EditKind_EDIT_KIND_OPEN:
		return "open " + queue
	case apportionv1.EditKind_EDIT_KIND_QUEUE:
		return "move the job to queue " + w.names.Queue(e.GetTo().GetIndex())
	case apportionv1.EditKind_EDIT_KIND_MINIMUM:
		return fmt.Sprintf("lower the minimum of %s %s", w.role(e, "the job"), w.from(e))
	case apportionv1.EditKind_EDIT_KIND_REQUEST:
		return fmt.Sprintf("lower what each waiting task of %s asks for %s", w.role(e, "the job"), w.from(e))
	case apportionv1.EditKind_EDIT_KIND_NODES_LIKE:
		return fmt.Sprintf("add %s like %s", Count(int(e.GetAmount()), "node"), w.names.node(e.GetNode().GetIndex()))
	case apportionv1.EditKind_EDIT_KIND_UNCORDON:
		return "uncordon " + w.nodes(e.GetKind())
	case apportionv1.EditKind_EDIT_KIND_END:
		return "end " + w.names.job(e.GetJob().GetIndex())
	case apportionv1.EditKind_EDIT_KIND_ALLOWED_NODE:
		return "let the waiting tasks of the job use " + w.nodes(e.GetKind()) + " too"
	default:
		return "make a change that this version does not know"
	}
}

func (w remedied) role(e *apportionv1.Edit, whole string) string {
	if e.GetRole() == "" {
		return whole
	}
	return "role " + e.GetRole()
}

// from says what a value becomes.
func (w remedied) from(e *apportionv1.Edit) string {
	amount, of := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }, ""
	if e.Dimension != nil {
		dimension := w.names.Dimension(e.GetDimension())
		amount, of = func(x float64) string { return exactly(dimension, x) }, " "+dimension
	}
	if e.Before == nil {
		return "from none to " + amount(e.GetAmount()) + of
	}
	return "from " + amount(e.GetBefore()) + " to " + amount(e.GetAmount()) + of
}

// running names the jobs that end and the amounts that they hold.
func (w remedied) running() string {
	var jobs []string
	for _, edit := range w.remedy.GetEdits() {
		jobs = append(jobs, w.names.job(edit.GetJob().GetIndex()))
	}
	return fmt.Sprintf("%s, which %s %s with %s", Few(jobs), plural2(len(jobs), "runs", "run"),
		Count(int(w.remedy.GetEndedTasks()), "task"), amounts(w.names, w.remedy.GetFreed()))
}

// losses says which queues deserve less.
func (w remedied) losses() string {
	const most = 2
	var parts []string
	for i, loss := range w.remedy.GetLosses() {
		if i == most {
			break
		}
		parts = append(parts, fmt.Sprintf("queue %s would deserve %s in place of %s",
			w.names.Queue(loss.GetQueue()), amounts(w.names, loss.GetAfter()), amounts(w.names, loss.GetBefore())))
	}
	if more := int(w.remedy.GetLosingQueues()) - len(parts); len(parts) > 0 && more > 0 {
		parts = append(parts, Count(more, "more queue")+" less than now")
	}
	return capital(and(parts))
}

// Few joins the first names of a list: `a, b and c`.
func Few(list []string) string {
	const most = 4
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return and(list)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// remedyMeans name means that are not edits of one kind.
var remedyMeans = map[apportionv1.RemedyMeans]string{
	apportionv1.RemedyMeans_REMEDY_MEANS_COMBINED: "two kinds of change together",
	apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION: "evicting tasks",
	apportionv1.RemedyMeans_REMEDY_MEANS_WAIT:     "waiting for jobs to end",
}

// remedyKinds name kinds of edits.
var remedyKinds = map[apportionv1.EditKind]string{
	apportionv1.EditKind_EDIT_KIND_MINIMUM:         "a smaller minimum",
	apportionv1.EditKind_EDIT_KIND_REQUEST:         "a smaller request",
	apportionv1.EditKind_EDIT_KIND_QUEUE:           "another queue",
	apportionv1.EditKind_EDIT_KIND_OPEN:            "opening a queue",
	apportionv1.EditKind_EDIT_KIND_CAPABILITY:      "a higher capability",
	apportionv1.EditKind_EDIT_KIND_GUARANTEE:       "a higher guarantee",
	apportionv1.EditKind_EDIT_KIND_DESERVED:        "deserving more",
	apportionv1.EditKind_EDIT_KIND_WEIGHT:          "a higher weight",
	apportionv1.EditKind_EDIT_KIND_NODES_LIKE:      "more nodes",
	apportionv1.EditKind_EDIT_KIND_UNCORDON:        "uncordoning nodes",
	apportionv1.EditKind_EDIT_KIND_END:             "ending jobs",
	apportionv1.EditKind_EDIT_KIND_ALLOWED_NODE:    "letting the tasks use other nodes",
	apportionv1.EditKind_EDIT_KIND_NOMINAL:         "more nominal quota",
	apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT: "a higher borrowing limit",
	apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT:   "higher lending limits of others",
	apportionv1.EditKind_EDIT_KIND_FLAVOR:          "creating a flavor",
	apportionv1.EditKind_EDIT_KIND_PRIORITY:        "a higher priority",
}

// noneThere says why a kind of change does not apply.
var noneThere = map[apportionv1.EditKind]string{
	apportionv1.EditKind_EDIT_KIND_MINIMUM:      "the minimum is as small as it can be",
	apportionv1.EditKind_EDIT_KIND_REQUEST:      "no waiting task asks for more than the least amount",
	apportionv1.EditKind_EDIT_KIND_QUEUE:        "there is no other queue for jobs",
	apportionv1.EditKind_EDIT_KIND_OPEN:         "the queue is open",
	apportionv1.EditKind_EDIT_KIND_CAPABILITY:   "none limits what the job asks for",
	apportionv1.EditKind_EDIT_KIND_GUARANTEE:    "it is all there is already",
	apportionv1.EditKind_EDIT_KIND_DESERVED:     "it is all there is already",
	apportionv1.EditKind_EDIT_KIND_NODES_LIKE:   "no node that the waiting tasks may use is large enough for new ones to be like it",
	apportionv1.EditKind_EDIT_KIND_UNCORDON:     "no node is cordoned",
	apportionv1.EditKind_EDIT_KIND_END:          "no other job holds resources",
	apportionv1.EditKind_EDIT_KIND_ALLOWED_NODE: "nothing keeps them from a node that is large enough and takes new tasks",
}

// cutShort says which bound cut a search.
func cutShort(u *apportionv1.UntriedRemedy) string {
	of := func(thing string) string {
		return fmt.Sprintf("%d of %s %s", u.GetTried(), Count(int(u.GetOf()), thing), Verb(int(u.GetTried()), "was", "were"))
	}
	switch u.GetBound() {
	case apportionv1.UntriedBound_UNTRIED_BOUND_SHAPES:
		return of("node shape")
	case apportionv1.UntriedBound_UNTRIED_BOUND_ADDED_NODES:
		return Count(int(u.GetTried()), "node") + " of a shape " + plural2(int(u.GetTried()), "was", "were") + ", and not more"
	case apportionv1.UntriedBound_UNTRIED_BOUND_NODES:
		return of("node")
	case apportionv1.UntriedBound_UNTRIED_BOUND_ROLES:
		return of("role")
	case apportionv1.UntriedBound_UNTRIED_BOUND_QUEUES:
		return of("queue")
	case apportionv1.UntriedBound_UNTRIED_BOUND_LEVELS:
		return fmt.Sprintf("the queue of the job and those up to %s above were, and there are more", Count(int(u.GetTried())-1, "level"))
	case apportionv1.UntriedBound_UNTRIED_BOUND_JOBS:
		return of("running job")
	case apportionv1.UntriedBound_UNTRIED_BOUND_WEIGHT:
		return fmt.Sprintf("no weight above %d was", u.GetTried())
	default:
		return "no plan was found, but that there is none is not proven"
	}
}

// CutShort reports whether changes that could have helped were not tried.
func CutShort(u *apportionv1.UntriedRemedy) bool {
	return u.GetCause() == apportionv1.UntriedCause_UNTRIED_CAUSE_BOUND ||
		u.GetCause() == apportionv1.UntriedCause_UNTRIED_CAUSE_TRIES_SPENT
}

// Untried returns a sentence about what was not tried, and why.
func Untried(u *apportionv1.UntriedRemedy) string {
	kind, why := cmp.Or(remedyMeans[u.GetMeans()], remedyKinds[u.GetKind()]), noneThere[u.GetKind()]
	if u.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_WAIT {
		why = "the end of no running job is known"
	}
	switch u.GetCause() {
	case apportionv1.UntriedCause_UNTRIED_CAUSE_NONE_THERE:
		if why != "" {
			return fmt.Sprintf("Not tried: %s; %s.", kind, why)
		}
		return fmt.Sprintf("Not tried: %s.", kind)
	case apportionv1.UntriedCause_UNTRIED_CAUSE_BOUND:
		return fmt.Sprintf("Not tried to the end: %s; %s.", kind, cutShort(u))
	case apportionv1.UntriedCause_UNTRIED_CAUSE_TRIES_SPENT:
		return fmt.Sprintf("Not tried to the end: %s; the tries of one question were spent.", kind)
	case apportionv1.UntriedCause_UNTRIED_CAUSE_NOT_NEEDED:
		return fmt.Sprintf("Not tried: %s; a single change is enough.", kind)
	default:
		return fmt.Sprintf("Not tried: %s.", kind)
	}
}
