package text

import (
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

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
	freed := c.evictable() + " with " + amounts(c.names, c.finding.GetAmount()) + " could be evicted for " +
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
	sentence := c.evictable() + " with " + amounts(c.names, c.finding.GetAmount()) + " could be evicted by " + means +
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
		return "evictions do not help as long as " + Word(miss.GetCheck())
	case apportionv1.CheckKind_CHECK_KIND_QUEUE:
		return "evictions do not help as long as " + Word(miss.GetCheck())
	case apportionv1.CheckKind_CHECK_KIND_SHARE:
		return "no evictions let the queue use that much: " + reasonsOf(c.names, miss.GetCauses())
	}
	head := "no evictions make room"
	switch evictable := c.finding.GetEvictable(); {
	case evictable.GetCount() > 0:
		head = c.evictable() + " could be evicted, but no choice of them makes room"
	case len(c.finding.GetCauses()) > 0:
		return c.spared()
	}
	switch {
	case miss.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES:
		lacking := lacking(c.names, miss)
		if c.saidOfNodes(lacking) {
			return head + ", for the reason found for the nodes"
		}
		return head + ": " + lacking
	case len(miss.GetCauses()) > 0:
		return head + ": " + reasonsOf(c.names, miss.GetCauses())
	}
	return head + ": the policy does not let all tasks go that are in the way"
}

// saidOfNodes reports whether the check of the nodes, which people read first, says the same.
func (c *checked) saidOfNodes(sentence string) bool {
	return slices.ContainsFunc(c.job.GetFindings(), func(f *apportionv1.Finding) bool {
		of := &checked{names: c.names, job: c.job, finding: f}
		return f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES && of.failed() && of.nodes() == sentence
	})
}

// spared returns the reason why no task may be evicted.
func (c *checked) spared() string {
	if len(c.finding.GetCauses()) == 0 {
		return "no running task may be evicted for the job"
	}
	var clauses []string
	if missing := missingActions(c.finding.GetCauses()); missing != "" {
		clauses = append(clauses, missing)
	}
	for _, reason := range c.finding.GetCauses() {
		switch count := int(reason.GetCount()); {
		case count > 0:
			clauses = append(clauses, Count(count, "task")+" "+protection(reason, count))
		case reason.GetCode() == apportionv1.CauseCode_CAUSE_CODE_NO_ACTION:
		case reason.GetCode() == apportionv1.CauseCode_CAUSE_CODE_NOT_IN_CYCLE,
			reason.GetCode() == apportionv1.CauseCode_CAUSE_CODE_NOT_STARVING:
			// The job asks for no eviction, whatever its queue may take.
			clauses = append(clauses, reasonOf(c.names, reason))
		default:
			clauses = append(clauses, "the queue may take nothing from others, because "+reasonOf(c.names, reason))
		}
	}
	return "no running task may be evicted for the job: " + strings.Join(clauses, "; ")
}

// missingActions names the actions that a configuration lacks; empty if it has all.
func missingActions(causes []*apportionv1.Cause) string {
	var missing []string
	for _, cause := range causes {
		if action := cause.GetDetail(); cause.GetCode() == apportionv1.CauseCode_CAUSE_CODE_NO_ACTION && !slices.Contains(missing, action) {
			missing = append(missing, action)
		}
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return "the configuration has no action " + missing[0]
	}
	return "the configuration has none of the actions " + and(missing)
}

// protection says what keeps tasks from being evicted.
func protection(reason *apportionv1.Cause, count int) string {
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
	case apportionv1.CauseCode_CAUSE_CODE_GANG_MINIMUM:
		return choose("is", "are") + " needed for the minimum of " + choose("its job", "their jobs") + by
	case apportionv1.CauseCode_CAUSE_CODE_PRIORITY_NOT_LOWER:
		return choose("has", "have") + " no lower priority" + by
	case apportionv1.CauseCode_CAUSE_CODE_SYSTEM_CRITICAL:
		return choose("is", "are") + " system-critical" + by
	case apportionv1.CauseCode_CAUSE_CODE_SYSTEM_NAMESPACE:
		return choose("is", "are") + " in the namespace kube-system" + by
	case apportionv1.CauseCode_CAUSE_CODE_COOLDOWN:
		return choose("is", "are") + " protected for a time after being scheduled" + by
	case apportionv1.CauseCode_CAUSE_CODE_DISRUPTION_BUDGET:
		return choose("is", "are") + " kept by disruption budgets" + by
	case apportionv1.CauseCode_CAUSE_CODE_UNLABELLED:
		return choose("has", "have") + " no labels" + by
	case apportionv1.CauseCode_CAUSE_CODE_CLAIMANT_PREEMPTABLE:
		return choose("is", "are") + " left alone, because the job may itself be evicted" + by
	case apportionv1.CauseCode_CAUSE_CODE_ON_REVOCABLE_NODE:
		return choose("is", "are") + " on revocable nodes" + by
	case apportionv1.CauseCode_CAUSE_CODE_JOB_DISRUPTION:
		return choose("is", "are") + " of jobs of which no more may be evicted at once" + by
	case apportionv1.CauseCode_CAUSE_CODE_WITHIN_DESERVED:
		return choose("is of a queue", "are of queues") + " within what " + choose("it deserves", "they deserve") + by
	case apportionv1.CauseCode_CAUSE_CODE_GUARANTEE_KEPT:
		return choose("is", "are") + " needed for the guarantee of " + choose("its queue", "their queues") + by
	case apportionv1.CauseCode_CAUSE_CODE_SHARE_NOT_HIGHER:
		return choose("is of a job", "are of jobs") + " with no larger share" + by
	case apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE:
		return choose("is", "are") + " not preemptable"
	case apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_RECLAIMABLE:
		return choose("is of a queue that is", "are of queues that are") + " not reclaimable"
	case apportionv1.CauseCode_CAUSE_CODE_NO_SHARED_DIMENSION:
		return choose("uses", "use") + " nothing that the job asks for" + by
	case apportionv1.CauseCode_CAUSE_CODE_WITHIN_ENTITLEMENT:
		return choose("is of a queue that holds", "are of queues that hold") + " no more than the line that " +
			choose("it keeps", "they keep") + " against the job" + by
	case apportionv1.CauseCode_CAUSE_CODE_NOT_CALM:
		return "would cost " + choose("its queue", "their queues") + " more of the cluster than the job's queue would gain" + by
	case apportionv1.CauseCode_CAUSE_CODE_NO_PLAN:
		return "would not make room, not even together with others" + by
	}
	return choose("is", "are") + " protected: " + Enum(reason.GetCode(), "CAUSE_CODE_") + by
}
