package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Pending is all jobs that wait, by kind of cause, in a few sentences, and how many nodes take new tasks.
func Pending(a *apportionv1.ExplainAnswer) string {
	const named = 5
	parts := make([]string, 0, named+1)
	total, rest := 0, 0
	for i, kind := range a.GetKinds() {
		total += int(kind.GetJobCount())
		if i < named {
			parts = append(parts, KindOf(kind))
		} else {
			rest += int(kind.GetJobCount())
		}
	}
	if more := len(a.GetKinds()) - named; more > 0 {
		parts = append(parts, fmt.Sprintf("%d for %s", rest, Verb(more, "another cause", strconv.Itoa(more)+" more causes")))
	}
	waiting := int(a.GetWaitingCount())
	var sentence string
	switch {
	case waiting == 0:
		sentence = "No job waits."
	case total == 0:
		sentence = fmt.Sprintf("No job matches; %s %s in all.", Count(waiting, "job"), Verb(waiting, "waits", "wait"))
	case total < waiting:
		sentence = fmt.Sprintf("%d of %s that wait %s: %s.",
			total, Count(waiting, "job"), Verb(total, "matches", "match"), strings.Join(parts, "; "))
	default:
		sentence = fmt.Sprintf("%s %s: %s.", Count(total, "job"), Verb(total, "waits", "wait"), strings.Join(parts, "; "))
	}
	return strings.TrimSpace(sentence + " " + around(a))
}

// Waiting is how many jobs wait, how many of them are blocked, and how many nodes take new tasks, for those who see the causes beside it.
func Waiting(a *apportionv1.ExplainAnswer) string {
	of := make(map[apportionv1.PendingVerdict]int)
	causes, total := 0, 0
	for _, kind := range a.GetKinds() {
		jobs := int(kind.GetJobCount())
		of[kind.GetVerdict()], total = of[kind.GetVerdict()]+jobs, total+jobs
		if kind.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED {
			causes++
		}
	}
	var parts []string
	if n := of[apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED]; n > 0 {
		parts = append(parts, strconv.Itoa(n)+Verb(n, " is", " are")+" blocked for "+Count(causes, "cause"))
	}
	if n := of[apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN]; n > 0 {
		parts = append(parts, strconv.Itoa(n)+" only "+Verb(n, "waits for its", "wait for their")+" turn")
	}
	if n := of[apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED]; n > 0 {
		parts = append(parts, "of "+strconv.Itoa(n)+" it is not known")
	}
	counted := fmt.Sprintf("%s %s", Count(total, "job"), Verb(total, "waits", "wait"))
	if waiting := int(a.GetWaitingCount()); total < waiting {
		counted = fmt.Sprintf("%d of %s that wait %s", total, Count(waiting, "job"), Verb(total, "matches", "match"))
	}
	queues := Count(len(a.GetQueues()), "queue")
	return strings.TrimSpace(fmt.Sprintf("%s in %s: %s. %s", counted, queues, strings.Join(parts, ", "), around(a)))
}

// KindFares says in a few words how the jobs of a kind of cause fare; empty: there are none.
func KindFares(kind *apportionv1.PendingKind) string {
	if kind.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED {
		return Word(kind.GetCheck())
	}
	return Word(kind.GetVerdict())
}

// around is what is not considered, and how many nodes take new tasks.
func around(a *apportionv1.ExplainAnswer) string {
	nodes := fmt.Sprintf("%d of %s can take new tasks.", a.GetSchedulableNodeCount(), Count(int(a.GetNodeCount()), "node"))
	if len(a.GetJobs()) > 0 && a.GetJobs()[0].GetKueue() != nil || a.GetNodeCount() == 0 {
		nodes = "" // The quota of Kueue's flavors decides, not the nodes; and what lacks nodes says so elsewhere.
	}
	if out := notConsidered(a.GetLeftOuts()); out != "" {
		nodes = "Besides, " + out + ". " + nodes
	}
	return nodes
}

