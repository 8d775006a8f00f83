package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// derived is why the derivations are not compared with the other fields of a plugin's shares.
const derived = "a derivation of some queues"

// derivations checks how a plugin came by its shares, if all queues are explained.
func (v *volcano) derivations(field string, step *apportionv1.SharesStep) {
	e := step.GetExplain()
	if v.plugin.GetProportion() != nil && (e == nil || field != ofProportion) ||
		v.plugin.GetCapacity() != nil && (e == nil || field != ofCapacity) {
		v.wrong("%s has a derivation that was not asked for", v.path)
	}
	switch {
	case e == nil:
	case v.tree && !v.isTree():
		v.omit(v.path+".capacity", treeRule)
	case e.GetQueues() != nil || e.GetJobs() != nil || e.GetTasks() != nil:
		v.omit(v.path+"."+field, derived)
	case field == ofProportion:
		v.compare(v.path+".proportion", orEmpty(v.plugin.GetProportion()), v.rounds(orEmpty(v.plugin.GetProportion())), nil)
	case field == ofCapacity:
		v.compare(v.path+".capacity", orEmpty(v.plugin.GetCapacity()), v.levels(), v.beyondLevels())
	}
}

// rounds are the rounds of proportion, each computed from the one before as it is given; see docs/semantics.md under proportion.
func (v *volcano) rounds(got *apportionv1.ProportionDerivation) *apportionv1.ProportionDerivation {
	reserved := amounts{}
	for _, q := range v.GetQueues() {
		plus(reserved, v.amounts(q.GetGuarantee()), 1)
	}
	want := &apportionv1.ProportionDerivation{Total: v.whole().resource(), TotalGuarantee: reserved.resource()}
	remaining, deserved, unmet := v.whole(), map[int]amounts{}, v.busy()
	scale := remaining
	for _, q := range unmet {
		deserved[q] = amounts{uint32(v.byDimension[0]): 0, uint32(v.byDimension[1]): 0}
	}
	for _, r := range got.GetRounds() {
		if want.End = v.end(unmet, want.GetEnd()); want.GetEnd() != 0 {
			break
		}
		round := &apportionv1.ProportionRound{Remaining: closest(remaining, amountsOf(r.GetRemaining()), scale).resource()}
		scale = amountsOf(r.GetRemaining())
		for _, q := range unmet {
			round.TotalWeight += uint64(v.weight(q))
		}
		left, still := amountsOf(round.GetRemaining()), []int(nil)
		maps.DeleteFunc(left, func(d uint32, _ float64) bool { return d >= uint32(len(v.dims)) })
		for i, q := range unmet {
			given := &apportionv1.ProportionShare{}
			if i < len(r.GetShares()) {
				given = orEmpty(r.GetShares()[i])
			}
			round.Shares = append(round.GetShares(), v.step(r, q, deserved[q], given))
			if !given.GetMet() {
				still = append(still, q)
			}
			for d, x := range amountsOf(given.GetDeserved()) {
				if d < uint32(len(v.dims)) {
					left[d] -= max(0, x-deserved[q][d])
				}
			}
			deserved[q] = amountsOf(given.GetDeserved())
		}
		want.Rounds = append(want.GetRounds(), round)
		unmet = still
		if remaining = v.rest(left); v.nothing(remaining) {
			want.End = apportionv1.ProportionEnd_PROPORTION_END_NOTHING_REMAINS
		} else if maps.Equal(remaining, amountsOf(r.GetRemaining())) {
			want.End = apportionv1.ProportionEnd_PROPORTION_END_UNCHANGED
		}
	}
	if want.End = v.end(unmet, want.GetEnd()); want.GetEnd() == 0 {
		v.wrong("%s.proportion.rounds ends, but something remains, and queues with a weight are not met", v.path)
	}
	for _, q := range v.busy() {
		if share := v.given[uint32(q)]; share != nil && share.GetDeserved() != nil {
			v.resource(v.path+": deserved of "+v.GetQueues()[q].GetName(), share.GetDeserved(), deserved[q].resource())
		}
	}
	return want
}

// end returns why the rounds end: as a round found, or because no queue that is not met has a weight; 0 if they go on.
func (v *volcano) end(unmet []int, found apportionv1.ProportionEnd) apportionv1.ProportionEnd {
	if found != 0 || slices.ContainsFunc(unmet, func(q int) bool { return v.weight(q) > 0 }) {
		return found
	}
	return apportionv1.ProportionEnd_PROPORTION_END_NO_WEIGHT
}

