package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// explanation is the verdict on a job, its grounds, what would help, and what its own scheduler says. The texts of its findings are set.
func explanation(names Names, e *apportionv1.Explanation) string {
	parts := []string{verdict(names, e)}
	if e.Blocking != nil {
		parts = append(parts, further(e), evictionHelps(e))
	}
	parts = append(parts, reservation(names, e), remembered(names, e.GetMemory()))
	if e.GetForecast().GetOutcome() == apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT {
		f := foreseen{names, e, e.GetForecast()}
		parts = append(parts, f.start())
	}
	if e.GetVerdict() != apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE {
		for _, condition := range e.GetConditions() {
			// A bare reason, such as Unschedulable, says nothing new, and the check of constraints quotes a report.
			quoted := strconv.Quote(strings.TrimSuffix(condition, "."))
			if strings.Contains(condition, " ") && !strings.Contains(parts[0], quoted) {
				parts = append(parts, fmt.Sprintf("Its scheduler last reported: %q.", condition))
			}
		}
	}
	var sentences []string
	for _, part := range parts {
		if part != "" {
			sentences = append(sentences, part)
		}
	}
	return strings.Join(sentences, " ")
}

// remembered tells that a queue has used more than its part, or more than siblings for its weight, and who comes first.
func remembered(names Names, m *apportionv1.MemoryStanding) string {
	if m == nil || m.GetPart() <= 0 {
		return ""
	}
	of := "the recent usage"
	if m.Dimension != nil {
		of = "the recent usage of " + names.Dimension(m.GetDimension())
	}
	var first []string
	for _, q := range m.GetFirstQueues() {
		first = append(first, names.Queue(q))
	}
	next := "queues that have used less"
	switch n := len(first); {
	case n == 1:
		next = "queue " + first[0]
	case n > 1:
		next = "queues " + strings.Join(first[:n-1], ", ") + " and " + first[n-1]
	}
	until := ""
	if m.GetUntil() > 0 {
		until = ", at least until " + moment(m.GetUntil())
	}
	if m.GetUsed() <= m.GetPart() {
		return fmt.Sprintf("For its weight, queue %s has more of %s than %s: what becomes free goes to %s first%s.",
			names.Queue(m.GetQueue()), of, next, next, until)
	}
	return fmt.Sprintf("Queue %s has %.0f %% of %s among its siblings, %.1f times its part: what becomes free goes to %s first%s.",
		names.Queue(m.GetQueue()), 100*m.GetUsed(), of, m.GetUsed()/m.GetPart(), next, until)
}

func verdict(names Names, e *apportionv1.Explanation) string {
	queue := names.Queue(e.GetQueue())
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED:
		if int(e.GetBlocking()) < len(e.GetFindings()) {
			return headline(names, e, e.GetFindings()[e.GetBlocking()])
		}
	case apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED:
		return undetermined(e)
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN:
		if released := slices.IndexFunc(e.GetFindings(), isReleased); released >= 0 {
			return fmt.Sprintf("%s waits for room that is being released: %s.", e.GetName(), e.GetFindings()[released].GetText())
		}
		if e.GetPhase() == apportionv1.JobPhase_JOB_PHASE_PENDING {
			return fmt.Sprintf("%s passes every check: it %s to enter queue %s.", e.GetName(), Word(e.GetVerdict()), queue)
		}
		return fmt.Sprintf("%s passes every check: it %s in queue %s.", e.GetName(), Word(e.GetVerdict()), queue)
	case apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		return e.GetName() + " " + Word(e.GetVerdict()) + "."
	default:
	}
	return e.GetName() + " waits."
}

// isReleased reports whether a check is passed by room that is being released.
func isReleased(f *apportionv1.Finding) bool {
	return f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES && f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_NOTED
}

// headline says what holds a job back first, and what of it would have to change.
func headline(names Names, e *apportionv1.Explanation, f *apportionv1.Finding) string {
	why := bare(f)
	switch f.GetCheck() {
	case apportionv1.CheckKind_CHECK_KIND_ADMISSION:
		return fmt.Sprintf("%s waits outside queue %s, because %s.%s",
			e.GetName(), names.Queue(e.GetQueue()), why, advice(names, e, f))
	case apportionv1.CheckKind_CHECK_KIND_TASKS, apportionv1.CheckKind_CHECK_KIND_QUEUE:
		return fmt.Sprintf("%s waits because %s: %s.", e.GetName(), Word(f.GetCheck()), why)
	case apportionv1.CheckKind_CHECK_KIND_SHARE:
		return fmt.Sprintf("%s waits because %s: %s.%s", e.GetName(), Word(f.GetCheck()), why, advice(names, e, f))
	case apportionv1.CheckKind_CHECK_KIND_NODES, apportionv1.CheckKind_CHECK_KIND_ORDER:
		if Barred(f) {
			return fmt.Sprintf("%s %s: %s.", e.GetName(), Say("waitsForNode"), why)
		}
		return fmt.Sprintf("%s %s: %s.", e.GetName(), Word(f.GetCheck()), why)
	case apportionv1.CheckKind_CHECK_KIND_FEASIBILITY:
		return fmt.Sprintf("%s %s: %s.", e.GetName(), Word(f.GetCheck()), why)
	default:
		return fmt.Sprintf("%s waits: %s.", e.GetName(), why)
	}
}

