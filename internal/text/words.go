package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/visible"
)

// Words are the short texts that the command line and the page both show, by the names of the contract's values that they say, or by names
// of their own. Say fills what is in braces. The page has the same table in ui/src/core/words.ts, which a test writes and compares.
var Words = map[string]string{
	// How a job fares: by the check that blocks it, or else by the verdict.
	"CHECK_KIND_ADMISSION":         "waits outside its queue",
	"CHECK_KIND_TASKS":             "its tasks cannot be scheduled",
	"CHECK_KIND_QUEUE":             "its queue is not served",
	"CHECK_KIND_SHARE":             "its queue may not use more",
	"CHECK_KIND_NODES":             "waits for room",
	"CHECK_KIND_ORDER":             "waits behind others",
	"CHECK_KIND_FEASIBILITY":       "can never run",
	"waitsForNode":                 "waits for a node",
	"PENDING_VERDICT_BLOCKED":      "waits",
	"PENDING_VERDICT_IN_TURN":      "waits for its turn",
	"PENDING_VERDICT_COMPLETE":     "waits for nothing",
	"PENDING_VERDICT_UNDETERMINED": "not known for certain",

	"VICTIM_RETURN_SERVED_FIRST": "served first",
	"VICTIM_RETURN_TAKES_BACK":   "takes back",

	"PROPORTION_END_NOTHING_REMAINS": "nothing is left to divide",
	"PROPORTION_END_NO_WEIGHT":       "every queue that has a weight is met",
	"PROPORTION_END_UNCHANGED":       "the last round changed nothing",

	"FAIR_CASE_GUARANTEE": "the guarantees do not fit and are cut in proportion",
	"FAIR_CASE_DESERVED":  "the guarantees fit; the deserved amounts do not and are cut in proportion",
	"FAIR_CASE_WEIGHT":    "by weight",

	// What holds a share of fair where it is.
	"heldUseless":   "no use for it",
	"heldLevel":     "the level",
	"heldWeight":    "too little weight",
	"heldDemand":    "demand or limit",
	"heldDeserved":  "deserved",
	"heldGuarantee": "guarantee",

	// Since when, and how far back that is known.
	"waitsSince":   "It waits since {since}",
	"waitedUntil":  "It waits no longer: it waited from {since} until {end}",
	"goneSince":    "It is no longer in the cluster: it waited from {since} until {end}",
	"orLonger":     " or longer",
	"didNotWait":   "did not wait",
	"merged":       " (mostly; {causes} merged)",
	"noneWaits":    "None of its jobs waits",
	"jobsWait":     "Jobs wait since {since}",
	"unserved":     ", not served since {since}",
	"known":        "Known since {begins}",
	"knownStart":   ", when this server started",
	"knownFile":    ", from the file of this server, which started at {started}",
	"knownGap":     "; not from {from} to {until}",
	"knownGaps":    " and {times} before",
	"comesNext":    "What comes next, if nothing else changes",
	"inQueueOrder": "number {rank} in queue order",
	"notServed":    "not served now",

	// What a reservation keeps of a node, for what, and when.
	"reservedWhole":   "the whole node",
	"reservedFor":     " for {what}",
	"reservedForBoth": " for {holder} ({reason})",
	"reservedUntil":   " until {until}",
	"reservedFrom":    " from {from} on",
	"reservedDuring":  " from {from} to {until}",

	"notConsidered": "not considered",
	"letsRun":       "{changes} that would let it run",
	"noChange":      "No queue would deserve more or less",
	"noDivision":    "No plugin of the policy divides among queues",
	"noShare":       "Without jobs, so without a share: ",
	"withMemory": "With memory (half-life {half}, since {since}), what becomes free goes first to queues that hold less than " +
		"FIRST UP TO; USED and PART are of what a queue and its siblings used and may have",
}

// Say returns the words of a name with values in place of what is in braces: pairs of a name and its value.
func Say(name string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		pairs[i] = "{" + pairs[i] + "}"
	}
	return strings.NewReplacer(pairs...).Replace(Words[name])
}

// Word says a value of the contract.
func Word(value fmt.Stringer) string { return Words[value.String()] }

// Rank says which number a queue has in the order in which queues are served, beginning with 1.
func Rank(rank uint32) string {
	return Say("inQueueOrder", "rank", strconv.FormatUint(uint64(rank)+1, 10))
}

