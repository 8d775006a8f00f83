package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/contract/quantity"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// Finding is a check of a job as a sentence without its period.
func Finding(names Names, e *apportionv1.Explanation, f *apportionv1.Finding) string {
	c := checked{names: names, job: e, finding: f}
	return visible.Text(c.found())
}

// found says what the check found.
func (c *checked) found() string {
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
		return alsoDepends(c.job.GetUnjudged())
	case apportionv1.CheckKind_CHECK_KIND_EVICTION:
		return c.eviction()
	default:
		return c.reasons()
	}
}

// alsoDepends lists constraints on placement that are not evaluated.
func alsoDepends(unjudged []apportionv1.PlacementConstraint) string {
	return "placement also depends on " + Constraints(unjudged) + ", which are not judged here"
}

// nothingOffered reports whether nothing is judged, because no node states what it offers.
func nothingOffered(reasons []*apportionv1.Reason) bool {
	return len(reasons) > 0 && reasons[0].GetCode() == apportionv1.ReasonCode_REASON_CODE_NOTHING_OFFERED
}

// checked is a check that is put into words.
type checked struct {
	names   Names
	job     *apportionv1.Explanation
	finding *apportionv1.Finding
}

func (c *checked) is(outcome apportionv1.CheckOutcome) bool { return c.finding.GetOutcome() == outcome }

func (c *checked) failed() bool { return c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED) }

func (c *checked) reasons() string { return Reasons(c.names, c.finding.GetReasons()) }

func (c *checked) queueName() string { return c.names.Queue(c.job.GetQueue()) }

func (c *checked) admission() string {
	switch {
	case c.failed():
		return c.reasons()
	case c.job.GetPhase() != apportionv1.JobPhase_JOB_PHASE_PENDING:
		return "the job was admitted (phase " + Enum(c.job.GetPhase(), "JOB_PHASE_") + ")"
	case len(c.finding.GetReasons()) > 0:
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
	return fmt.Sprintf("queue %s is number %d in queue order", c.queueName(), c.job.GetQueueRank()+1)
}

// gated reports whether the gang needs tasks that a scheduling gate holds back, so that those that may be placed are not all that it needs.
func (c *checked) gated() bool {
	return c.job.GetGatedTasks() > 0 && slices.ContainsFunc(c.job.GetFindings(), func(f *apportionv1.Finding) bool {
		return f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_TASKS && f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED
	})
}

// needed says what the gang needs, or what of it no gate holds back.
func (c *checked) needed() string {
	amount := Amounts(c.names, c.finding.GetAmount())
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
	case slices.ContainsFunc(c.finding.GetReasons(), isBorrowed):
		return "for " + c.needed() + ": " + c.reasons()
	}
	return "the queue's share has room for " + c.needed()
}

func isBorrowed(r *apportionv1.Reason) bool {
	return r.GetCode() == apportionv1.ReasonCode_REASON_CODE_BORROWED
}

func (c *checked) nodes() string {
	switch {
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_PASSED):
		return "the nodes have room for " + c.needed()
	case c.is(apportionv1.CheckOutcome_CHECK_OUTCOME_NOTED):
		return "no room now for " + c.needed() + ", but there will be: " + c.released()
	case c.finding.Task != nil:
		return "no node has room for " + c.names.task(c.finding.GetTask()) + ": " + c.lacks()
	case len(c.finding.GetReasons()) == 0:
		return "the tasks are counted, not listed, so that their placement is not known"
	case c.gated():
		return c.ungated()
	}
	return c.reasons()
}

// ungated says that the tasks that no gate holds back have no room.
func (c *checked) ungated() string {
	reason := c.finding.GetReasons()[0]
	have := facts{names: c.names, reason: reason}.have()
	switch reason.GetCode() { //nolint:exhaustive // The others do not count tasks.
	case apportionv1.ReasonCode_REASON_CODE_NO_JOINT_PLACEMENT:
		return "the nodes have no room at the same time for " + c.needed() + "; best fit places " + have
	case apportionv1.ReasonCode_REASON_CODE_JOINT_PLACEMENT_NOT_FOUND:
		return "best fit places " + have + " of " + c.needed() + "; whether all have room is not known"
	}
	return c.reasons()
}