// undetermined says what is not known of a job that no check holds back.
func undetermined(e *apportionv1.Explanation) string {
	var open []string
	for _, f := range e.GetFindings() {
		if f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_NOT_KNOWN {
			open = append(open, bare(f))
		}
		if nothingOffered(f.GetCauses()) {
			return fmt.Sprintf("%s is not judged: %s.", e.GetName(), bare(f))
		}
	}
	return fmt.Sprintf("%s passes every check that is made here, but not everything is known: %s.", e.GetName(), strings.Join(open, "; "))
}

// Barred reports whether nodes have enough left for a task and a rule keeps it from them.
func Barred(f *apportionv1.Finding) bool {
	return len(f.GetNodes()) > 0 && f.GetNodes()[0].GetFree() > 0
}

// further names the other checks that failed.
func further(e *apportionv1.Explanation) string {
	clauses := map[apportionv1.CheckKind]string{
		apportionv1.CheckKind_CHECK_KIND_TASKS: Word(apportionv1.CheckKind_CHECK_KIND_TASKS),
		apportionv1.CheckKind_CHECK_KIND_QUEUE: Word(apportionv1.CheckKind_CHECK_KIND_QUEUE),
		apportionv1.CheckKind_CHECK_KIND_SHARE: "its queue may not use that much",
		apportionv1.CheckKind_CHECK_KIND_NODES: "the nodes have no room",
	}
	var also []string
	if e.GetFindings()[e.GetBlocking()].GetCheck() == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY {
		// What could never be is not held back by what is in use.
		delete(clauses, apportionv1.CheckKind_CHECK_KIND_SHARE)
		delete(clauses, apportionv1.CheckKind_CHECK_KIND_NODES)
	}
	for i, f := range e.GetFindings() {
		if f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY && i > int(e.GetBlocking()) {
			also = append(also, bare(f))
		}
		if clause := clauses[f.GetCheck()]; clause != "" && i > int(e.GetBlocking()) &&
			f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED {
			if Barred(f) {
				clause = "no node takes its tasks"
			}
			also = append(also, clause)
		}
	}
	if len(e.GetUnjudgedConstraints()) > 0 {
		also = append(also, alsoDepends(e.GetUnjudgedConstraints()))
	}
	if len(also) == 0 {
		return ""
	}
	return "Besides, " + strings.Join(also, ", and ") + "."
}

// evictionHelps repeats the finding about eviction for a job that waits for room: where evictions would make room, or why none are
// possible.
func evictionHelps(e *apportionv1.Explanation) string {
	if e.GetFindings()[e.GetBlocking()].GetCheck() != apportionv1.CheckKind_CHECK_KIND_NODES {
		return ""
	}
	for _, f := range e.GetFindings() {
		if f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_EVICTION && f.GetEvictable().GetEnough() {
			return "A way out: " + bare(f) + "."
		}
		if f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_EVICTION && f.GetEvictable() == nil && len(f.GetCauses()) > 0 {
			return strings.ToUpper(f.GetText()[:1]) + f.GetText()[1:] + "."
		}
	}
	return ""
}

// bare is the text of a finding without the plugin at its end.
func bare(f *apportionv1.Finding) string {
	if reasons := f.GetCauses(); len(reasons) > 0 {
		return strings.TrimSuffix(f.GetText(), " ("+reasons[len(reasons)-1].GetPlugin()+")")
	}
	return f.GetText()
}

// Reserved says what a reservation keeps of a node, for what, and when, in the words of the page too: `the whole node for maintenance from
// 2026-03-02 15:00:00 UTC to 2026-03-02 17:00:00 UTC`. holder is the name of the job that may use it, empty if no job may.
func Reserved(names Names, holder string, r *apportionv1.NodeReservation) string {
	what := Say("reservedWhole")
	if r.GetRequest() != nil {
		what = Amounts(names, r.GetRequest())
	}
	switch {
	case holder != "" && r.GetReason() != "":
		what += Say("reservedForBoth", "holder", holder, "reason", r.GetReason())
	case holder != "" || r.GetReason() != "":
		what += Say("reservedFor", "what", holder+r.GetReason())
	}
	return what + period(r.GetStartUnixNano(), r.GetEndUnixNano())
}

// period is when a reservation begins and ends: ` from 2026-07-01 14:30:00 UTC on`.
func period(from, until int64) string {
	switch {
	case from == 0 && until == 0:
		return ""
	case from == 0:
		return Say("reservedUntil", "until", moment(until))
	case until == 0:
		return Say("reservedFrom", "from", moment(from))
	}
	return Say("reservedDuring", "from", moment(from), "until", moment(until))
}

