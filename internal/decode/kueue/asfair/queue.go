package asfair

import (
	"cmp"
	"maps"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// cohort is a Cohort that becomes a queue.
type cohort struct {
	parent string
	// object is nil for one that is only named.
	object *apportionv1.KueueQueue
	// sum has the quota of the cohort and of all below it, kept what the queues below it do not lend; both are empty without a root.
	sum, kept amounts
	// root is the highest cohort above, or the cohort itself; empty in a cycle, and below one.
	root string
	// depth is the number of cohorts from the root to the cohort.
	depth int
}

// listCohorts finds all cohorts, those that are only named included.
func (t *translator) listCohorts() {
	find := func(name string) *cohort {
		if name == "" || t.cohorts[name] != nil {
			return t.cohorts[name]
		}
		t.cohorts[name] = &cohort{sum: amounts{}, kept: amounts{}}
		t.names = append(t.names, name)
		return t.cohorts[name]
	}
	for _, q := range t.from.GetQueues() {
		if own := q.GetKueue(); own.GetCohort() {
			at := find(q.GetName())
			at.object, at.parent = own, q.GetParent()
		}
		find(q.GetParent())
	}
	t.findRoots()
}

// findRoots sets the root and the depth of each cohort. A cohort whose parent has them ends a way, so that each is looked at once.
func (t *translator) findRoots() {
	walked := map[string]bool{}
	for _, name := range t.names {
		var way []string
		for ; name != "" && !walked[name]; name = t.cohorts[name].parent {
			walked[name] = true
			way = append(way, name)
		}
		root, depth := "", 0
		switch {
		case name != "":
			// Where the way meets itself it is a cycle, which has no root.
			root, depth = t.cohorts[name].root, t.cohorts[name].depth
		case len(way) > 0:
			root = way[len(way)-1]
		}
		for _, at := range slices.Backward(way) {
			depth++
			t.cohorts[at].root, t.cohorts[at].depth = root, depth
		}
	}
}

// raise adds what each cohort and the queues below it have to the cohorts above, the lowest cohorts first.
func (t *translator) raise() {
	names := slices.Clone(t.names)
	slices.SortStableFunc(names, func(l, r string) int { return cmp.Compare(t.cohorts[r].depth, t.cohorts[l].depth) })
	for _, name := range names {
		if c := t.cohorts[name]; c.root != "" && c.parent != "" {
			above := t.cohorts[c.parent]
			above.sum.addAll(c.sum)
			above.kept.addAll(c.kept)
		}
	}
}

// terms are the quotas of an owner by dimension, summed over flavors.
type terms struct {
	nominal, kept amounts
	// most is what may be used at most of the dimensions of which all flavors have a borrowing limit.
	most amounts
}

func termsOf(quotas []*apportionv1.Quota) terms {
	out := terms{amounts{}, amounts{}, amounts{}}
	free := map[uint32]bool{}
	for _, q := range quotas {
		out.nominal.add(q.GetNominal(), 1)
		out.most.add(q.GetNominal(), 1)
		out.most.add(q.GetBorrowingLimit(), 1)
		lending := amounts{}
		lending.add(q.GetLendingLimit(), 1)
		for i, d := range q.GetNominal().GetDimensions() {
			free[d] = free[d] || !slices.Contains(q.GetBorrowingLimit().GetDimensions(), d)
			if lent, limited := lending[d]; limited && !math.IsInf(lent, 1) {
				out.kept[d] += max(0, q.GetNominal().GetAmounts()[i]-lent)
			}
		}
	}
	maps.DeleteFunc(out.most, func(d uint32, _ float64) bool { return free[d] })
	return out
}

// makeQueues makes a queue of each ClusterQueue and Cohort, and of the cohorts that are only named behind them.
func (t *translator) makeQueues() {
	scale := t.scale()
	for _, q := range t.from.GetQueues() {
		var out *apportionv1.Queue
		if !q.GetKueue().GetCohort() {
			out = t.clusterQueue(q, scale)
		}
		t.to.Queues = append(t.to.Queues, out)
	}
	for _, name := range t.names {
		if c := t.cohorts[name]; c.root != "" {
			c.sum.addAll(termsOf(c.object.GetQuotas()).nominal)
		}
	}
	t.raise()
	alone, made := t.alone(), map[string]bool{}
	for i, q := range t.from.GetQueues() {
		if name := q.GetName(); q.GetKueue().GetCohort() {
			t.to.Queues[i], made[name] = t.cohortQueue(name, alone, scale), true
		}
	}
	for _, name := range t.names {
		if !made[name] {
			t.to.Queues = append(t.to.Queues, t.cohortQueue(name, alone, scale))
		}
	}
}

// clusterQueue makes a queue of a ClusterQueue, and adds its quota to that of its cohort.
func (t *translator) clusterQueue(q *apportionv1.Queue, scale float64) *apportionv1.Queue {
	own := q.GetKueue()
	if own == nil {
		own = &apportionv1.KueueQueue{}
	}
	at := termsOf(own.GetQuotas())
	if q.GetName() == "root" {
		t.note("ClusterQueue root is the root of the queues here, which takes no jobs: rename it")
	}
	out := &apportionv1.Queue{
		Name: q.GetName(), Parent: q.GetParent(), Weight: weight(own.Weight, scale), Deserved: resource(at.nominal),
		CreateTime: q.GetCreateTime(),
	}
	if own.GetStopped() || t.inactive(own) {
		out.State = apportionv1.QueueState_QUEUE_STATE_CLOSED
	}
	cohort := t.cohorts[q.GetParent()]
	if cohort == nil {
		// Alone, it neither lends nor borrows.
		out.Guarantee, out.Capability = resource(at.nominal), t.capability(at.nominal)
		return out
	}
	out.Guarantee, out.Capability = resource(at.kept), t.capability(uncovered(at))
	if cohort.root != "" {
		cohort.sum.addAll(at.nominal)
		cohort.kept.addAll(at.kept)
	}
	return out
}

// cohortQueue makes a queue of a cohort.
func (t *translator) cohortQueue(name string, alone bool, scale float64) *apportionv1.Queue {
	c := t.cohorts[name]
	own := c.object
	if own == nil {
		own = &apportionv1.KueueQueue{}
	}
	at := termsOf(own.GetQuotas())
	out := &apportionv1.Queue{Name: name, Weight: weight(own.Weight, scale), Deserved: resource(c.sum)}
	if c.root == name && own.Weight != nil && own.GetWeight() == 0 {
		// The weight of a root decides nothing in Kueue; that of one that is only named is 0.
		out.Weight = nil
	}
	switch {
	case c.root == name && alone:
		// All there is belongs to this tree.
	case c.root == name:
		// Trees do not lend to each other.
		out.Guarantee, out.Capability = resource(c.sum), t.capability(c.sum)
	case c.parent != "":
		out.Parent = c.parent
		kept := amounts{}
		kept.addAll(c.kept)
		kept.addAll(at.kept)
		out.Guarantee, out.Capability = resource(kept), resource(limited(c, at))
	}
	return out
}

// inactive reports whether Kueue admits nothing in a queue because of a flavor or an admission check.
func (t *translator) inactive(q *apportionv1.KueueQueue) bool {
	return slices.ContainsFunc(q.GetQuotas(), func(o *apportionv1.Quota) bool { return t.flavors[o.GetNodeSet()] == nil }) ||
		slices.ContainsFunc(q.GetChecks(), func(c *apportionv1.KueueCheck) bool { return !c.GetActive() })
}

// alone reports whether all queues are below one cohort.
func (t *translator) alone() bool {
	roots := map[string]bool{}
	for _, q := range t.from.GetQueues() {
		switch {
		case q.GetKueue().GetCohort():
		case q.GetParent() == "":
			return false
		default:
			roots[t.cohorts[q.GetParent()].root] = true
		}
	}
	return len(roots) == 1
}

// capability returns amounts as a capability that is 0 for each dimension that is not listed: without quota a resource cannot be used.
// There is none for unlimited amounts.
func (t *translator) capability(a amounts) *apportionv1.Resource {
	all := amounts{}
	for d := range t.named {
		all[d] = a[d]
	}
	return resource(all)
}

// uncovered returns what a queue with a cohort may use at most: unlimited for dimensions that it lists without a borrowing limit.
func uncovered(own terms) amounts {
	most := amounts{}
	for d := range own.nominal {
		most[d] = math.Inf(1)
	}
	maps.Copy(most, own.most)
	return most
}

// limited returns what a cohort may use at most, of the dimensions of which it has borrowing limits only.
func limited(c *cohort, own terms) amounts {
	most := amounts{}
	for d, amount := range own.most {
		if most[d] = c.sum[d] + amount; !math.IsInf(most[d], 1) {
			most[d] -= own.nominal[d]
		}
	}
	return most
}

// scale returns by what fair weights are multiplied so that they are whole.
func (t *translator) scale() float64 {
	const fine = 1000
	for _, w := range t.weights() {
		if w != nil && *w != math.Trunc(*w) {
			t.note("fair weights are multiplied by %d and rounded, because weights are whole numbers here", fine)
			return fine
		}
	}
	return 1
}

func (t *translator) weights() []*float64 {
	var all []*float64
	for _, q := range t.from.GetQueues() {
		if own := q.GetKueue(); own != nil {
			all = append(all, own.Weight)
		}
	}
	return all
}

// weight returns a fair weight as a whole number; nil for 1.
func weight(fair *float64, scale float64) *uint32 {
	w := 1.0
	if fair != nil {
		w = *fair
	}
	if w *= scale; w == 1 {
		return nil
	}
	return new(uint32(min(math.MaxInt32, math.Round(w))))
}
