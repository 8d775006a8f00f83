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
	name, parent string
	object       *apportionv1.KueueCohort
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
	for _, c := range t.from.GetKueue().GetCohorts() {
		at := find(c.GetName())
		at.object, at.parent = c, c.GetParent()
		find(c.GetParent())
	}
	for _, q := range t.from.GetQueues() {
		find(q.GetKueue().GetCohort())
	}
	taken := map[string]bool{"root": true}
	for _, q := range t.from.GetQueues() {
		taken[q.GetName()] = true
	}
	for _, name := range t.names {
		as := name
		for taken[as] {
			as = "cohort-" + as
		}
		if taken[as] = true; as != name {
			t.note("Cohort %s becomes queue %s, because its name is taken", name, as)
		}
		t.cohorts[name].name = as
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

// terms are the quotas of an owner by resource, summed over flavors.
type terms struct {
	nominal, kept amounts
	// most is what may be used at most of the resources of which all flavors have a borrowing limit.
	most amounts
}

func termsOf(groups []*apportionv1.KueueResourceGroup) terms {
	out := terms{amounts{}, amounts{}, amounts{}}
	free := map[string]bool{}
	for _, g := range groups {
		for _, f := range g.GetFlavors() {
			for _, q := range f.GetResources() {
				name := q.GetName()
				out.nominal.add(name, q.GetNominal())
				if q.LendingLimit != nil {
					out.kept.add(name, max(0, q.GetNominal()-q.GetLendingLimit()))
				}
				out.most.add(name, q.GetNominal())
				out.most.add(name, q.GetBorrowingLimit())
				free[name] = free[name] || q.BorrowingLimit == nil
			}
		}
	}
	for name := range free {
		if free[name] {
			delete(out.most, name)
		}
	}
	return out
}

// makeQueues makes a queue of each ClusterQueue, and of each Cohort behind them.
func (t *translator) makeQueues() {
	scale := t.scale()
	for _, q := range t.from.GetQueues() {
		own := q.GetKueue()
		if own == nil {
			own = &apportionv1.KueueQueue{}
		}
		at := termsOf(own.GetGroups())
		name := q.GetName()
		if name == "root" {
			t.note("ClusterQueue root is the root of the queues here, which takes no jobs: rename it")
		}
		out := &apportionv1.Queue{
			Name: name, Weight: weight(own.Weight, scale), Deserved: t.resource(at.nominal), CreateTime: q.GetCreateTime(),
		}
		if own.GetStopped() || t.inactive(own) {
			out.State = apportionv1.QueueState_QUEUE_STATE_CLOSED
		}
		switch cohort := t.cohorts[own.GetCohort()]; cohort {
		case nil:
			// Alone, it neither lends nor borrows.
			out.Guarantee, out.Capability = t.resource(at.nominal), t.capability(at.nominal)
		default:
			out.Parent, out.Guarantee, out.Capability = cohort.name, t.resource(at.kept), t.capability(t.uncovered(at))
			if cohort.root != "" {
				cohort.sum.addAll(at.nominal)
				cohort.kept.addAll(at.kept)
			}
		}
		t.to.Queues = append(t.to.Queues, out)
	}
	for _, name := range t.names {
		if c := t.cohorts[name]; c.root != "" {
			c.sum.addAll(termsOf(c.object.GetGroups()).nominal)
		}
	}
	t.raise()
	alone := t.alone()
	for _, name := range t.names {
		c := t.cohorts[name]
		own := termsOf(c.object.GetGroups())
		out := &apportionv1.Queue{Name: c.name, Weight: weight(weightOf(c.object), scale), Deserved: t.resource(c.sum)}
		switch {
		case c.root == name && alone:
			// All there is belongs to this tree.
		case c.root == name:
			// Trees do not lend to each other.
			out.Guarantee, out.Capability = t.resource(c.sum), t.capability(c.sum)
		case c.parent != "":
			out.Parent = t.cohorts[c.parent].name
			kept := amounts{}
			kept.addAll(c.kept)
			kept.addAll(own.kept)
			out.Guarantee, out.Capability = t.resource(kept), t.resource(t.limited(c, own))
		}
		t.to.Queues = append(t.to.Queues, out)
	}
}

// inactive reports whether Kueue admits nothing in a queue because of a flavor or an admission check.
func (t *translator) inactive(q *apportionv1.KueueQueue) bool {
	for _, g := range q.GetGroups() {
		for _, f := range g.GetFlavors() {
			if t.flavors[f.GetName()] == nil {
				return true
			}
		}
	}
	return slices.ContainsFunc(q.GetChecks(), func(name string) bool { return !t.active[name] })
}

// alone reports whether all queues are below one cohort.
func (t *translator) alone() bool {
	roots := map[string]bool{}
	for _, q := range t.from.GetQueues() {
		name := q.GetKueue().GetCohort()
		if name == "" {
			return false
		}
		roots[t.cohorts[name].root] = true
	}
	return len(roots) == 1
}

func weightOf(c *apportionv1.KueueCohort) *float64 {
	if c == nil {
		return nil
	}
	return c.Weight
}

// capability returns amounts as a capability that is 0 for each resource that is not listed: without quota a resource cannot be used. There
// is none for unlimited amounts.
func (t *translator) capability(a amounts) *apportionv1.Resource {
	all := amounts{}
	for _, name := range t.named {
		all[name] = a[name]
	}
	return t.resource(all)
}

// uncovered returns what a queue with a cohort may use at most: unlimited for resources that it lists without a borrowing limit.
func (t *translator) uncovered(own terms) amounts {
	most := amounts{}
	for name := range own.nominal {
		most[name] = unlimited
	}
	maps.Copy(most, own.most)
	return most
}

// limited returns what a cohort may use at most, of the resources of which it has borrowing limits only.
func (t *translator) limited(c *cohort, own terms) amounts {
	most := amounts{}
	for name, amount := range own.most {
		most.add(name, c.sum[name])
		most.add(name, amount)
		if most[name] != unlimited {
			most[name] -= own.nominal[name]
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
	for _, c := range t.from.GetKueue().GetCohorts() {
		all = append(all, c.Weight)
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