// reservation tells which room is kept from when on: for the job, or for the one that keeps it back.
func reservation(names Names, e *apportionv1.Explanation) string {
	r := e.GetReservation()
	if r == nil {
		return ""
	}
	if r.GetJob() == e.GetJob() {
		room, _ := roomOf(r)
		return fmt.Sprintf("It holds %s from %s on.", room, moment(r.GetStartTime()))
	}
	return Reservation(names.job(r.GetJob()), r)
}

// Reservation says which room is kept for a job of that name, and from when on.
func Reservation(job string, r *apportionv1.Reservation) string {
	room, are := roomOf(r)
	room = strings.ToUpper(room[:1]) + room[1:]
	return visible.Text(fmt.Sprintf("%s %s kept free for %s from %s on.", room, are, job, moment(r.GetStartTime())))
}

// roomOf names the room of a reservation, with its verb.
func roomOf(r *apportionv1.Reservation) (room, are string) {
	switch nodes := slices.Compact(slices.Sorted(slices.Values(r.GetNodes()))); len(nodes) {
	case 0:
		return "room for " + Count(len(r.GetTasks()), "task"), "is"
	case 1:
		return "1 node", "is"
	default:
		return Count(len(nodes), "node"), "are"
	}
}

// Named is the text about the jobs that were named, a line for each.
func Named(a *apportionv1.ExplainAnswer) string {
	var lines []string
	for _, e := range a.GetJobs() {
		lines = append(lines, e.GetText())
	}
	for _, l := range a.GetLeftOuts() {
		lines = append(lines, l.GetText())
	}
	return strings.Join(lines, "\n")
}

// LeftOut says why the scheduler does not consider a job or a pod.
func LeftOut(e *apportionv1.LeftOutExplanation) string { return visible.Text(leftOut(e)) }

func leftOut(e *apportionv1.LeftOutExplanation) string {
	l := e.GetLeftOut()
	name := l.GetName()
	if l.GetNamespace() != "" {
		name = l.GetNamespace() + "/" + name
	}
	switch l.GetCause() {
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE:
		like := ""
		if e.GetSimilarQueue() != "" {
			like = fmt.Sprintf(" Did you mean %q?", e.GetSimilarQueue())
		}
		if l.GetDetail() != "" {
			return fmt.Sprintf("%s waits: %s.%s", name, strings.TrimSuffix(l.GetDetail(), "."), like)
		}
		return fmt.Sprintf("%s waits because its queue %q does not exist.%s", name, l.GetQueue(), like)
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_NO_JOB:
		return fmt.Sprintf("The pod %s waits because it belongs to no job: it has no PodGroup.", name)
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_MISSING_JOB:
		return fmt.Sprintf("The pod %s waits because its PodGroup %s does not exist.", name, l.GetJob())
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_OTHER_SCHEDULER:
		return fmt.Sprintf("The pod %s is left to another scheduler: its schedulerName is %s.", name, l.GetScheduler())
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID:
		return fmt.Sprintf("The %s %s is left out and is not judged: %s.", l.GetKind(), name, strings.TrimSuffix(l.GetDetail(), "."))
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD:
		return capital(unread(l)) + "."
	default:
		return name + " is not considered."
	}
}

// unread says which kind was not read, and why.
func unread(l *apportionv1.LeftOut) string {
	words := "no " + l.GetKind() + " was read"
	if l.GetDetail() != "" {
		words += ": " + strings.TrimSuffix(l.GetDetail(), ".")
	}
	return words
}

// Unread says that an answer is not known without kinds that were not read; "" if there are none.
func Unread(kinds []*apportionv1.LeftOut) string {
	if len(kinds) == 0 {
		return ""
	}
	words := make([]string, len(kinds))
	for i, l := range kinds {
		words[i] = unread(l)
	}
	return visible.Text("the answer is not known, because " + strings.Join(words, "; "))
}

// notConsidered counts what the scheduler does not consider: pods by the schedulers that they are left to, and the rest.
func notConsidered(list []*apportionv1.LeftOutExplanation) string {
	pods, rest, invalid := map[string]int{}, 0, 0
	for _, l := range list {
		switch l.GetLeftOut().GetCause() {
		case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_OTHER_SCHEDULER:
			pods[l.GetLeftOut().GetScheduler()]++
		case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID:
			invalid++
		default:
			rest++
		}
	}
	var parts []string
	for _, scheduler := range slices.Sorted(maps.Keys(pods)) {
		parts = append(parts, Count(pods[scheduler], "waiting pod")+" of scheduler "+visible.Text(scheduler))
	}
	if rest > 0 {
		parts = append(parts, Count(rest, Verb(rest, "job or pod", "jobs and pod")))
	}
	if invalid > 0 {
		parts = append(parts, Count(invalid, "invalid object"))
	}
	if len(parts) == 0 {
		return ""
	}
	return and(parts) + " " + plural2(len(list), "is", "are") + " not considered"
}
