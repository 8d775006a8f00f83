package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/visible"
)

// maxLacks is the number of reasons, and of victims, that a sentence lists.
const maxLacks = 4

var (
	kueueInactive = map[apportionv1.KueueInactivity]string{
		apportionv1.KueueInactivity_KUEUE_INACTIVITY_STOPPED:          "it is stopped",
		apportionv1.KueueInactivity_KUEUE_INACTIVITY_FLAVOR_NOT_FOUND: "flavor %s of its quota does not exist",
		apportionv1.KueueInactivity_KUEUE_INACTIVITY_CHECK_NOT_FOUND:  "admission check %s does not exist",
		apportionv1.KueueInactivity_KUEUE_INACTIVITY_CHECK_INACTIVE:   "admission check %s is not active",
		apportionv1.KueueInactivity_KUEUE_INACTIVITY_COHORT_CYCLE:     "its cohort is in a cycle of cohorts, or below one",
	}
	kueueWithheld = map[apportionv1.KueueWithheld]string{
		apportionv1.KueueWithheld_KUEUE_WITHHELD_NAMESPACE:   "its queue does not admit jobs of its namespace",
		apportionv1.KueueWithheld_KUEUE_WITHHELD_ABOVE_LIMIT: "a container requests more than its limit",
		apportionv1.KueueWithheld_KUEUE_WITHHELD_CHECK:       "an admission check failed or asks for a retry",
		apportionv1.KueueWithheld_KUEUE_WITHHELD_LOCAL_QUEUE: "its local queue is stopped",
		apportionv1.KueueWithheld_KUEUE_WITHHELD_BACKOFF:     "it waits for the time of its next attempt",
		apportionv1.KueueWithheld_KUEUE_WITHHELD_INACTIVE:    "it is not active (spec.active is false)",
	}
	kueueUnjudged = map[apportionv1.KueueUnjudged]string{
		apportionv1.KueueUnjudged_KUEUE_UNJUDGED_TOPOLOGY:        "placement by topology",
		apportionv1.KueueUnjudged_KUEUE_UNJUDGED_CHECKS:          "admission checks",
		apportionv1.KueueUnjudged_KUEUE_UNJUDGED_SLICE:           "workload slices",
		apportionv1.KueueUnjudged_KUEUE_UNJUDGED_RESOURCE_CLAIMS: "claims for devices",
		apportionv1.KueueUnjudged_KUEUE_UNJUDGED_GATES:           "preemption gates",
	}
	kueueReasons = map[apportionv1.KueueVictimReason]string{
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_CLUSTER_QUEUE:                  "by priority in its own queue",
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_COHORT_RECLAMATION:             "to reclaim quota in the cohort",
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_COHORT_RECLAIM_WHILE_BORROWING: "by priority in the cohort, to borrow",
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_COHORT_FAIR_SHARING:            "by fair sharing in the cohort",
	}
	kueueNames = map[apportionv1.KueueVictimReason]string{
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_CLUSTER_QUEUE:                  "InClusterQueue",
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_COHORT_RECLAMATION:             "InCohortReclamation",
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_COHORT_RECLAIM_WHILE_BORROWING: "InCohortReclaimWhileBorrowing",
		apportionv1.KueueVictimReason_KUEUE_VICTIM_REASON_IN_COHORT_FAIR_SHARING:            "InCohortFairSharing",
	}
	kueueDecisions = map[apportionv1.KueueDecision]string{
		apportionv1.KueueDecision_KUEUE_DECISION_OVERLAPS:         "In this cycle an earlier job claims one of the same victims.",
		apportionv1.KueueDecision_KUEUE_DECISION_NO_LONGER_FITS:   "In this cycle earlier jobs take the room.",
		apportionv1.KueueDecision_KUEUE_DECISION_WAITS_FOR_OTHERS: "It fits once the victims of earlier jobs have left.",
	}
)

