package text

import (
	"cmp"
	"fmt"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// plain is a clause without numbers.
func plain(clause string) func(facts) string {
	return func(facts) string { return clause }
}

// clauses says each reason in words.
var clauses = map[apportionv1.CauseCode]func(facts) string{
	apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_OPEN: func(f facts) string { return f.queue() + " is not open" },
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY: func(f facts) string {
		return f.exceeds("may hold at most " + f.limit() + f.of())
	},
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_DESERVED: func(f facts) string {
		return f.exceeds("deserves " + f.limit() + f.of())
	},
	apportionv1.CauseCode_CAUSE_CODE_NO_DIMENSION_WITHIN_DESERVED: func(f facts) string {
		if !f.measured() {
			return "nothing that is asked fits into what " + f.queue() + " deserves"
		}
		return f.exceeds("deserves "+f.limit()+f.of()) + ", and nothing else that is asked fits either"
	},
	apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_REFUSED: func(f facts) string {
		return "the queue tree is refused: " + treeFault(f)
	},
	apportionv1.CauseCode_CAUSE_CODE_QUEUE_TAKES_NO_PART: func(f facts) string { return f.queue() + " has no jobs and takes no part" },
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_OVERCOMMIT: func(f facts) string {
		return fmt.Sprintf("the cluster admits %s%s to waiting jobs, overcommitment included: %s promised, %s more asked",
			f.limit(), f.of(), f.have(), f.need())
	},
	apportionv1.CauseCode_CAUSE_CODE_BEST_EFFORT_CLAIMANT: plain("a task that requests nothing never preempts"),
	apportionv1.CauseCode_CAUSE_CODE_OVERUSED: func(f facts) string {
		if !f.measured() {
			return f.queue() + " uses all that it deserves"
		}
		return fmt.Sprintf("%s uses all that it deserves, such as %s%s where it deserves %s", f.queue(), f.have(), f.of(), f.limit())
	},
	apportionv1.CauseCode_CAUSE_CODE_JOB_NOT_PENDING:  plain("the job is not pending"),
	apportionv1.CauseCode_CAUSE_CODE_NO_MIN_RESOURCES: plain("the job names no minimum resources and enters unasked"),
	apportionv1.CauseCode_CAUSE_CODE_NO_ACTION: func(f facts) string {
		missing := "the configuration has no action " + f.reason.GetDetail()
		if f.reason.GetDetail() == "enqueue" {
			return missing + ", so that jobs enter unasked"
		}
		return missing
	},
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_NAMESPACE_QUOTA: func(f facts) string {
		return fmt.Sprintf("its namespace may use at most %s %s: %s used or permitted, %s more asked",
			f.limit(), f.reason.GetDetail(), f.have(), f.need())
	},
	apportionv1.CauseCode_CAUSE_CODE_PLUGIN_NOT_MODELLED: plain("a plugin votes on it that is not modelled"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENOUGH_TASKS:    tasks("the job has", "valid tasks", "needs"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_IN_CYCLE: plain(
		"the policy permits evictions, but the scheduler's next cycles make none for the job"),
	apportionv1.CauseCode_CAUSE_CODE_TASKS_GATED: func(f facts) string {
		switch {
		case f.reason.GetNeed() > 0:
			return "a scheduling gate holds " + Count(int(f.reason.GetHave()), "task") + " back"
		case f.reason.GetHave() == 1:
			return "a scheduling gate holds the waiting task back"
		}
		return "a scheduling gate holds all " + Count(int(f.reason.GetHave()), "waiting task") + " back"
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_READY:                oncePlaced(tasks("the job has", "tasks ready", "needs")),
	apportionv1.CauseCode_CAUSE_CODE_NOT_PIPELINED:            tasks("the job has", "tasks ready or pipelined", "needs"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_STARVING:             tasks("the job has", "tasks ready or pipelined", "needs no more than"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENOUGH_TASKS_OF_ROLE: tasks("", "valid tasks", "needs"),
	apportionv1.CauseCode_CAUSE_CODE_ROLE_NOT_READY:           oncePlaced(tasks("", "tasks ready", "needs")),

	apportionv1.CauseCode_CAUSE_CODE_NO_SHARED_DIMENSION: plain("it uses nothing that the claimant asks for"),
	apportionv1.CauseCode_CAUSE_CODE_GUARANTEE_KEPT: func(f facts) string {
		return fmt.Sprintf("%s holds %s%s, %s less would break its guarantee of %s", f.queue(), f.have(), f.of(), f.need(), f.limit())
	},
	apportionv1.CauseCode_CAUSE_CODE_WITHIN_DESERVED: func(f facts) string {
		if !f.measured() {
			return f.queue() + " is within what it deserves"
		}
		return fmt.Sprintf("%s is within what it deserves: %s of %s%s", f.queue(), f.have(), f.limit(), f.of())
	},
	apportionv1.CauseCode_CAUSE_CODE_BEST_EFFORT_SUBTREE: plain("it is in the claimant's own subtree, where no queue deserves anything"),
	apportionv1.CauseCode_CAUSE_CODE_GANG_MINIMUM:        tasks("its job has", "tasks ready", "must keep"),
	apportionv1.CauseCode_CAUSE_CODE_PRIORITY_NOT_LOWER: func(f facts) string {
		return fmt.Sprintf("its priority of %.0f is not below the claimant's %.0f", f.reason.GetHave(), f.reason.GetLimit())
	},
	apportionv1.CauseCode_CAUSE_CODE_SHARE_NOT_HIGHER: func(f facts) string {
		return fmt.Sprintf("the claimant's job would have a share of %.4g, its own would be left with %.4g",
			f.reason.GetHave(), f.reason.GetLimit())
	},
	apportionv1.CauseCode_CAUSE_CODE_SYSTEM_CRITICAL:  plain("it is system-critical"),
	apportionv1.CauseCode_CAUSE_CODE_SYSTEM_NAMESPACE: plain("it is in the namespace kube-system"),
	apportionv1.CauseCode_CAUSE_CODE_COOLDOWN: func(f facts) string {
		return fmt.Sprintf("it was scheduled %s ago and is protected for %s",
			f.duration(f.reason.GetHave()), f.duration(f.reason.GetLimit()))
	},
	apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_ORDER:       plain("the claimant's queue does not come first in the fair-share tree"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_RUNNING:           plain("it does not run"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE:       plain("it is not preemptable"),
	apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_RECLAIMABLE: func(f facts) string { return f.queue() + " is not reclaimable" },
	apportionv1.CauseCode_CAUSE_CODE_SAME_QUEUE:            plain("it is in the claimant's own queue"),
	apportionv1.CauseCode_CAUSE_CODE_OTHER_QUEUE:           plain("it is in another queue than the claimant"),
	apportionv1.CauseCode_CAUSE_CODE_BEST_EFFORT_VICTIM:    plain("it requests nothing"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_IN_DECIDING_TIER:  plain("the deciding tier did not name it"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_A_CANDIDATE:       plain("it is being released already, or named twice"),
	apportionv1.CauseCode_CAUSE_CODE_SAME_JOB:              plain("it belongs to the claimant's own job"),

	apportionv1.CauseCode_CAUSE_CODE_DISRUPTION_BUDGET: func(f facts) string {
		return fmt.Sprintf("disruption budget %s allows %s", f.reason.GetDetail(), more(int(f.reason.GetHave()), "eviction"))
	},
	apportionv1.CauseCode_CAUSE_CODE_UNLABELLED:           plain("it has no labels"),
	apportionv1.CauseCode_CAUSE_CODE_CLAIMANT_PREEMPTABLE: plain("a job whose tasks may be evicted evicts no others"),
	apportionv1.CauseCode_CAUSE_CODE_ON_REVOCABLE_NODE: func(f facts) string {
		return "it is on a node of revocable zone " + f.reason.GetDetail()
	},
	apportionv1.CauseCode_CAUSE_CODE_JOB_DISRUPTION: func(f facts) string {
		if f.reason.GetLimit() == 0 {
			return "none of its job may be evicted now"
		}
		return fmt.Sprintf("only %s of its job may be evicted at once", Count(int(f.reason.GetLimit()), "task"))
	},

	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_MISSING:         plain("the node belongs to no node group"),
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_NOT_IN_AFFINITY: plain("the node's group is not in the queue's affinity"),
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_ANTI_AFFINITY:   plain("the queue's anti-affinity excludes the node's group"),
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_NODE_GROUP_LIMIT: func(f facts) string {
		return f.exceeds("may hold at most " + f.with(f.reason.GetLimit()) + " on the nodes of group " + f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_LIMITS_INVALID: func(f facts) string {
		return "the limits of " + f.queue() + " for node groups cannot be read, so that no node takes its tasks"
	},
	apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE: func(f facts) string {
		return fmt.Sprintf("%s%s used of %s, %s more do not fit", f.have(), f.of(), f.limit(), f.need())
	},
	apportionv1.CauseCode_CAUSE_CODE_REVOCABLE_ZONE_CLOSED: func(f facts) string {
		return "the node's revocable zone " + f.reason.GetDetail() + " is not lent now"
	},
	apportionv1.CauseCode_CAUSE_CODE_REVOCABLE_ZONE_FORBIDDEN: func(f facts) string {
		return "the node is of revocable zone " + f.reason.GetDetail() + ", which the task may not use"
	},
	apportionv1.CauseCode_CAUSE_CODE_LARGER_THAN_ANY_NODE: func(f facts) string {
		return f.largerThan("the largest node")
	},
	apportionv1.CauseCode_CAUSE_CODE_FRAGMENTED: func(f facts) string {
		are := "are"
		if f.one(f.reason.GetLimit()) {
			are = "is"
		}
		most := "in all no node"
		if f.some {
			most = "on the nodes that it may use none"
		}
		return fmt.Sprintf("it asks for %s, and of the %s that %s left %s has more than %s",
			f.with(f.reason.GetNeed()), f.limit(), are, most, f.have())
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_TOO_SMALL:  plain("the node offers less than it asks for"),
	apportionv1.CauseCode_CAUSE_CODE_NO_NODE_HAS_ALL: plain("no usable node has enough of everything at once"),
	apportionv1.CauseCode_CAUSE_CODE_NO_JOINT_PLACEMENT: func(f facts) string {
		if f.reason.GetLimit() == 1 {
			return "no node has room for the task that the gang needs"
		}
		return fmt.Sprintf("the nodes have no room for the %s that the gang needs at the same time; best fit places %s",
			Count(int(f.reason.GetLimit()), "task"), f.have())
	},
	apportionv1.CauseCode_CAUSE_CODE_JOINT_PLACEMENT_NOT_FOUND: func(f facts) string {
		if f.reason.GetLimit() == 1 {
			return "best fit does not place the task that the gang needs; whether it has room is not known"
		}
		return fmt.Sprintf("best fit places %s of the %s that the gang needs; whether all have room is not known",
			f.have(), Count(int(f.reason.GetLimit()), "task"))
	},
	apportionv1.CauseCode_CAUSE_CODE_BEING_RELEASED: func(f facts) string {
		if !f.measured() {
			return f.releasedPod()
		}
		return f.with(f.reason.GetHave()) + areReleased(f.one(f.reason.GetHave())) + f.nodes()
	},
	apportionv1.CauseCode_CAUSE_CODE_NOTHING_OFFERED: func(f facts) string {
		if f.reason.GetLimit() == 0 {
			return "there are no nodes to judge by"
		}
		return "no node states what it offers (allocatable)"
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_UNSCHEDULABLE: func(f facts) string {
		return joined("the node takes no new tasks", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_NOT_IN_SET: func(f facts) string {
		return joined("the task may not use the node", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_HOST_PORT_TAKEN:             plain("another pod on the node has a port that the task asks for"),
	apportionv1.CauseCode_CAUSE_CODE_POD_AFFINITY:                plain("no pod that the task must be near is where the node is"),
	apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY:           plain("a pod that the task must keep away from is where the node is"),
	apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY_OF_OTHERS: plain("a pod where the node is must keep away from the task"),
	apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_SPREAD: func(f facts) string {
		return joined("the task must be spread more evenly", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_LABEL_MISSING: func(f facts) string {
		return joined("the node lacks a label by which the task must be spread", f.reason.GetDetail())
	},
}

// fairClauses says the reasons of plugin fair.
var fairClauses = map[apportionv1.CauseCode]func(facts) string{
	apportionv1.CauseCode_CAUSE_CODE_ENTITLED: func(f facts) string { return f.queue() + " is entitled to it" },
	apportionv1.CauseCode_CAUSE_CODE_BORROWED: borrowed,
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT: func(f facts) string {
		if said := f.spent(); said != "" {
			return f.exceeds(said)
		}
		return f.exceeds("is limited to " + f.limit() + f.of())
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE:   notIdle,
	apportionv1.CauseCode_CAUSE_CODE_NEVER_FITS: tasks("the job has", "tasks that could ever run", "needs"),
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_TOTAL: func(f facts) string {
		return fmt.Sprintf("the job needs %s, and there are %s in all", f.with(f.reason.GetNeed()), f.limit())
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENTITLED: func(f facts) string {
		return f.exceeds("is entitled to " + f.limit() + f.of())
	},
	apportionv1.CauseCode_CAUSE_CODE_RESERVED:      reserved,
	apportionv1.CauseCode_CAUSE_CODE_NODE_RESERVED: nodeReserved,
	apportionv1.CauseCode_CAUSE_CODE_NO_PLAN:       plain("no plan makes room for the claimant"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_CALM:      notCalm,
	apportionv1.CauseCode_CAUSE_CODE_NOT_NEEDED:    plain("the plan does without it"),
	apportionv1.CauseCode_CAUSE_CODE_WITHIN_ENTITLEMENT: func(f facts) string {
		return fmt.Sprintf("%s holds %s%s and keeps up to %s against this claimant", f.queue(), f.have(), f.of(), f.limit())
	},
}

// kueueClauses says the reasons of plugin kueue.
var kueueClauses = map[apportionv1.CauseCode]func(facts) string{
	apportionv1.CauseCode_CAUSE_CODE_NOT_NOMINATED: plain("the job is not nominated"),
	apportionv1.CauseCode_CAUSE_CODE_NO_FLAVOR:     plain("no flavor has enough quota and suits the pods"),
	apportionv1.CauseCode_CAUSE_CODE_QUOTA_IN_USE: func(f facts) string {
		if f.reason.GetHave() == 0 {
			return "the quota is in use, and no job may be evicted for this one"
		}
		return "the quota is in use by " + Count(int(f.reason.GetHave()), "job") + " that would be evicted"
	},
}

// borrowed names what of a request is beyond the entitlement.
func borrowed(f facts) string {
	if !f.measured() {
		return f.queue() + " may borrow what no entitled task can use now"
	}
	beyond := min(f.reason.GetNeed(), f.reason.GetHave()+f.reason.GetNeed()-f.reason.GetLimit())
	return fmt.Sprintf("%s may borrow %s that no entitled task can use now", f.queue(), f.with(beyond))
}

// reserved names the job whose room is kept, if the reader may know it.
func reserved(f facts) string {
	text := "room is kept free for " + cmp.Or(f.reason.GetDetail(), "another job") + " of " + f.queue()
	if have := f.reason.GetHave(); have > 0 {
		return text + ", which can start in " + seconds(have)
	}
	return text + ", which can start now"
}

// notIdle compares a request beyond the entitlement with what is free and not claimed.
func notIdle(f facts) string {
	asked, free, aside := f.with(f.reason.GetNeed()), f.reason.GetLimit(), f.reason.GetHave()
	begin := f.queue() + " is not entitled to " + asked + " more and cannot borrow it: "
	switch {
	case free <= 0:
		return begin + "none is free"
	case aside <= 0:
		return begin + f.with(free) + " is free"
	case aside >= free:
		return begin + "all that is free, " + f.with(free) + ", is kept for entitled tasks of other queues"
	}
	return fmt.Sprintf("%sof the %s that is free, %s is kept for entitled tasks of other queues", begin, f.with(free), f.amount(aside))
}

// notCalm compares the cost of a victim with the claimant's gain.
func notCalm(f facts) string {
	task := "this task"
	if f.measured() && f.reason.GetNeed() > 0 {
		task += " of " + f.with(f.reason.GetNeed())
	}
	than := "no less than"
	if f.reason.GetHave() > f.reason.GetLimit() {
		than = "more than"
	}
	return fmt.Sprintf("taking %s would cost %s %s the claimant would gain: %.3g against %.3g of the cluster",
		task, f.queue(), than, f.reason.GetHave(), f.reason.GetLimit())
}

// releasedPod is the pod that a rule waits for.
func (f facts) releasedPod() string {
	if f.reason.GetDetail() == "" {
		return "a pod that must not be near is being released"
	}
	return "pod " + f.reason.GetDetail() + " is being released"
}

// areReleased goes on after amounts with their resources.
func areReleased(one bool) string {
	if one {
		return " is being released on "
	}
	return " are being released on "
}

// joined puts a detail behind a clause, if there is one.
func joined(clause, detail string) string {
	if detail == "" {
		return clause
	}
	return clause + ": " + detail
}

// exceeds says that what is held and what is asked together are more than a bound.
func (f facts) exceeds(bound string) string {
	return fmt.Sprintf("%s %s: %s taken, %s more asked", f.queue(), bound, f.have(), f.need())
}

// spent says that the limit meant is a hard budget of which too little is left; "" if it is another one.
func (f facts) spent() string {
	r := f.reason
	if f.names.Spent == nil || r.Queue == nil || !f.measured() || r.GetLimit() != 0 || f.names.Queue(r.GetQueue()) == HiddenQueue {
		return ""
	}
	switch all, almost := f.names.Spent(r.GetQueue(), r.GetDimensions()[0]); {
	case all:
		return "has used up its hard budget" + f.of()
	case almost:
		return "has almost used up its hard budget" + f.of()
	}
	return ""
}

// tasks compares a number of tasks with a bound. No name: the role's.
func tasks(who, what, bound string) func(facts) string {
	return func(f facts) string {
		subject := who
		if subject == "" {
			subject = f.role() + " has"
		}
		counted := what
		if f.one(f.reason.GetHave()) {
			counted = strings.Replace(what, "tasks", "task", 1)
		}
		return fmt.Sprintf("%s %s %s and %s %s", subject, f.have(), counted, bound, f.limit())
	}
}

// oncePlaced says that a clause counts waiting tasks as ready, if it does.
func oncePlaced(clause func(facts) string) func(facts) string {
	return func(f facts) string {
		if f.reason.GetNeed() == 0 {
			return clause(f)
		}
		return "once " + Are(int(f.reason.GetNeed()), "waiting task") + " placed, " + clause(f)
	}
}

func (f facts) role() string {
	if f.reason.GetDetail() == "" {
		return "the role without a name"
	}
	return "role " + f.reason.GetDetail()
}

// treeFault says what is wrong with a queue tree.
func treeFault(f facts) string {
	switch f.reason.GetHierarchyFault() {
	case apportionv1.HierarchyFault_HIERARCHY_FAULT_MISSING_ROOT:
		return "there is no queue root"
	case apportionv1.HierarchyFault_HIERARCHY_FAULT_UNKNOWN_PARENT:
		return "the parent of " + f.queue() + " does not exist"
	case apportionv1.HierarchyFault_HIERARCHY_FAULT_CYCLE:
		return f.queue() + " is its own ancestor"
	case apportionv1.HierarchyFault_HIERARCHY_FAULT_TOO_DEEP:
		return f.queue() + " is too deep"
	case apportionv1.HierarchyFault_HIERARCHY_FAULT_JOB_ON_INNER_QUEUE:
		return f.queue() + " has jobs and children"
	default:
		return "it is no tree"
	}
}

// nodeReserved says what a node is reserved for, and when.
func nodeReserved(f facts) string {
	text := strings.TrimSpace("the node is reserved " + forWhat(f.reason.GetDetail()))
	begins, ends := f.reason.GetHave(), f.reason.GetLimit()
	switch {
	case begins > 0 && ends > 0:
		return text + " in " + seconds(begins) + ", for " + seconds(ends-begins) + ", and the task may still run then"
	case begins > 0:
		return text + " in " + seconds(begins) + ", and the task may still run then"
	case ends > 0:
		return text + ", for " + seconds(ends) + " more"
	}
	return text
}

// more says how many more of something there may be.
func more(n int, what string) string {
	if n == 0 {
		return "no more " + what + "s"
	}
	return fmt.Sprintf("%d more %s", n, strings.TrimPrefix(Count(n, what), fmt.Sprintf("%d ", n)))
}
