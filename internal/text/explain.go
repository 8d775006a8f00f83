package text

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Explain sets the texts of an explanation: each check of the job as a sentence without its period, the forecast if there is one, and all
// in a few sentences. They are read together, so that amounts of a dimension have one unit in all of them.
func Explain(names Names, e *apportionv1.Explanation) {
	texts := make([]*string, 0, len(e.GetFindings())+1)
	for _, f := range e.GetFindings() {
		c := checked{names: names, job: e, finding: f}
		f.Text = c.found()
		texts = append(texts, &f.Text)
	}
	if f := e.GetForecast(); f != nil {
		f.Text = Forecast(names, e)
	}
	e.Text = explanation(names, e)
	sentences(append(texts, &e.Text)...)
}

// unknown names what a check asks that a plugin may decide otherwise.
var unknown = map[apportionv1.CheckKind]string{
	apportionv1.CheckKind_CHECK_KIND_ADMISSION: "whether the job may enter its queue",
	apportionv1.CheckKind_CHECK_KIND_QUEUE:     "whether its queue is served",
	apportionv1.CheckKind_CHECK_KIND_NODES:     "whether nodes take it",
}

// found says what the check found.
func (c *checked) found() string {
	if causes := c.finding.GetCauses(); len(causes) > 0 && causes[0].GetCode() == apportionv1.CauseCode_CAUSE_CODE_PLUGIN_NOT_MODELLED {
		return fmt.Sprintf("%s is not known: the plugin %s votes on it and is not modelled",
			unknown[c.finding.GetCheck()], causes[0].GetPlugin())
	}
	switch c.finding.GetCheck() {
	case apportionv1.CheckKind_CHECK_KIND_ADMISSION:
		return c.admission()
	case apportionv1.CheckKind_CHECK_KIND_TASKS:
		return c.tasks()
	case apportionv1.CheckKind_CHECK_KIND_QUEUE:
		return c.queue()
	case apportionv1.CheckKind_CHECK_KIND_SHARE:
		return c.share()
	case apportionv1.CheckKind_CHECK_KIND_NODES:
		return c.nodes()
	case apportionv1.CheckKind_CHECK_KIND_ORDER:
		return c.order()
	case apportionv1.CheckKind_CHECK_KIND_CONSTRAINTS:
		return c.constraints()
	case apportionv1.CheckKind_CHECK_KIND_EVICTION:
		return c.eviction()
	case apportionv1.CheckKind_CHECK_KIND_FEASIBILITY:
		return c.never()
	default:
		return c.reasons()
	}
}

// alsoDepends lists constraints on placement that are not evaluated.
func alsoDepends(unjudged []apportionv1.PlacementConstraint) string {
	return "placement also depends on " + Constraints(unjudged) + ", which are not judged here"
}

// constraints lists what is not evaluated, and what its own scheduler says about it: the last report that is a sentence, which is that of a
// task if there is one.
func (c *checked) constraints() string {
	text := alsoDepends(c.job.GetUnjudgedConstraints())
	for _, condition := range slices.Backward(c.job.GetConditions()) {
		if strings.Contains(condition, " ") {
			return text + fmt.Sprintf("; its scheduler reports %q", strings.TrimSuffix(condition, "."))
		}
	}
	return text
}

// Found is what holds a job back, in one line: the check that blocks it or what is not known, and the constraints that are not evaluated.
func Found(e *apportionv1.Explanation) string {
	var parts []string
	for i, f := range e.GetFindings() {
		blocks := e.Blocking != nil && i == int(e.GetBlocking())
		constraints := f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_CONSTRAINTS
		if blocks || constraints || e.Blocking == nil && f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_NOT_KNOWN {
			parts = append(parts, f.GetText())
		}
	}
	return strings.Join(parts, "; ")
}

// nothingOffered reports whether nothing is judged, because no node states what it offers.
func nothingOffered(reasons []*apportionv1.Cause) bool {
	return len(reasons) > 0 && reasons[0].GetCode() == apportionv1.CauseCode_CAUSE_CODE_NOTHING_OFFERED
}

// checked is a check that is put into words.
type checked struct {
	names   Names
	job     *apportionv1.Explanation
	finding *apportionv1.Finding
}

func (c *checked) is(outcome apportionv1.CheckOutcome) bool { return c.finding.GetOutcome() == outcome }

func (c *checked) failed() bool { return c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED) }

func (c *checked) reasons() string { return reasonsOf(c.names, c.finding.GetCauses()) }

func (c *checked) queueName() string { return c.names.Queue(c.job.GetQueue()) }