// Kueue tells in a few sentences what the policy kueue says of a job.
func Kueue(names Names, job uint32, n *apportionv1.KueueNomination) string {
	name, fits := "Job "+names.job(job), "fits"
	var sentences []string
	say := func(format string, args ...any) { sentences = append(sentences, fmt.Sprintf(format, args...)) }
	switch inactive := kueueInactive[n.GetInactive()]; {
	case n.GetAdmitted():
		say("%s holds quota.", name)
	case inactive != "":
		if strings.Contains(inactive, "%s") {
			inactive = fmt.Sprintf(inactive, visible.Text(n.GetMissing()))
		}
		say("%s waits because its queue is inactive: %s.", name, inactive)
	case n.GetWithheld() != apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED:
		say("%s is not nominated: %s.", name, orUnknown(kueueWithheld[n.GetWithheld()]))
		name, fits = "Apart from that, it", "would fit"
	case n.GetMode() == apportionv1.KueueMode_KUEUE_MODE_UNSPECIFIED:
		say("%s is not judged.", name)
	case n.Behind != nil:
		say("%s waits behind %s, which comes first in its queue and is not admitted: the queue's strategy is StrictFIFO.",
			name, names.job(n.GetBehind()))
		name, fits = "As the first, it", "would fit"
	}
	switch n.GetMode() {
	case apportionv1.KueueMode_KUEUE_MODE_FIT:
		say("%s %s%s: %s.", name, fits, borrowing(n), kueueFlavors(n))
	case apportionv1.KueueMode_KUEUE_MODE_PREEMPT, apportionv1.KueueMode_KUEUE_MODE_DEFERRED_FIT:
		say("%s waits for quota in use: %s.", name, kueueLacks(n))
		sentences = append(sentences, kueueVictims(n))
	case apportionv1.KueueMode_KUEUE_MODE_NO_FIT:
		say("%s does not fit: %s.", name, kueueLacks(n))
	default:
	}
	if local := n.GetLocal(); local != nil {
		sentences = append(sentences, kueueLocal(local, n.EntryPenalty))
	}
	if decided := kueueDecisions[n.GetDecision()]; decided != "" {
		sentences = append(sentences, decided)
	}
	if left := kueueLeft(n); left != "" {
		sentences = append(sentences, left)
	}
	return Sentence(strings.Join(sentences, " "))
}

// kueueLocal says by which usage a workload comes in order, and what its admission adds.
func kueueLocal(l *apportionv1.KueueLocalShare, entry *float64) string {
	name := visible.Text(strings.TrimPrefix(l.GetNamespace()+"/"+l.GetName(), "/"))
	said := fmt.Sprintf("In its queue jobs come by the usage of their local queues: that of %s is %s", name, KueueUsage(l.GetUsage()))
	if l.GetPenalty() != 0 || l.GetWeight() != 1 {
		said += fmt.Sprintf(" (%s consumed, %s entry penalty, weight %s)",
			KueueUsage(l.GetConsumed()), KueueUsage(l.GetPenalty()), KueueUsage(l.GetWeight()))
	}
	if entry != nil {
		said += fmt.Sprintf(". With the half-life of %s its admission adds an entry penalty of %s",
			duration.Format(time.Duration(l.GetHalfLife())), KueueUsage(*entry))
	}
	return said + "."
}

// KueueUsage returns a weighted usage with at most four digits after the point.
func KueueUsage(usage float64) string {
	const digits = 1e4
	if math.IsInf(usage, 1) {
		return "infinite"
	}
	return strconv.FormatFloat(math.Round(usage*digits)/digits, 'f', -1, 64)
}

// kueueLeft says what is left to Kueue; "" if nothing is.
func kueueLeft(n *apportionv1.KueueNomination) string {
	var unjudged []string
	for _, u := range n.GetUnjudgedParts() {
		unjudged = append(unjudged, orUnknown(kueueUnjudged[u]))
	}
	if len(unjudged) == 0 {
		return ""
	}
	return fmt.Sprintf("Not judged, and left to Kueue: %s.", strings.Join(unjudged, ", "))
}

// orUnknown returns words for a value of a newer server.
func orUnknown(words string) string {
	if words == "" {
		return "for a reason that this program does not know"
	}
	return words
}

func borrowing(n *apportionv1.KueueNomination) string {
	fewer := ""
	if n.GetPartial() {
		fewer = " with fewer pods"
	}
	if n.GetBorrows() == 0 {
		return fewer
	}
	return fewer + " by borrowing from the cohort"
}

