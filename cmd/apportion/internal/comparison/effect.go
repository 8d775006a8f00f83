package comparison

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/internal/quantity"
)

// Kind is a kind of effect.
type Kind string

// The kinds of effects, in the order in which they are shown.
const (
	QueueRemoved      Kind = "queue-removed"
	QueueAdded        Kind = "queue-added"
	JobRemoved        Kind = "job-removed"
	JobAdded          Kind = "job-added"
	BelowGuarantee    Kind = "below-guarantee"
	LessDeserved      Kind = "less-deserved"
	MoreDeserved      Kind = "more-deserved"
	LowerGuarantee    Kind = "lower-guarantee"
	HigherGuarantee   Kind = "higher-guarantee"
	LowerLimit        Kind = "lower-limit"
	HigherLimit       Kind = "higher-limit"
	Overused          Kind = "overused"
	NoLongerOverused  Kind = "no-longer-overused"
	LaterInOrder      Kind = "later-in-order"
	EarlierInOrder    Kind = "earlier-in-order"
	NoLongerAdmitted  Kind = "no-longer-admitted"
	Admitted          Kind = "admitted"
	NoLongerAllocated Kind = "no-longer-allocated"
	Allocated         Kind = "allocated"
	BlockedOtherwise  Kind = "blocked-otherwise"
	MoreEvictions     Kind = "more-evictions"
	FewerEvictions    Kind = "fewer-evictions"
	Moved             Kind = "moved"
)

// Kinds are all kinds.
var Kinds = []Kind{
	QueueRemoved, QueueAdded, JobRemoved, JobAdded, Moved, BelowGuarantee, LessDeserved, MoreDeserved, LowerGuarantee, HigherGuarantee,
	LowerLimit, HigherLimit, Overused, NoLongerOverused, LaterInOrder, EarlierInOrder, NoLongerAdmitted, Admitted, NoLongerAllocated,
	Allocated, BlockedOtherwise, MoreEvictions, FewerEvictions,
}

// Effect is one difference between two outcomes.
type Effect struct {
	Kind Kind `json:"kind"`
	// Queue or Job is the affected one; Job is namespace/name.
	Queue string `json:"queue,omitempty"`
	Job   string `json:"job,omitempty"`
	// Resource is the resource of an amount.
	Resource string `json:"resource,omitempty"`
	// Was and Is are formatted amounts, words or counts.
	Was string `json:"was"`
	Is  string `json:"is"`
	// Amounts are the amounts that Was and Is write, and the guarantee that Why does; nil if they write none.
	Amounts []float64 `json:"-"`
	// Why is the reason of the second outcome.
	Why string `json:"why,omitempty"`
	// Tasks are those that may be evicted in one outcome only.
	Tasks []string `json:"tasks,omitempty"`
}

// Effects returns what differs between two outcomes, by kind and then by name. Amounts of the resources for which shown is true are
// compared.
func Effects(was, is *Outcome, shown func(resource string) bool) []Effect {
	e := effects{shown: shown}
	for _, name := range union(was.Queues, is.Queues) {
		e.queue(name, was.Queues[name], is.Queues[name])
	}
	for _, name := range union(was.Jobs, is.Jobs) {
		e.job(name, was.Jobs[name], is.Jobs[name])
	}
	e.order(was, is)
	slices.SortStableFunc(e.found, func(a, b Effect) int {
		return cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind))
	})
	return e.found
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

type effects struct {
	shown func(string) bool
	found []Effect
}

func (e *effects) add(effect Effect) { e.found = append(e.found, effect) }

func (e *effects) queue(name string, was, is *Queue) {
	switch {
	case was == nil:
		e.add(Effect{Kind: QueueAdded, Queue: name, Was: "-", Is: "exists"})
		return
	case is == nil:
		e.add(Effect{Kind: QueueRemoved, Queue: name, Was: "exists", Is: "-"})
		return
	}
	e.amounts(name, LessDeserved, MoreDeserved, was.Deserved, is.Deserved)
	e.amounts(name, LowerGuarantee, HigherGuarantee, was.Guarantee, is.Guarantee)
	e.amounts(name, LowerLimit, HigherLimit, was.Limit, is.Limit)
	e.guarantee(name, was, is)
	if was.Overused != is.Overused {
		kind := Overused
		if was.Overused {
			kind = NoLongerOverused
		}
		e.add(Effect{Kind: kind, Queue: name, Was: yesOrNo(was.Overused), Is: yesOrNo(is.Overused), Why: is.Why})
	}
	e.evictions(name, was.Evictable, is.Evictable)
}

// amounts compares amounts by resource. A resource that is not listed is 0.
func (e *effects) amounts(queue string, less, more Kind, was, is map[string]float64) {
	for _, resource := range union(was, is) {
		x, y := was[resource], is[resource]
		if !e.shown(resource) || same(x, y) {
			continue
		}
		kind := more
		if y < x {
			kind = less
		}
		shown := quantity.Alike(resource, x, y)
		e.add(Effect{Kind: kind, Queue: queue, Resource: resource, Was: shown[0], Is: shown[1], Amounts: []float64{x, y}})
	}
}

// same reports whether two amounts differ by no more than rounding.
func same(x, y float64) bool {
	return x == y || math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y))
}