// KindOf is a kind of cause with the numbers of its jobs and queues: `12 in 3 queues because their queue ...`.
func KindOf(kind *apportionv1.PendingKind) string {
	if queues := len(kind.GetQueues()); queues > 1 {
		return fmt.Sprintf("%d in %s %s", kind.GetJobCount(), Count(queues, "queue"), kind.GetText())
	}
	return fmt.Sprintf("%d %s", kind.GetJobCount(), kind.GetText())
}

// Kind is the cause of several groups of one kind, as the end of a sentence that begins with the number of their jobs. Where the groups are
// about one queue or one resource it is named; else the resources are listed, those of most jobs first.
func Kind(names Names, kind *apportionv1.PendingKind, groups []*apportionv1.PendingGroup) string {
	first := groups[0]
	if kind.GetVerdict() != apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED || first.GetCause() == nil || len(groups) == 1 {
		return inCommon(kind, groups)
	}
	reason := &apportionv1.Cause{Code: kind.GetCode(), Queue: first.GetCause().Queue, Detail: first.GetCause().GetDetail()}
	f := facts{names: names, reason: reason, dimensions: dimensionsOf(names, groups), free: first.GetFree()}
	for _, group := range groups[1:] {
		r := group.GetCause()
		f.free = f.free && group.GetFree()
		if reason.Queue != nil && (r.Queue == nil || r.GetQueue() != reason.GetQueue()) {
			reason.Queue, f.queues = nil, queuesOf(kind, groups)
		}
		if r.GetDetail() != reason.GetDetail() {
			reason.Detail = ""
		}
	}
	return Sentence(because(kind.GetCheck(), f))
}

// queuesOf names the queues that groups of several queues are about: those of their jobs, or queues above these.
func queuesOf(kind *apportionv1.PendingKind, groups []*apportionv1.PendingGroup) string {
	own := make(map[uint32]bool, len(kind.GetQueues()))
	for _, q := range kind.GetQueues() {
		own[q.GetQueue()] = true
	}
	for _, group := range groups {
		if group.GetCause().Queue != nil && !own[group.GetCause().GetQueue()] {
			return "their queue or one above it"
		}
	}
	return "their queue"
}

// inCommon is the text of groups that are not about a reason, or of a single one.
func inCommon(kind *apportionv1.PendingKind, groups []*apportionv1.PendingGroup) string {
	switch {
	case len(groups) == 1:
	case kind.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN:
		return "for their turn"
	case kind.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED && kind.GetCode() == 0:
		return "perhaps because of constraints that are not judged here"
	}
	return groups[0].GetText()
}