// Fares says in a few words how a job fares.
func Fares(e *apportionv1.Explanation) string {
	if e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED && e.Blocking != nil {
		blocking := e.GetFindings()[e.GetBlocking()]
		if Barred(blocking) {
			return Say("waitsForNode")
		}
		if words := Word(blocking.GetCheck()); words != "" {
			return words
		}
	}
	return Word(e.GetVerdict())
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
	return Sentence(amounts(names, resource))
}

// amounts is Amounts for a text that Sentence completes.
func amounts(names Names, resource *apportionv1.Resource) string {
	var parts []string
	for i, index := range resource.GetDimensions() {
		if i >= len(resource.GetAmounts()) {
			break
		}
		name, amount := names.Dimension(index), resource.GetAmounts()[i]
		if amount != 0 && name != "pods" {
			parts = append(parts, Figure(name, amount)+" "+name)
		}
	}
	if len(parts) == 0 {
		return "no resources"
	}
	return strings.Join(parts, ", ")
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

func plural(n int, noun string) string { return plural2(n, noun, noun+"s") }

func plural2(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// An amount in a text that is not complete is opened, followed by its dimension and its number, and closed. Sentence replaces it when all
// amounts are known that are read with it. exactMark opens an amount that must be read as the same number.
const (
	mark, exactMark = "\x01", "\x02"
	numberMark      = "\x03"
	closeMark       = "\x04"
)

// Figure is an amount of a dimension in a text that Sentence completes.
func Figure(dimension string, amount float64) string { return marked(mark, dimension, amount) }

// exactly is an amount of which all decimals are written.
func exactly(dimension string, amount float64) string { return marked(exactMark, dimension, amount) }

func marked(opening, dimension string, amount float64) string {
	return opening + dimension + numberMark + strconv.FormatFloat(amount, 'g', -1, 64) + closeMark
}

// Sentence returns a text with its amounts, all amounts of a dimension in one unit, and with what cannot be printed made visible.
func Sentence(text string) string {
	sentences(&text)
	return text
}

// sentences is Sentence for texts that are read together: they have one unit for each dimension.
func sentences(texts ...*string) {
	var all, exact map[string][]float64
	for _, text := range texts {
		if !strings.ContainsAny(*text, mark+exactMark) {
			continue
		}
		eachAmount(*text, func(opening, dimension string, amount float64) string {
			if all == nil {
				all, exact = map[string][]float64{}, map[string][]float64{}
			}
			all[dimension] = append(all[dimension], amount)
			if opening == exactMark {
				exact[dimension] = append(exact[dimension], amount)
			}
			return ""
		})
	}
	units := make(map[string]quantity.Unit, len(all))
	for dimension, list := range all {
		units[dimension] = quantity.UnitOfText(dimension, list...)
		if len(exact[dimension]) > 0 {
			units[dimension] = units[dimension].Exactly(exact[dimension]...)
		}
	}
	for _, text := range texts {
		*text = visible.Text(filled(*text, units))
	}
}

// filled returns a text with its amounts. Only a text in which one must be read as the same number shows thousandths.
func filled(text string, units map[string]quantity.Unit) string {
	if len(units) == 0 {
		return text
	}
	exact := map[string]bool{}
	eachAmount(text, func(opening, dimension string, _ float64) string {
		exact[dimension] = exact[dimension] || opening == exactMark
		return ""
	})
	return eachAmount(text, func(_, dimension string, amount float64) string {
		unit := units[dimension]
		if !exact[dimension] {
			unit = unit.Rounded()
		}
		return unit.Format(amount)
	})
}

// eachAmount returns a text with every amount replaced. A name of a cluster that only looks like an amount stays as it is.
func eachAmount(text string, replace func(opening, dimension string, amount float64) string) string {
	var out strings.Builder
	for {
		start := strings.IndexAny(text, mark+exactMark)
		if start < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:start])
		inner, rest, closed := strings.Cut(text[start+1:], closeMark)
		dimension, number, _ := strings.Cut(inner, numberMark)
		amount, err := strconv.ParseFloat(number, 64)
		if !closed || err != nil {
			out.WriteString(text[start : start+1])
			text = text[start+1:]
			continue
		}
		out.WriteString(replace(text[start:start+1], dimension, amount))
		text = rest
	}
}