func (c *checked) admission() string {
	switch {
	case c.failed():
		return c.reasons()
	case c.job.GetPhase() != apportionv1.JobPhase_JOB_PHASE_PENDING:
		return "the job was admitted (phase " + Enum(c.job.GetPhase(), "JOB_PHASE_") + ")"
	case len(c.finding.GetCauses()) > 0:
		return c.reasons()
	}
	return "the job is pending and may enter queue " + c.queueName() + " now"
}

func (c *checked) tasks() string {
	gated := Count(int(c.job.GetGatedTasks()), "task")
	counts := fmt.Sprintf("%d ready, %d waiting, minimum %d", c.job.GetReadyTasks(), c.job.GetWaitingTasks(), c.job.GetMinAvailable())
	switch {
	case c.failed():
		return c.reasons()
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_NOTED) && c.job.GetGatedTasks() > 0:
		return counts + "; a scheduling gate holds " + gated + " more back"
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_NOTED):
		return "the job has no tasks yet"
	case c.job.GetWaitingTasks() == 0:
		return counts + ": nothing waits to be placed"
	}
	return counts
}

func (c *checked) queue() string {
	switch {
	case c.failed():
		return c.reasons()
	case c.job.QueueRank == nil:
		return "queue " + c.queueName() + " is served"
	}
	return "queue " + c.queueName() + " is " + Rank(c.job.GetQueueRank())
}

// gated reports whether the gang needs tasks that a scheduling gate holds back, so that those that may be placed are not all that it needs.
func (c *checked) gated() bool {
	return c.job.GetGatedTasks() > 0 && slices.ContainsFunc(c.job.GetFindings(), func(f *apportionv1.Finding) bool {
		return f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_TASKS && f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED
	})
}

// needed says what the gang needs, or what of it no gate holds back.
func (c *checked) needed() string {
	amount := amounts(c.names, c.finding.GetAmount())
	if c.gated() {
		return fmt.Sprintf("%s that no scheduling gate holds back (%s)", Count(int(c.job.GetNeededTasks()), "waiting task"), amount)
	}
	if c.job.GetNeededTasks() == 1 {
		return "one more task (" + amount + ")"
	}
	return fmt.Sprintf("the %s that the gang needs (%s)", Count(int(c.job.GetNeededTasks()), "task"), amount)
}

func (c *checked) share() string {
	switch {
	case c.failed() && c.finding.Task != nil:
		return c.reasons()
	case c.failed():
		return "not for " + c.needed() + ": " + c.reasons()
	case slices.ContainsFunc(c.finding.GetCauses(), isBorrowed):
		return "for " + c.needed() + ": " + c.reasons()
	}
	return "the queue's share has room for " + c.needed()
}

func isBorrowed(r *apportionv1.Cause) bool {
	return r.GetCode() == apportionv1.CauseCode_CAUSE_CODE_BORROWED
}

func (c *checked) nodes() string {
	switch {
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_PASSED):
		return "the nodes have room for " + c.needed()
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_NOTED):
		return "no room now for " + c.needed() + ", but there will be: " + c.released()
	case c.finding.Task != nil:
		return c.lacks()
	case len(c.finding.GetCauses()) == 0:
		return "the tasks are counted, not listed, so that their placement is not known"
	case c.gated():
		return c.ungated()
	}
	return c.reasons()
}

// ungated says that the tasks that no gate holds back have no room.
func (c *checked) ungated() string {
	reason := c.finding.GetCauses()[0]
	have := facts{names: c.names, reason: reason}.have()
	switch reason.GetCode() { //nolint:exhaustive // The others do not count tasks.
	case apportionv1.CauseCode_CAUSE_CODE_NO_JOINT_PLACEMENT:
		return "the nodes have no room at the same time for " + c.needed() + "; best fit places " + have
	case apportionv1.CauseCode_CAUSE_CODE_JOINT_PLACEMENT_NOT_FOUND:
		return "best fit places " + have + " of " + c.needed() + "; whether all have room is not known"
	}
	return c.reasons()
}

// released says what is being released, and where.
func (c *checked) released() string {
	var amounts, pods []string
	where, one := "", true
	for _, reason := range c.finding.GetCauses() {
		f := facts{names: c.names, reason: reason}
		if !f.measured() {
			pods = append(pods, f.releasedPod())
			continue
		}
		amounts, where = append(amounts, f.with(reason.GetHave())), f.nodes()
		one = one && len(amounts) == 1 && f.one(reason.GetHave())
	}
	if len(amounts) > 0 {
		pods = append([]string{and(amounts) + areReleased(one) + where}, pods...)
	}
	return and(pods)
}