// dimensionsOf lists the resources that groups are about, those of most jobs first: `cpu or memory`. Of more than three
// the others are counted.
func dimensionsOf(names Names, groups []*apportionv1.PendingGroup) string {
	const named = 3
	jobs := make(map[uint32]int)
	var list []uint32
	for _, group := range groups {
		if len(group.GetCause().GetDimensions()) == 0 {
			return ""
		}
		d := group.GetCause().GetDimensions()[0]
		if jobs[d] == 0 {
			list = append(list, d)
		}
		jobs[d] += len(group.GetJobs())
	}
	slices.SortStableFunc(list, func(l, r uint32) int { return jobs[r] - jobs[l] })
	words := make([]string, 0, len(list))
	for _, d := range list[:min(named, len(list))] {
		words = append(words, names.Dimension(d))
	}
	if more := len(list) - named; more > 0 {
		words = append(words, Count(more, "other resource"))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// Group is the cause that several jobs wait for, as the end of a sentence that begins with their number.
func Group(names Names, g *apportionv1.PendingGroup, unjudged []apportionv1.PlacementConstraint) string {
	return Sentence(cause(names, g, unjudged))
}

// cause is the cause of a group without hiding what cannot be printed.
func cause(names Names, g *apportionv1.PendingGroup, unjudged []apportionv1.PlacementConstraint) string {
	switch g.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN:
		return "for " + Verb(len(g.GetJobs()), "its", "their") + " turn"
	case apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED:
		if g.GetCause() != nil {
			return "for what is not judged: " + reasonOf(names, g.GetCause())
		}
		if len(unjudged) > 0 {
			return "perhaps because of " + Constraints(unjudged) + ", which are not judged here"
		}
		return "for what is not known"
	default:
	}
	return because(g.GetCheck(), facts{names: names, reason: g.GetCause(), free: g.GetFree()})
}

// because is the clause of a reason of a check that blocks; the reason may be nil.
func because(check apportionv1.CheckKind, f facts) string {
	if check == apportionv1.CheckKind_CHECK_KIND_ORDER {
		return "because jobs that come first take what is left"
	}
	if check == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY {
		return never(f)
	}
	if f.reason == nil {
		return "because of " + Enum(check, "CHECK_KIND_")
	}
	if clause, ok := causes[f.reason.GetCode()]; ok {
		return "because " + clause(f)
	}
	return "because of " + Enum(f.reason.GetCode(), "CAUSE_CODE_")
}

// neverRuns begins the causes of jobs that can never run.
const neverRuns = "that can never run, because "

// OfOne returns the cause of a group of jobs as that of one job.
func OfOne(cause string) string {
	if why, ok := strings.CutPrefix(cause, neverRuns); ok {
		return "because it can never run: " + why
	}
	return cause
}

// never says why jobs can never run.
func never(f facts) string {
	const said = neverRuns
	switch f.reason.GetCode() { //nolint:exhaustive // The others are about nodes.
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_TOTAL:
		return said + "the cluster has less " + f.dimension() + " than is asked for"
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT, apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY:
		return said + f.queue() + " may never hold so much " + f.dimension()
	case apportionv1.CauseCode_CAUSE_CODE_NEVER_FITS:
		return said + "even empty nodes hold too few tasks of the gang"
	case apportionv1.CauseCode_CAUSE_CODE_NODE_TOO_SMALL:
		return said + "no node that takes such tasks offers enough " + f.dimension() + ", even if it is empty"
	}
	if clause, ok := causes[f.reason.GetCode()]; ok && f.reason.GetDetail() != "" {
		return said + clause(f)
	}
	return said + "no node takes a task even if it is empty"
}

func (f facts) dimension() string {
	switch {
	case f.dimensions != "":
		return f.dimensions
	case !f.measured():
		return "resources"
	}
	return f.measure()
}

// excluded are the nodes that a reason excludes.
func (f facts) excluded() string {
	if f.free {
		return "nodes with enough left"
	}
	return "nodes"
}

// barring is a clause about the nodes that a reason excludes.
func barring(before, after string) func(facts) string {
	return func(f facts) string { return before + f.excluded() + after }
}

// causes are reasons without their numbers.
var causes = map[apportionv1.CauseCode]func(facts) string{
	apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_OPEN: func(f facts) string { return f.queue() + " is not open" },
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY: func(f facts) string {
		return f.queue() + " would hold more " + f.dimension() + " than it may"
	},
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_DESERVED: func(f facts) string {
		return f.queue() + " would hold more " + f.dimension() + " than it deserves"
	},
	apportionv1.CauseCode_CAUSE_CODE_NO_DIMENSION_WITHIN_DESERVED: func(f facts) string {
		return "nothing that is asked for fits into what " + f.queue() + " deserves"
	},
	apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_REFUSED: plain("the queue tree is refused"),
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_OVERCOMMIT: func(f facts) string {
		return "the cluster admits no more " + f.dimension() + " to waiting jobs"
	},
	apportionv1.CauseCode_CAUSE_CODE_OVERUSED:                 func(f facts) string { return f.queue() + " uses all that it deserves" },
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENOUGH_TASKS:         plain("there are too few tasks for the gang"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENOUGH_TASKS_OF_ROLE: plain("there are too few tasks of a role"),
	apportionv1.CauseCode_CAUSE_CODE_NOT_READY:                plain("too few tasks of the gang can become ready"),
	apportionv1.CauseCode_CAUSE_CODE_ROLE_NOT_READY:           plain("too few tasks of a role can become ready"),
	apportionv1.CauseCode_CAUSE_CODE_TASKS_GATED:              plain("scheduling gates hold all tasks back"),
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT: func(f facts) string {
		if said := f.spent(); said != "" {
			return f.queue() + " " + said
		}
		return f.queue() + " would hold more " + f.dimension() + " than its limit"
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENTITLED: func(f facts) string {
		return f.queue() + " would hold more " + f.dimension() + " than it is entitled to"
	},
	apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE: func(f facts) string {
		return "too little " + f.dimension() + " is free beside what must stay for others"
	},
	apportionv1.CauseCode_CAUSE_CODE_RESERVED: plain("room is kept free for another job"),
	apportionv1.CauseCode_CAUSE_CODE_NODE_RESERVED: func(f facts) string {
		return strings.TrimSpace(f.excluded() + " are reserved " + forWhat(f.reason.GetDetail()))
	},
	apportionv1.CauseCode_CAUSE_CODE_NEVER_FITS:  plain("too few tasks could ever run"),
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_TOTAL: func(f facts) string { return "more " + f.dimension() + " is needed than there is" },
	apportionv1.CauseCode_CAUSE_CODE_LARGER_THAN_ANY_NODE: func(f facts) string {
		return "no usable node is large enough in " + f.dimension()
	},
	apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE: func(f facts) string {
		return "no usable node has enough " + f.dimension() + " left"
	},
	apportionv1.CauseCode_CAUSE_CODE_FRAGMENTED: func(f facts) string {
		return "what is left of " + f.dimension() + " is spread over too many nodes"
	},
	apportionv1.CauseCode_CAUSE_CODE_NO_NODE_HAS_ALL:    plain("no usable node has enough of everything at once"),
	apportionv1.CauseCode_CAUSE_CODE_NO_JOINT_PLACEMENT: plain("the nodes have no room for a whole gang"),
	apportionv1.CauseCode_CAUSE_CODE_NODE_UNSCHEDULABLE: func(f facts) string {
		return joined(f.excluded()+" take no new tasks", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_NOT_IN_SET: func(f facts) string {
		return joined(f.excluded()+" are excluded", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_HOST_PORT_TAKEN: barring("other pods on the ", " have the requested ports"),
	apportionv1.CauseCode_CAUSE_CODE_POD_AFFINITY: func(f facts) string {
		if f.reason.GetDetail() != "" {
			return joined(f.excluded()+" lack a label by which tasks must be near each other", f.reason.GetDetail())
		}
		return f.excluded() + " are not where the pods are that the task must be near"
	},
	apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY:           barring("", " are where pods are that the task must keep away from"),
	apportionv1.CauseCode_CAUSE_CODE_POD_ANTI_AFFINITY_OF_OTHERS: barring("", " are where pods are that must keep away from the task"),
	apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_SPREAD: func(f facts) string {
		return joined("tasks must be spread more evenly", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_TOPOLOGY_LABEL_MISSING: func(f facts) string {
		return joined(f.excluded()+" lack a label by which tasks must be spread", f.reason.GetDetail())
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_MISSING:         barring("", " belong to no node group"),
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_NOT_IN_AFFINITY: plain("the nodes' groups are not in the affinity of the queue"),
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_ANTI_AFFINITY:   plain("the anti-affinity of the queue excludes the nodes"),
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_NODE_GROUP_LIMIT: func(f facts) string {
		return f.queue() + " would hold more " + f.dimension() + " than it may on the nodes of group " + f.reason.GetDetail()
	},
	apportionv1.CauseCode_CAUSE_CODE_NODE_GROUP_LIMITS_INVALID: plain("the limits of the queue for node groups cannot be read"),
}
