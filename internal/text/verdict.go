package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
		if nothingOffered(f.GetReasons()) {
			return fmt.Sprintf("%s is not judged: %s.", e.GetName(), bare(f))
		}
	}
	return fmt.Sprintf("%s passes every check that is made here, but not everything is known: %s.", e.GetName(), strings.Join(open, "; "))
}

// Barred reports whether nodes have enough left for a task and a rule keeps it from them.
func Barred(f *apportionv1.Finding) bool {
	return len(f.GetNodeCounts()) > 0 && f.GetNodeCounts()[0].GetFree() > 0
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
		if f.GetCheck() == apportionv1.CheckKind_CHECK_KIND_EVICTION && f.GetEvictable() == nil && len(f.GetReasons()) > 0 {
			return strings.ToUpper(f.GetText()[:1]) + f.GetText()[1:] + "."
		}
	}
	return ""
}

// bare is the text of a finding without the plugin at its end.
func bare(f *apportionv1.Finding) string {
	if reasons := f.GetReasons(); len(reasons) > 0 {
		return strings.TrimSuffix(f.GetText(), " ("+reasons[len(reasons)-1].GetPlugin()+")")
	}
	return f.GetText()
}
