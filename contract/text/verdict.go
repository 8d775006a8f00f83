package text

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/contract/quantity"
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

// reservation tells which room is kept from when on: for the job, or for the gang that keeps it back.
func reservation(names Names, e *apportionv1.Explanation) string {
	r := e.GetReservation()
	if r == nil {
		return ""
	}
	if r.GetJob() == e.GetJob() {
		room, _ := roomOf(r)
		return fmt.Sprintf("It holds %s from %s on.", room, moment(r.GetFrom()))
	}
	return Reservation(names.job(r.GetJob()), r)
}

// Reservation says which room is kept for a gang of that name, and from when on.
func Reservation(gang string, r *apportionv1.Reservation) string {
	room, are := roomOf(r)
	room = strings.ToUpper(room[:1]) + room[1:]
	return visible.Text(fmt.Sprintf("%s %s kept free for %s from %s on.", room, are, gang, moment(r.GetFrom())))
}

// roomOf names the room of a reservation, with its verb.
func roomOf(r *apportionv1.Reservation) (room, are string) {
	switch nodes := slices.Compact(slices.Sorted(slices.Values(r.GetNode()))); len(nodes) {
	case 0:
		return "room for " + Count(len(r.GetTask()), "task"), "is"
	case 1:
		return "1 node", "is"
	default:
		return Count(len(nodes), "node"), "are"
	}
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
	for _, q := range m.GetFirst() {
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
	for i, f := range e.GetFindings() {
		if clause := clauses[f.GetCheck()]; clause != "" && i > int(e.GetBlocking()) &&
			f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED {
			if Barred(f) {
				clause = "no node takes its tasks"
			}
			also = append(also, clause)
		}
	}
	if len(e.GetUnjudged()) > 0 {
		also = append(also, alsoDepends(e.GetUnjudged()))
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

// advice says what would have to change for every bound that is exceeded: what others must give back, and what the job may ask for instead,
// where either is possible.
func advice(names Names, e *apportionv1.Explanation, f *apportionv1.Finding) string {
	var give, less []string
	giving, leaves, some := true, true, false
	overcommit := false
	list := exceeded(f.GetReasons())
	levels := slices.ContainsFunc(list, func(x excess) bool { return x.queue != list[0].queue })
	for i, x := range list {
		name := names.Dimension(x.dimension)
		amount := rounded(name, x.over, math.Ceil) + " " + name
		if levels && x.queue >= 0 {
			amount += " in queue " + names.Queue(uint32(x.queue))
		}
		give = append(give, amount)
		giving, some, overcommit = giving && x.giving, some || x.limited, x.overcommit
		if bound, first := tightest(list, i); first {
			left := rounded(name, bound, math.Floor)
			less = append(less, left+" "+name)
			leaves = leaves && bound > 0 && left != "0"
		}
	}
	if len(give) == 0 {
		return ""
	}
	first := "at least " + and(give) + " must be given back first"
	if overcommit {
		first = "at least " + and(give) + " must become free first"
	}
	asks := "the job"
	if f.Task != nil && e.GetNeededTasks() > 1 {
		// The numbers are those of one task, and the others need more.
		first, asks = first+" for one task alone", "each task"
	}
	instead := asks + " must ask for no more than " + and(less)
	switch {
	case giving && leaves:
		return " Either " + first + ", or " + instead + "."
	case giving:
		return " For that, " + first + "."
	case leaves:
		return " It asks for more than that in all: " + instead + "."
	case some:
		return " It asks for more than that in all."
	}
	return ""
}

// tightest returns what the bounds of a dimension leave the job, and whether it is listed for the first time.
func tightest(list []excess, i int) (left float64, first bool) {
	left, first = list[i].left, true
	for k, x := range list {
		if x.dimension == list[i].dimension {
			left, first = min(left, x.left), first && k >= i
		}
	}
	return left, first
}

// excess is by how much a queue exceeds a bound of a dimension.
type excess struct {
	dimension uint32
	// queue is the queue of the bound, -1 for a bound of the whole cluster.
	queue int64
	// over is the excess, left the amount that the job may request.
	over, left float64
	// giving says that the job could have what it asks for if others gave back, limited that the bound is above zero.
	giving, limited, overcommit bool
}

// exceeded lists the dimensions and queues whose bounds are exceeded, each with the tightest of its bounds.
func exceeded(reasons []*apportionv1.Reason) []excess {
	var list []excess
	for _, r := range reasons {
		over := r.GetHave() + r.GetNeed() - r.GetLimit()
		if r.Dimension == nil || over <= 0 || !bounds[r.GetCode()] {
			continue
		}
		overcommit := r.GetCode() == apportionv1.ReasonCode_REASON_CODE_ABOVE_OVERCOMMIT
		queue := int64(-1)
		if r.Queue != nil {
			queue = int64(r.GetQueue())
		}
		e := excess{
			r.GetDimension(), queue, over, r.GetLimit() - r.GetHave(),
			overcommit || r.GetNeed() <= r.GetLimit(), r.GetLimit() > 0, overcommit,
		}
		at := slices.IndexFunc(list, func(known excess) bool { return known.dimension == e.dimension && known.queue == e.queue })
		if at < 0 {
			list = append(list, e)
			continue
		}
		known := &list[at]
		known.over, known.left = max(known.over, e.over), min(known.left, e.left)
		known.giving, known.limited = known.giving && e.giving, known.limited || e.limited
	}
	return list
}

// rounded writes an amount, in a unit that people use where it has no exact short form: a thousandth of a core, MiB, a whole device.
func rounded(dimension string, amount float64, round func(float64) float64) string {
	unit := 1000.0
	switch {
	case dimension == "cpu" || dimension == "pods":
		unit = 1
	case dimension == "memory":
		unit = 1 << 20
	case dimension == "ephemeral-storage" || strings.HasPrefix(dimension, "hugepages-"):
		unit = 1000 << 20
	}
	short := quantity.Short(dimension, amount)
	whole := dimension != "cpu" && unit == 1000
	if parsed, err := quantity.Parse(dimension, short); err == nil && parsed == amount && (!whole || amount == round(amount/unit)*unit) {
		return exactly(dimension, amount)
	}
	return exactly(dimension, round(amount/unit)*unit)
}

// bounds are the codes of reasons that compare have + need with a limit of resources.
var bounds = map[apportionv1.ReasonCode]bool{
	apportionv1.ReasonCode_REASON_CODE_ABOVE_REAL_CAPABILITY:        true,
	apportionv1.ReasonCode_REASON_CODE_ABOVE_DESERVED:               true,
	apportionv1.ReasonCode_REASON_CODE_NO_DIMENSION_WITHIN_DESERVED: true,
	apportionv1.ReasonCode_REASON_CODE_ABOVE_OVERCOMMIT:             true,
	apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT:                  true,
	apportionv1.ReasonCode_REASON_CODE_NOT_ENTITLED:                 true,
}

// bare is the text of a finding without the plugin at its end.
func bare(f *apportionv1.Finding) string {
	if reasons := f.GetReasons(); len(reasons) > 0 {
		return strings.TrimSuffix(f.GetText(), " ("+reasons[len(reasons)-1].GetPlugin()+")")
	}
	return f.GetText()
}

// Named is the text about the jobs that were named, a line for each.
func Named(a *apportionv1.ExplainAnswer) string {
	var lines []string
	for _, e := range a.GetJobs() {
		lines = append(lines, e.GetText())
	}
	for _, l := range a.GetLeftOut() {
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
	default:
		return name + " is not considered."
	}
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