// released says what is being released, and where.
func (c *checked) released() string {
	var amounts, numbers []string
	where := ""
	for _, reason := range c.finding.GetReasons() {
		f := facts{names: c.names, reason: reason}
		amounts, numbers, where = append(amounts, f.with(reason.GetHave())), append(numbers, f.have()), f.nodes()
	}
	return and(amounts) + areReleased(numbers...) + where
}

// lacks says what every node lacks.
func (c *checked) lacks() string {
	if len(c.finding.GetReasons()) == 0 {
		return "the cluster has no nodes"
	}
	clauses := make([]string, 0, len(c.finding.GetReasons()))
	for i, reason := range c.finding.GetReasons() {
		nodes := 0
		if i < len(c.finding.GetCounts()) {
			nodes = int(c.finding.GetCounts()[i])
		}
		clauses = append(clauses, onNodes(c.names, reason, nodes))
	}
	return strings.Join(clauses, "; ")
}

// onNodes is a reason that holds for a number of nodes.
func onNodes(names Names, reason *apportionv1.Reason, nodes int) string {
	f := facts{names: names, reason: reason}
	count := Count(nodes, "node")
	switch reason.GetCode() { //nolint:exhaustive // The others are said by Reason.
	case apportionv1.ReasonCode_REASON_CODE_INSUFFICIENT_RESOURCE:
		return fmt.Sprintf("it asks for %s, %s left on %s", f.with(reason.GetNeed()), atMost(f), oneOf(nodes))
	case apportionv1.ReasonCode_REASON_CODE_LARGER_THAN_ANY_NODE, apportionv1.ReasonCode_REASON_CODE_FRAGMENTED,
		apportionv1.ReasonCode_REASON_CODE_NO_NODE_HAS_ALL:
		return Reason(names, reason)
	case apportionv1.ReasonCode_REASON_CODE_NODE_UNSCHEDULABLE:
		verb := "take"
		if nodes == 1 {
			verb = "takes"
		}
		return joined(fmt.Sprintf("%s %s no new tasks", count, verb), reason.GetDetail())
	case apportionv1.ReasonCode_REASON_CODE_NODE_NOT_IN_SET:
		verb := "are"
		if nodes == 1 {
			verb = "is"
		}
		return joined(fmt.Sprintf("%s %s excluded", count, verb), reason.GetDetail())
	}
	return "on " + count + ", " + Reason(names, reason)
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

func (c *checked) eviction() string {
	evictable := c.finding.GetEvictable()
	switch {
	case evictable.GetPlanned():
		return c.planned()
	case c.finding.GetMiss() != nil:
		return c.missed()
	case evictable.GetCount() == 0:
		return c.spared()
	}
	freed := c.evictable() + " with " + Amounts(c.names, c.finding.GetAmount()) + " could be evicted for " +
		c.names.task(c.finding.GetTask())
	if !evictable.GetEnough() {
		return freed + "; only a plan says whether some of them make room for what the job needs"
	}
	return freed + ", which would make room for what the job needs"
}

// evictable counts the tasks that are to be evicted, or could be, and names their queues.
func (c *checked) evictable() string {
	evictable := c.finding.GetEvictable()
	running := Count(int(evictable.GetCount()), "running task")
	if evictable.GetOwnQueue() {
		return running + " of its own queue"
	}
	var queues []string
	for _, queue := range evictable.GetQueues() {
		queues = append(queues, c.names.Queue(queue))
	}
	if len(queues) == 1 {
		return running + " of queue " + queues[0]
	}
	return running + " of queues " + and(queues)
}

// planned says which evictions make room, and by which means.
func (c *checked) planned() string {
	evictable := c.finding.GetEvictable()
	if evictable.GetCount() == 0 {
		return "no eviction is needed: there is room for what the job needs"
	}
	means := "reclaim"
	switch own := slices.Contains(evictable.GetQueues(), c.job.GetQueue()); {
	case evictable.GetOwnQueue():
		means = "preemption"
	case own:
		means = "reclaim and preemption"
	}
	fewer := "; no fewer would do"
	switch {
	case !evictable.GetLeast():
		fewer = "; fewer are not ruled out"
	case evictable.GetCount() == 1:
		fewer = ""
	}
	sentence := c.evictable() + " with " + Amounts(c.names, c.finding.GetAmount()) + " could be evicted by " + means +
		", which would make room for what the job needs" + fewer
	if n := int(evictable.GetReturning()); n > 0 {
		sentence += "; " + ofThem(n, int(evictable.GetCount())) + " could get the room back at once"
	}
	return sentence
}

// missed returns the reason why no evictions were found that make room.
func (c *checked) missed() string {
	miss := c.finding.GetMiss()
	switch miss.GetCheck() { //nolint:exhaustive // The others are about room.
	case apportionv1.CheckKind_CHECK_KIND_ADMISSION:
		return "evictions do not help as long as the job may not enter its queue"
	case apportionv1.CheckKind_CHECK_KIND_TASKS:
		return "evictions do not help as long as its tasks cannot be scheduled"
	case apportionv1.CheckKind_CHECK_KIND_QUEUE:
		return "evictions do not help as long as its queue is not served"
	case apportionv1.CheckKind_CHECK_KIND_SHARE:
		return "no evictions let the queue use that much: " + Reasons(c.names, miss.GetReasons())
	}
	head := "no evictions make room"
	switch evictable := c.finding.GetEvictable(); {
	case evictable.GetCount() > 0:
		head = c.evictable() + " could be evicted, but no choice of them makes room"
	case len(c.finding.GetReasons()) > 0:
		return c.spared()
	}
	switch {
	case miss.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES:
		return head + ": " + lacking(c.names, miss)
	case len(miss.GetReasons()) > 0:
		return head + ": " + Reasons(c.names, miss.GetReasons())
	}
	return head + ": the policy does not let all tasks go that are in the way"
}

// spared returns the reason why no task may be evicted.
func (c *checked) spared() string {
	if len(c.finding.GetReasons()) == 0 {
		return "no running task may be evicted for the job"
	}
	var clauses []string
	for i, reason := range c.finding.GetReasons() {
		count := 0
		if i < len(c.finding.GetCounts()) {
			count = int(c.finding.GetCounts()[i])
		}
		if count == 0 {
			clauses = append(clauses, "the queue may take nothing from others, because "+Reason(c.names, reason))
			continue
		}
		clauses = append(clauses, Count(count, "task")+" "+protection(reason, count))
	}
	return "no running task may be evicted for the job: " + strings.Join(clauses, "; ")
}

// protection says what keeps tasks from being evicted.
func protection(reason *apportionv1.Reason, count int) string {
	one := count == 1
	choose := func(singular, plural string) string {
		if one {
			return singular
		}
		return plural
	}
	by := ""
	if plugin := reason.GetPlugin(); plugin != "" {
		by = " (" + plugin + ")"
	}
	switch reason.GetCode() { //nolint:exhaustive // The others are said by Reason.
	case apportionv1.ReasonCode_REASON_CODE_GANG_MINIMUM:
		return choose("is", "are") + " needed for the minimum of " + choose("its job", "their jobs") + by
	case apportionv1.ReasonCode_REASON_CODE_PRIORITY_NOT_LOWER:
		return choose("has", "have") + " no lower priority" + by
	case apportionv1.ReasonCode_REASON_CODE_SYSTEM_CRITICAL:
		return choose("is", "are") + " system-critical" + by
	case apportionv1.ReasonCode_REASON_CODE_SYSTEM_NAMESPACE:
		return choose("is", "are") + " in the namespace kube-system" + by
	case apportionv1.ReasonCode_REASON_CODE_COOLDOWN:
		return choose("is", "are") + " protected for a time after being scheduled" + by
	case apportionv1.ReasonCode_REASON_CODE_WITHIN_DESERVED:
		return choose("is of a queue", "are of queues") + " within what " + choose("it deserves", "they deserve") + by
	case apportionv1.ReasonCode_REASON_CODE_GUARANTEE_KEPT:
		return choose("is", "are") + " needed for the guarantee of " + choose("its queue", "their queues") + by
	case apportionv1.ReasonCode_REASON_CODE_SHARE_NOT_HIGHER:
		return choose("is of a job", "are of jobs") + " with no larger share" + by
	case apportionv1.ReasonCode_REASON_CODE_NOT_PREEMPTABLE:
		return choose("is", "are") + " not preemptable"
	case apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_RECLAIMABLE:
		return choose("is of a queue that is", "are of queues that are") + " not reclaimable"
	case apportionv1.ReasonCode_REASON_CODE_NO_SHARED_DIMENSION:
		return choose("uses", "use") + " nothing that the job asks for" + by
	case apportionv1.ReasonCode_REASON_CODE_WITHIN_ENTITLEMENT:
		return choose("is of a queue that holds", "are of queues that hold") + " no more than the line that " +
			choose("it keeps", "they keep") + " against the job" + by
	case apportionv1.ReasonCode_REASON_CODE_NOT_CALM:
		return "would cost " + choose("its queue", "their queues") + " more of the cluster than the job's queue would gain" + by
	case apportionv1.ReasonCode_REASON_CODE_NO_PLAN:
		return "would not make room, not even together with others" + by
	}
	return choose("is", "are") + " protected: " + Enum(reason.GetCode(), "REASON_CODE_") + by
}

// Constraints names constraints on placement: `volumes and ports of the node`.
func Constraints(list []apportionv1.PlacementConstraint) string {
	var parts []string
	for _, constraint := range list {
		parts = append(parts, constraintNames[constraint])
	}
	return and(slices.DeleteFunc(parts, func(s string) bool { return s == "" }))
}

var constraintNames = map[apportionv1.PlacementConstraint]string{
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES:          "volumes",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_HOST_PORTS:       "ports of the node",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_POD_AFFINITY:     "affinities to other pods",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_TOPOLOGY_SPREAD:  "topology spread constraints",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_RESOURCE_CLAIMS:  "resource claims",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_NETWORK_TOPOLOGY: "network topology",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_OTHER:            "other constraints",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT:         "tasks that were left out because they are invalid",
}

// Amounts lists what a resource has that is not zero, `4 cpu, 64Gi memory`; pods only if there is nothing else.
func Amounts(names Names, resource *apportionv1.Resource) string {
	var parts []string
	for i, index := range resource.GetDimension() {
		if i >= len(resource.GetAmount()) {
			break
		}
		name, amount := names.Dimension(index), resource.GetAmount()[i]
		if amount != 0 && name != "pods" {
			parts = append(parts, quantity.Short(name, amount)+" "+name)
		}
	}
	if len(parts) == 0 {
		return "no resources"
	}
	return visible.Text(strings.Join(parts, ", "))
}

// Are is a number of things and the verb: `1 pod is`, `3 pods are`.
func Are(n int, noun string) string { return Count(n, noun) + " " + plural2(n, "is", "are") }

// Verb is the form of a verb for a number of things.
func Verb(n int, one, several string) string { return plural2(n, one, several) }

// ofThem is a part of several things that were counted before: `2 of them`, or `it` for a single one.
func ofThem(n, of int) string {
	if of == 1 {
		return "it"
	}
	return fmt.Sprintf("%d of them", n)
}

// Count is a number with a noun: `1 task`, `2 tasks`.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// and joins parts: `a, b and c`.
func and(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