// lacks counts the nodes by what they lack, and says how much is asked for and left.
func (c *checked) lacks() string {
	if len(c.finding.GetNodes()) == 0 {
		return "no node has room for " + c.names.task(c.finding.GetTask()) + ": the cluster has no nodes"
	}
	clauses := []string{ofNodes(c.names, c.finding.GetTask(), c.finding.GetNodes())}
	if Barred(c.finding) {
		// What the other nodes have left does not matter.
		return clauses[0]
	}
	some := slices.ContainsFunc(c.finding.GetNodes(), func(c *apportionv1.Cause) bool { return !short(c) })
	for _, reason := range c.finding.GetCauses() {
		f := facts{names: c.names, reason: reason, some: some}
		switch reason.GetCode() { //nolint:exhaustive // The others have no amounts.
		case apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE:
			nodes := int(reason.GetCount())
			clauses = append(clauses, fmt.Sprintf("it asks for %s, %s left on %s", f.with(reason.GetNeed()), atMost(f), oneOf(nodes)))
		case apportionv1.CauseCode_CAUSE_CODE_LARGER_THAN_ANY_NODE:
			clauses = append(clauses, f.largerThan(largest(some)))
		case apportionv1.CauseCode_CAUSE_CODE_FRAGMENTED,
			apportionv1.CauseCode_CAUSE_CODE_ABOVE_NODE_GROUP_LIMIT:
			clauses = append(clauses, f.clause())
		}
	}
	return strings.Join(clauses, "; ")
}

// largest names the node that offers most. Nodes that do not admit the task, such as those with taints, are not compared.
func largest(some bool) string {
	if some {
		return "the largest node that it may use"
	}
	return "the largest node"
}

// never says why the job could not run even if nothing else ran.
func (c *checked) never() string {
	if c.finding.Task != nil {
		return "even if all nodes were empty and took tasks, " + ofNodes(c.names, c.finding.GetTask(), c.finding.GetNodes())
	}
	if len(c.finding.GetCauses()) == 0 {
		return "it could not run even if nothing else ran"
	}
	reason := c.finding.GetCauses()[0]
	f := facts{names: c.names, reason: reason}
	switch reason.GetCode() { //nolint:exhaustive // The others say it themselves.
	case apportionv1.CauseCode_CAUSE_CODE_NEVER_FITS:
		return fmt.Sprintf("even if all nodes were empty and took tasks, they would hold %.0f of the %.0f tasks that the gang needs%s",
			reason.GetHave(), reason.GetLimit(), c.apart())
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_TOTAL:
		return fmt.Sprintf("it asks for at least %s, and the cluster has %s", f.with(reason.GetNeed()), f.amount(reason.GetLimit()))
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT, apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY:
		return fmt.Sprintf("it asks for %s, and %s may never hold more than %s",
			f.with(reason.GetNeed()), f.queue(), f.amount(reason.GetLimit()))
	}
	return c.reasons()
}

// apart says by which rule tasks keep each other away, if so fewer of them ever run.
func (c *checked) apart() string {
	if len(c.finding.GetCauses()) < 2 {
		return ""
	}
	switch rule := c.finding.GetCauses()[1]; rule.GetCode() { //nolint:exhaustive // No other rule keeps tasks of a job apart.
	case apportionv1.CauseCode_CAUSE_CODE_HOST_PORT_TAKEN:
		return ", because they ask for the same port of a node"
	case apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY:
		return ", because no two of them may have the same " + rule.GetDetail()
	}
	return ""
}

// atMost says how much is left where most is left.
func atMost(f facts) string {
	if left := f.reason.GetLimit() - f.reason.GetHave(); left > 0 {
		return "at most " + f.amount(left) + " is"
	}
	return "none is"
}

func oneOf(nodes int) string {
	if nodes == 1 {
		return "the node"
	}
	return "any of " + Count(nodes, "node")
}

func (c *checked) order() string {
	first := c.firstJobs()
	switch {
	case c.failed() && c.finding.GetFirstJobCount() == 0:
		return c.reasons()
	case c.failed():
		return first + "; after that, " + c.reasons()
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_NOTED):
		return "too many jobs of the queue come first to say what they leave"
	case c.finding.GetFirstJobCount() > 0:
		return first + ", and leave room"
	}
	return "no job that could take its room comes first"
}

// firstJobs says which jobs come first.
func (c *checked) firstJobs() string {
	const few = 3
	var list []string
	for _, job := range c.finding.GetFirstJobs()[:min(few, len(c.finding.GetFirstJobs()))] {
		list = append(list, c.names.job(job))
	}
	if more := int(c.finding.GetFirstJobCount()) - len(list); more > 0 {
		list = append(list, Count(more, "more job"))
	}
	if len(list) == 1 && c.finding.GetFirstJobCount() == 1 {
		return list[0] + " comes first"
	}
	return and(list) + " come first"
}