// kueueFlavors lists the flavors of all sets.
func kueueFlavors(n *apportionv1.KueueNomination) string {
	var sets []string
	for _, p := range n.GetPodSets() {
		var flavors []string
		for _, f := range p.GetFlavors() {
			amount := kueueAmount(f.GetResource(), f.GetAmount())
			flavors = append(flavors, fmt.Sprintf("%s in flavor %s", amount, visible.Text(f.GetFlavor())))
		}
		if len(flavors) == 0 {
			flavors = []string{"no quota needed"}
		}
		pods := Count(int(p.GetCount()), "pod")
		sets = append(sets, fmt.Sprintf("%s of %s with %s", pods, visible.Text(p.GetName()), strings.Join(flavors, ", ")))
	}
	return strings.Join(sets, "; ")
}

// kueueLacks lists what speaks against a fit, of each set that does not fit.
func kueueLacks(n *apportionv1.KueueNomination) string {
	var lacks []string
	for _, p := range n.GetPodSets() {
		if p.GetMode() == apportionv1.KueueMode_KUEUE_MODE_FIT {
			continue
		}
		for _, l := range p.GetLacks() {
			lacks = append(lacks, fmt.Sprintf("%s: %s", visible.Text(p.GetName()), kueueLack(l)))
		}
	}
	if len(lacks) == 0 {
		return "no pod set has a flavor"
	}
	if more := len(lacks) - maxLacks; more > 0 {
		lacks = append(lacks[:maxLacks], Count(more, "more reason"))
	}
	return strings.Join(lacks, "; ")
}

func kueueLack(l *apportionv1.KueueLack) string {
	flavor, resource := visible.Text(l.GetFlavor()), visible.Text(l.GetResource())
	limit, wanted := kueueAmount(l.GetResource(), l.GetLimit()), kueueAmount(l.GetResource(), l.GetRequested())
	if l.GetUsed() > 0 {
		wanted += " beside " + kueueAmount(l.GetResource(), l.GetUsed()) + " of earlier pod sets"
	}
	switch l.GetKind() {
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_FLAVOR_MISSING:
		return "flavor " + flavor + " does not exist"
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_TAINT:
		return "its pods do not tolerate the taint " + visible.Text(l.GetDetail()) + " of flavor " + flavor
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_LABELS:
		return "its pods do not select flavor " + flavor
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_MALFORMED:
		return "the node affinity of its pods is malformed"
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_NOT_COVERED:
		return "no resource group of its queue covers " + resource
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_ABOVE_CAPACITY:
		return fmt.Sprintf("flavor %s: %s, and the queue can never have more than %s", flavor, wanted, limit)
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_ABOVE_AVAILABLE:
		return fmt.Sprintf("flavor %s: %s, and %s can be used now", flavor, wanted, limit)
	case apportionv1.KueueLackKind_KUEUE_LACK_KIND_OTHER_NOMINATED:
		return "flavor " + flavor + " was not nominated in this cycle"
	default:
		return orUnknown("")
	}
}

// KueueReason says by which rule a job is evicted, with Kueue's name of the rule.
func KueueReason(r apportionv1.KueueVictimReason) string {
	if kueueReasons[r] == "" {
		return orUnknown("")
	}
	return kueueNames[r] + ": " + kueueReasons[r]
}

// kueueVictims says which jobs a job evicts.
func kueueVictims(n *apportionv1.KueueNomination) string {
	victims := n.GetVictims()
	if len(victims) == 0 {
		return "No job may be evicted for it."
	}
	var listed []string
	for _, v := range victims[:min(maxLacks, len(victims))] {
		listed = append(listed, fmt.Sprintf("%s (%s)", visible.Text(v.GetName()), orUnknown(kueueReasons[v.GetReason()])))
	}
	if more := len(victims) - maxLacks; more > 0 {
		listed = append(listed, Count(more, "more job"))
	}
	return fmt.Sprintf("It would evict %s: %s.", Count(len(victims), "job"), strings.Join(listed, ", "))
}

// kueueAmount is an amount with the name of the resource, for a text that Sentence completes.
func kueueAmount(resource string, amount float64) string {
	if math.IsInf(amount, 1) {
		return quantity.Unlimited + " " + resource
	}
	return Figure(resource, amount) + " " + resource
}
