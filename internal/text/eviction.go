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

// protections say what keeps one task, and several, from being evicted.
var protections = map[apportionv1.CauseCode]struct{ one, many string }{
	apportionv1.CauseCode_CAUSE_CODE_GANG_MINIMUM: {
		"is needed for the minimum of its job",
		"are needed for the minimum of their jobs",
	},
	apportionv1.CauseCode_CAUSE_CODE_PRIORITY_NOT_LOWER: {
		"has no lower priority",
		"have no lower priority",
	},
	apportionv1.CauseCode_CAUSE_CODE_SYSTEM_CRITICAL: {
		"is system-critical",
		"are system-critical",
	},
	apportionv1.CauseCode_CAUSE_CODE_SYSTEM_NAMESPACE: {
		"is in the namespace kube-system",
		"are in the namespace kube-system",
	},
	apportionv1.CauseCode_CAUSE_CODE_COOLDOWN: {
		"is protected for a time after being scheduled",
		"are protected for a time after being scheduled",
	},
	apportionv1.CauseCode_CAUSE_CODE_DISRUPTION_BUDGET: {
		"is kept by disruption budgets",
		"are kept by disruption budgets",
	},
	apportionv1.CauseCode_CAUSE_CODE_UNLABELLED: {
		"has no labels",
		"have no labels",
	},
	apportionv1.CauseCode_CAUSE_CODE_CLAIMANT_PREEMPTABLE: {
		"is left alone, because the job may itself be evicted",
		"are left alone, because the job may itself be evicted",
	},
	apportionv1.CauseCode_CAUSE_CODE_ON_REVOCABLE_NODE: {
		"is on revocable nodes",
		"are on revocable nodes",
	},
	apportionv1.CauseCode_CAUSE_CODE_JOB_DISRUPTION: {
		"is of jobs of which no more may be evicted at once",
		"are of jobs of which no more may be evicted at once",
	},
	apportionv1.CauseCode_CAUSE_CODE_WITHIN_DESERVED: {
		"is of a queue within what it deserves",
		"are of queues within what they deserve",
	},
	apportionv1.CauseCode_CAUSE_CODE_GUARANTEE_KEPT: {
		"is needed for the guarantee of its queue",
		"are needed for the guarantee of their queues",
	},
	apportionv1.CauseCode_CAUSE_CODE_SHARE_NOT_HIGHER: {
		"is of a job with no larger share",
		"are of jobs with no larger share",
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE: {
		"is not preemptable",
		"are not preemptable",
	},
	apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_RECLAIMABLE: {
		"is of a queue that is not reclaimable",
		"are of queues that are not reclaimable",
	},
	apportionv1.CauseCode_CAUSE_CODE_NO_SHARED_DIMENSION: {
		"uses nothing that the job asks for",
		"use nothing that the job asks for",
	},
	apportionv1.CauseCode_CAUSE_CODE_WITHIN_ENTITLEMENT: {
		"is of a queue that holds no more than the line that it keeps against the job",
		"are of queues that hold no more than the line that they keep against the job",
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_CALM: {
		"would cost its queue more of the cluster than the job's queue would gain",
		"would cost their queues more of the cluster than the job's queue would gain",
	},
	apportionv1.CauseCode_CAUSE_CODE_NO_PLAN: {
		"would not make room, not even together with others",
		"would not make room, not even together with others",
	},
}

// protection says what keeps tasks from being evicted.
func protection(reason *apportionv1.Cause, count int) string {
	said, known := protections[reason.GetCode()]
	if !known {
		protected := "protected: " + Enum(reason.GetCode(), "CAUSE_CODE_")
		said.one, said.many = "is "+protected, "are "+protected
	}
	by := ""
	if plugin := reason.GetPlugin(); plugin != "" {
		by = " (" + plugin + ")"
	}
	if count == 1 {
		return said.one + by
	}
	return said.many + by
}