// rest is what is left of amounts after a round: cpu and memory are at least 0, and others of which nothing is left are not named.
func (v *volcano) rest(left amounts) amounts {
	for d, x := range left {
		if name := v.dims[d]; x > 0 {
			continue
		} else if left[d] = 0; !isBase(name) {
			delete(left, d)
		}
	}
	return left
}

// nothing reports whether no dimension but pods has as much as the threshold.
func (v *volcano) nothing(rest amounts) bool {
	for d, x := range rest {
		if x >= threshold && v.dims[d] != "pods" {
			return false
		}
	}
	return true
}

// closest returns what remains, but where the given amounts differ from it by no more than the rounding of a sum, these. Scale is what was
// divided.
func closest(remaining, given, scale amounts) amounts {
	out := maps.Clone(remaining)
	for d, x := range given {
		if math.Abs(x-remaining[d]) <= 1e-14*scale[d] {
			out[d] = x
		}
	}
	return out
}

// step is what one round gives one queue.
func (v *volcano) step(
	r *apportionv1.ProportionRound, q int, before amounts, got *apportionv1.ProportionShare,
) *apportionv1.ProportionShare {
	guarantee, _, most := v.limits(q)
	request := v.sums[q].request
	weighted := maps.Clone(before)
	for d, x := range amountsOf(r.GetRemaining()) {
		weighted[d] = before[d] + x*float64(v.weight(q))/float64(max(r.GetTotalWeight(), 1))
	}
	capped, requested, deserved := amounts{}, amounts{}, amounts{}
	for d, x := range amountsOf(got.GetWeighted()) {
		capped[d] = x
		if upper, ok := most[d]; ok {
			capped[d] = min(x, upper)
		}
	}
	for d, x := range amountsOf(got.GetCapped()) {
		requested[d] = min(x, request[d])
	}
	maps.Copy(deserved, amountsOf(got.GetRequested()))
	for d, x := range guarantee {
		deserved[d] = max(deserved[d], x)
	}
	met := true
	for d := range uint32(len(v.dims)) {
		met = met && request[d]-deserved[d] < threshold
	}
	return &apportionv1.ProportionShare{
		Queue: uint32(q), Weight: uint32(v.weight(q)), Weighted: weighted.resource(), Capped: capped.resource(),
		Requested: requested.resource(), Deserved: deserved.resource(), Met: met || maps.Equal(before, amountsOf(got.GetDeserved())),
	}
}

// levels are the numbers of each queue in capacity; in a tree, those that are configured and those that its share has too.
func (v *volcano) levels() *apportionv1.CapacityDerivation {
	want := &apportionv1.CapacityDerivation{}
	reserved := amounts{}
	for _, q := range v.GetQueues() {
		plus(reserved, v.amounts(q.GetGuarantee()), 1)
	}
	for _, q := range v.listed() {
		_, limit, _ := v.limits(q)
		share := orEmpty(v.given[uint32(q)])
		want.Levels = append(want.GetLevels(), &apportionv1.CapacityLevel{
			Queue: uint32(q), Capability: v.written(v.GetQueues()[q].GetCapability()),
			ResolvedCapability: limit.resource(), ParentRealCapability: v.whole().resource(), SiblingGuarantee: reserved.resource(),
			RealCapability: share.GetRealCapability(), WrittenDeserved: v.written(v.GetQueues()[q].GetDeserved()),
			Deserved: share.GetDeserved(),
		})
	}
	return want
}

// listed are the queues of the levels: those with jobs by name or, in a tree, all, level by level, those of one parent by name.
func (v *volcano) listed() []int {
	if !v.tree {
		return v.busy()
	}
	list := []int{v.top}
	for k := 0; k < len(list); k++ {
		list = append(list, slices.SortedFunc(slices.Values(v.kids[list[k]]), func(l, r int) int {
			return cmp.Compare(v.GetQueues()[l].GetName(), v.GetQueues()[r].GetName())
		})...)
	}
	return list
}

// written is a resource of the snapshot with the dimensions of the answer; nil for nil.
func (v *volcano) written(r *apportionv1.Resource) *apportionv1.Resource {
	if r == nil {
		return nil
	}
	return v.amounts(r).resource()
}

// beyondLevels are the fields of levels that follow from the tree.
func (v *volcano) beyondLevels() omitted {
	but := omitted{}
	if v.tree {
		for _, name := range []string{"parent", "depth", "resolved_capability", "parent_real_capability", "sibling_guarantee"} {
			but["CapacityLevel."+name] = treeRule
		}
	}
	return but
}
