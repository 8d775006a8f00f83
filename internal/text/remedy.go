package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
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
		case nothingOffered(a.GetReasons()):
			return "No change was tried, and " + job + " is not judged: " + Reasons(names, a.GetReasons()) + "."
		case a.GetCheck() == apportionv1.CheckKind_CHECK_KIND_CONSTRAINTS:
			return job + " passes every check that is made here, so that no change was tried; " +
				alsoDepends(a.GetUnjudgedConstraints()) + "."
		}
		head = "No change was tried: " + job + " has no task that may be placed"
		if reasons := Reasons(names, a.GetReasons()); reasons != "" {
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
	switch r.GetKind() {
	case apportionv1.RemedyKind_REMEDY_KIND_EVICTION:
		clauses = append(clauses, w.evict()+", as plan says")
	case apportionv1.RemedyKind_REMEDY_KIND_JOBS_END:
		clauses = append(clauses, "end "+w.running())
	case apportionv1.RemedyKind_REMEDY_KIND_WAIT:
		clauses = append(clauses, "wait until "+moment(r.GetTime())+" for the end of "+w.running())
	default:
		for _, edit := range r.GetEdits() {
			if clause := w.clause(edit); !slices.Contains(clauses, clause) {
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

// nodes names the nodes of which a field is edited.
func (w remedied) nodes(field apportionv1.RemedyField) string {
	var nodes []string
	for _, edit := range w.remedy.GetEdits() {
		if edit.GetField() == field {
			nodes = append(nodes, w.names.node(edit.GetNode()))
		}
	}
	return plural(len(nodes), "node") + " " + Few(nodes)
}

// clause says what one edit changes, and for nodes what all edits of the field do.
func (w remedied) clause(e *apportionv1.RemedyEdit) string {
	queue := "queue " + w.names.Queue(e.GetQueue())
	switch e.GetField() {
	case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_CAPABILITY:
		return fmt.Sprintf("raise the capability of %s %s", queue, w.from(e))
	case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_GUARANTEE:
		return fmt.Sprintf("raise the guarantee of %s %s", queue, w.from(e))
	case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_DESERVED:
		return fmt.Sprintf("raise what %s deserves %s", queue, w.from(e))
	case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_WEIGHT:
		return fmt.Sprintf("raise the weight of %s %s", queue, w.from(e))
	case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
		return "open " + queue
	case apportionv1.RemedyField_REMEDY_FIELD_JOB_QUEUE:
		return "move the job to " + queue
	case apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM:
		return fmt.Sprintf("lower the minimum of %s %s", w.role(e, "the job"), w.from(e))
	case apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST:
		return fmt.Sprintf("lower what each waiting task of %s asks for %s", w.role(e, "the job"), w.from(e))
	case apportionv1.RemedyField_REMEDY_FIELD_NODES_LIKE:
		return fmt.Sprintf("add %s like %s", Count(int(e.GetAfter()), "node"), w.names.node(e.GetNode()))
	case apportionv1.RemedyField_REMEDY_FIELD_NODE_UNCORDONED:
		return "uncordon " + w.nodes(e.GetField())
	case apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED:
		return "end " + w.names.job(e.GetJob())
	case apportionv1.RemedyField_REMEDY_FIELD_TASK_NODE:
		return "let the waiting tasks of the job use " + w.nodes(e.GetField()) + " too"
	default:
		return "make a change that this version does not know"
	}
}

func (w remedied) role(e *apportionv1.RemedyEdit, whole string) string {
	if e.GetRole() == "" {
		return whole
	}
	return "role " + e.GetRole()
}

// from says what a value becomes.
func (w remedied) from(e *apportionv1.RemedyEdit) string {
	amount, of := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }, ""
	if e.Dimension != nil {
		dimension := w.names.Dimension(e.GetDimension())
		amount, of = func(x float64) string { return exactly(dimension, x) }, " "+dimension
	}
	if e.Before == nil {
		return "from none to " + amount(e.GetAfter()) + of
	}
	return "from " + amount(e.GetBefore()) + " to " + amount(e.GetAfter()) + of
}

// running names the jobs that end and the amounts that they hold.
func (w remedied) running() string {
	var jobs []string
	for _, edit := range w.remedy.GetEdits() {
		jobs = append(jobs, w.names.job(edit.GetJob()))
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

// remedyKinds name kinds of change.
var remedyKinds = map[apportionv1.RemedyKind]string{
	apportionv1.RemedyKind_REMEDY_KIND_MINIMUM:         "a smaller minimum",
	apportionv1.RemedyKind_REMEDY_KIND_REQUEST:         "a smaller request",
	apportionv1.RemedyKind_REMEDY_KIND_QUEUE:           "another queue",
	apportionv1.RemedyKind_REMEDY_KIND_OPEN:            "opening a queue",
	apportionv1.RemedyKind_REMEDY_KIND_CAPABILITY:      "a higher capability",
	apportionv1.RemedyKind_REMEDY_KIND_GUARANTEE:       "a higher guarantee",
	apportionv1.RemedyKind_REMEDY_KIND_DESERVED:        "deserving more",
	apportionv1.RemedyKind_REMEDY_KIND_WEIGHT:          "a higher weight",
	apportionv1.RemedyKind_REMEDY_KIND_NODES:           "more nodes",
	apportionv1.RemedyKind_REMEDY_KIND_UNCORDON:        "uncordoning nodes",
	apportionv1.RemedyKind_REMEDY_KIND_COMBINED:        "two kinds of change together",
	apportionv1.RemedyKind_REMEDY_KIND_JOBS_END:        "ending jobs",
	apportionv1.RemedyKind_REMEDY_KIND_EVICTION:        "evicting tasks",
	apportionv1.RemedyKind_REMEDY_KIND_WAIT:            "waiting for jobs to end",
	apportionv1.RemedyKind_REMEDY_KIND_OTHER_NODES:     "letting the tasks use other nodes",
	apportionv1.RemedyKind_REMEDY_KIND_NOMINAL:         "more nominal quota",
	apportionv1.RemedyKind_REMEDY_KIND_BORROWING_LIMIT: "a higher borrowing limit",
	apportionv1.RemedyKind_REMEDY_KIND_LENDING_LIMIT:   "higher lending limits of others",
	apportionv1.RemedyKind_REMEDY_KIND_FLAVOR:          "creating a flavor",
	apportionv1.RemedyKind_REMEDY_KIND_PRIORITY:        "a higher priority",
}

// noneThere says why a kind of change does not apply.
var noneThere = map[apportionv1.RemedyKind]string{
	apportionv1.RemedyKind_REMEDY_KIND_MINIMUM:     "the minimum is as small as it can be",
	apportionv1.RemedyKind_REMEDY_KIND_REQUEST:     "no waiting task asks for more than the least amount",
	apportionv1.RemedyKind_REMEDY_KIND_QUEUE:       "there is no other queue for jobs",
	apportionv1.RemedyKind_REMEDY_KIND_OPEN:        "the queue is open",
	apportionv1.RemedyKind_REMEDY_KIND_CAPABILITY:  "none limits what the job asks for",
	apportionv1.RemedyKind_REMEDY_KIND_GUARANTEE:   "it is all there is already",
	apportionv1.RemedyKind_REMEDY_KIND_DESERVED:    "it is all there is already",
	apportionv1.RemedyKind_REMEDY_KIND_NODES:       "no node that the waiting tasks may use is large enough for new ones to be like it",
	apportionv1.RemedyKind_REMEDY_KIND_UNCORDON:    "no node is cordoned",
	apportionv1.RemedyKind_REMEDY_KIND_JOBS_END:    "no other job holds resources",
	apportionv1.RemedyKind_REMEDY_KIND_WAIT:        "the end of no running job is known",
	apportionv1.RemedyKind_REMEDY_KIND_OTHER_NODES: "nothing keeps them from a node that is large enough and takes new tasks",
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
	kind := remedyKinds[u.GetKind()]
	switch u.GetCause() {
	case apportionv1.UntriedCause_UNTRIED_CAUSE_NONE_THERE:
		if why := noneThere[u.GetKind()]; why != "" {
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

// WhatIf returns the arguments of `apportion whatif` that make the change of a remedy of a job.
func WhatIf(names Names, job uint32, r *apportionv1.Remedy) []string {
	if r.GetKueue() != nil {
		return kueueWhatIf(names, "job/"+quoted(names.job(job)), r)
	}
	var list []string
	set := func(target, value string) { list = append(list, "--set", target+"="+value) }
	of := "job/" + quoted(names.job(job))
	for _, e := range r.GetEdits() {
		queue := "queue/" + quoted(names.Queue(e.GetQueue()))
		dimension := names.Dimension(e.GetDimension())
		resource, role := quoted(dimension), quoted(e.GetRole())
		value := strconv.FormatFloat(e.GetAfter(), 'f', -1, 64)
		amount := quantity.Format(dimension, e.GetAfter())
		switch e.GetField() { //nolint:exhaustive // The others are Kueue's.
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_CAPABILITY:
			set(queue+".capability."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_GUARANTEE:
			set(queue+".guarantee."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_DESERVED:
			set(queue+".deserved."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_WEIGHT:
			set(queue+".weight", value)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
			set(queue+".state", "open")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_QUEUE:
			set(of+".queue", quoted(names.Queue(e.GetQueue())))
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM:
			if e.Role != nil {
				set(of+".role."+role+".minAvailable", value)
			}
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST:
			set(of+".role."+role+".request."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_NODES_LIKE:
			list = append(list, "--add-nodes", value, "--like", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_NODE_UNCORDONED:
			list = append(list, "--uncordon", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED:
			list = append(list, "--finish", names.job(e.GetJob()))
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_NODE:
			set(of+".otherNode", quoted(names.node(e.GetNode())))
		case apportionv1.RemedyField_REMEDY_FIELD_UNSPECIFIED:
		}
	}
	if r.MinAvailable != nil {
		set(of+".minAvailable", strconv.FormatUint(uint64(r.GetMinAvailable()), 10))
	}
	for i, dimension := range r.GetMinResources().GetDimensions() {
		name := names.Dimension(dimension)
		set(of+".minResources."+quoted(name), quantity.Format(name, r.GetMinResources().GetAmounts()[i]))
	}
	return list
}

// kueueWhatIf returns the arguments for a remedy of the policy kueue; none for one with a change that `apportion whatif` cannot make.
func kueueWhatIf(names Names, job string, r *apportionv1.Remedy) []string {
	var list []string
	for _, e := range r.GetEdits() {
		queue, quota := "clusterqueue/"+quoted(names.Queue(e.GetQueue())), quoted(e.GetResource())+"@"+quoted(e.GetFlavor())
		amount := KueueSetting(e.GetResource(), int64(e.GetAfter()))
		set := ""
		switch e.GetField() { //nolint:exhaustive // The others cannot be made.
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
			set = queue + ".stopPolicy=None"
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_NOMINAL:
			set = queue + ".nominal." + quota + "=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_BORROWING_LIMIT:
			set = queue + ".borrowingLimit." + quota + "=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_LENDING_LIMIT:
			set = queue + ".lendingLimit." + quota + "=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_PRIORITY:
			set = job + ".priority=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED:
			list = append(list, "--finish", names.job(e.GetJob()))
			continue
		}
		if set == "" || e.GetCohort() != "" {
			return nil
		}
		list = append(list, "--set", set)
	}
	return list
}

// settings are the words of `apportion whatif --set` behind a name.
var settings = []string{
	"allocatable", "borrowingLimit", "budget", "budgetKind", "capability", "cohort", "deserved", "guarantee", "lendingLimit",
	"maintenance", "minAvailable", "minResources", "nominal", "otherNode", "priority", "queue", "reclaimable", "request", "role", "spent",
	"state", "stopPolicy", "usage", "weight",
}

// quoted returns a name as `--set` reads it: in quotation marks if it could be taken for another name with a setting behind it.
func quoted(name string) string {
	isSetting := func(word string) bool { return slices.Contains(settings, word) }
	if strings.HasPrefix(name, `"`) || strings.Contains(name, "=") || slices.ContainsFunc(strings.Split(name, "."), isSetting) {
		return strconv.Quote(name)
	}
	return name
}