// guarantee finds resources of which a queue deserves less than its guarantee only in the second outcome.
func (e *effects) guarantee(name string, was, is *Queue) {
	for _, resource := range slices.Sorted(maps.Keys(is.Guarantee)) {
		below := func(q *Queue) bool {
			return q.Deserved[resource] < q.Guarantee[resource] && !same(q.Deserved[resource], q.Guarantee[resource])
		}
		if e.shown(resource) && below(is) && !below(was) {
			amounts := []float64{was.Deserved[resource], is.Deserved[resource], is.Guarantee[resource]}
			below := Effect{Kind: BelowGuarantee, Queue: name, Resource: resource, Amounts: amounts}
			below.write(quantity.Alike(resource, amounts...))
			e.add(below)
		}
	}
}

// write sets the texts of an effect to those of its amounts.
func (e *Effect) write(amounts []string) {
	const guarantee = 2
	if e.Was, e.Is = amounts[0], amounts[1]; len(amounts) > guarantee {
		e.Why = "guarantee " + amounts[guarantee]
	}
}

// InUnits returns effects whose amounts of one resource are all in one unit, as a table shows them. Amounts of one effect that differ get
// as many decimals as they need to look different.
func InUnits(list []Effect) []Effect {
	all := map[string][]float64{}
	for i := range list {
		all[list[i].Resource] = append(all[list[i].Resource], list[i].Amounts...)
	}
	units := map[string]quantity.Unit{}
	for resource, amounts := range all {
		units[resource] = quantity.UnitOfTable(resource, amounts...)
	}
	shown := slices.Clone(list)
	for i := range shown {
		e := &shown[i]
		if e.Amounts == nil {
			continue
		}
		unit := units[e.Resource]
		if unit.Format(e.Amounts[0]) == unit.Format(e.Amounts[1]) {
			unit = unit.Exactly(e.Amounts...)
		}
		texts := make([]string, len(e.Amounts))
		for k, amount := range e.Amounts {
			texts[k] = unit.Format(amount)
		}
		e.write(texts)
	}
	return shown
}

func (e *effects) evictions(queue string, was, is map[string]bool) {
	for _, side := range []struct {
		kind          Kind
		these, others map[string]bool
	}{{MoreEvictions, is, was}, {FewerEvictions, was, is}} {
		var only []string
		for _, task := range slices.Sorted(maps.Keys(side.these)) {
			if !side.others[task] {
				only = append(only, task)
			}
		}
		if len(only) > 0 {
			e.add(Effect{Kind: side.kind, Queue: queue, Was: strconv.Itoa(len(was)), Is: strconv.Itoa(len(is)), Tasks: only})
		}
	}
}

func (e *effects) job(name string, was, is *Job) {
	switch {
	case was == nil:
		e.add(Effect{Kind: JobAdded, Job: name, Was: "-", Is: "in queue " + is.Queue})
		return
	case is == nil:
		e.add(Effect{Kind: JobRemoved, Job: name, Was: "in queue " + was.Queue, Is: "-"})
		return
	}
	if was.Queue != is.Queue {
		e.add(Effect{Kind: Moved, Job: name, Was: "queue " + was.Queue, Is: "queue " + is.Queue})
	}
	e.verdict(name, NoLongerAdmitted, Admitted, was.Admission, is.Admission, is.AdmissionWhy)
	e.verdict(name, NoLongerAllocated, Allocated, was.Allocation, is.Allocation, is.AllocationWhy)
	if was.Blocked != is.Blocked && was.Blocked != "" && is.Blocked != "" {
		e.add(Effect{Kind: BlockedOtherwise, Job: name, Was: was.Blocked, Is: is.Blocked, Why: is.AllocationWhy})
	}
}

// verdict compares two verdicts, of which an empty one says nothing.
func (e *effects) verdict(job string, lost, gained Kind, was, is, why string) {
	if was == is || was == "" || is == "" {
		return
	}
	kind := gained
	if is == "no" || was == "yes" {
		kind = lost
	}
	e.add(Effect{Kind: kind, Job: job, Was: was, Is: is, Why: why})
}

// order compares the order of the queues that both outcomes rank. A queue that another one overtakes counts as later.
func (e *effects) order(was, is *Outcome) {
	var both []string
	for name, q := range is.Queues {
		if old := was.Queues[name]; old != nil && old.Rank > 0 && q.Rank > 0 {
			both = append(both, name)
		}
	}
	ranked := func(o *Outcome) []string {
		return slices.SortedFunc(slices.Values(both), func(a, b string) int { return cmp.Compare(o.Queues[a].Rank, o.Queues[b].Rank) })
	}
	before, after := ranked(was), ranked(is)
	slices.Sort(both)
	for _, name := range both {
		x, y := slices.Index(before, name), slices.Index(after, name)
		kind := LaterInOrder
		if y < x {
			kind = EarlierInOrder
		}
		if x != y {
			e.add(Effect{Kind: kind, Queue: name, Was: strconv.Itoa(x + 1), Is: strconv.Itoa(y + 1)})
		}
	}
}

// Words returns the displayed name of a kind.
func (k Kind) Words() string { return strings.ReplaceAll(string(k), "-", " ") }
