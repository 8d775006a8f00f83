package checker

import (
	"maps"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// amounts are a resource as Volcano counts it, in float64 by dimension of the answer. A dimension that is not named is 0, but for
// comparisons of a round with the one before. The order of every sum is that of docs/semantics.md under Rounding, so that sums are exactly
// those of the answer and need no tolerance: a bound for the error of any other order would let amounts pass that are not the sums.
type amounts map[uint32]float64

// amountsOf returns the amounts of a resource. A dimension without an amount is NaN, which equals nothing.
func amountsOf(r *apportionv1.Resource) amounts {
	a := amounts{}
	for i, d := range r.GetDimension() {
		a[d] = math.NaN()
		if i < len(r.GetAmount()) {
			a[d] = r.GetAmount()[i]
		}
	}
	return a
}

// amounts are those of a resource of the snapshot by dimension of the answer.
func (c *cluster) amounts(r *apportionv1.Resource) amounts {
	a := amounts{}
	for i, d := range r.GetDimension() {
		a[uint32(slices.Index(c.dims, c.GetDimensions()[d]))] = r.GetAmount()[i]
	}
	return a
}

// sumOf is a sum of resources of the snapshot; cpu and memory are in every account.
func (c *cluster) sumOf(resources ...*apportionv1.Resource) amounts {
	a := amounts{uint32(c.byDimension[0]): 0, uint32(c.byDimension[1]): 0}
	for _, r := range resources {
		a.add(c.amounts(r), 1)
	}
	return a
}

// sumOfNodes is the cluster's total: as stated, or what the nodes offer, in order of their names.
func (c *cluster) sumOfNodes() amounts {
	all := c.sumOf(c.GetTotal())
	if c.GetTotal() == nil {
		for _, n := range c.byName {
			all.add(c.amounts(c.GetNodes()[n].GetAllocatable()), 1)
		}
	}
	return all
}

// add adds other amounts, several times.
func (a amounts) add(other amounts, times float64) {
	for d, x := range other {
		a[d] += float64(x * times)
	}
}

// atMost lowers amounts to those of a limit, which names cpu and memory. What else it does not name is limited to missing.
func (a amounts) atMost(limit amounts, missing float64) {
	for d, x := range a {
		if most, named := limit[d]; named && most < x {
			a[d] = most
		} else if !named {
			a[d] = min(x, missing)
		}
	}
}

// atLeast raises amounts to others.
func (a amounts) atLeast(other amounts) {
	for d, x := range other {
		if have, named := a[d]; !named || x > have {
			a[d] = x
		}
	}
}

// exceeding is the part of amounts that exceeds others: cpu and memory are at least 0, and what does not exceed is not named.
func (c *cluster) exceeding(all, others amounts) amounts {
	out := c.sumOf()
	for d, x := range all {
		if x > others[d] {
			out[d] = x
			if !math.IsInf(x, 1) {
				out[d] -= others[d]
			}
		}
	}
	return out
}

// covers reports whether amounts are within others but for less than the threshold.
func (a amounts) covers(others amounts) bool {
	for d, x := range others {
		if x-a[d] >= threshold {
			return false
		}
	}
	return true
}

// none reports whether no dimension but pods has as much as the threshold.
func (c *cluster) none(a amounts) bool {
	for d, x := range a {
		if x >= threshold && c.dims[d] != "pods" {
			return false
		}
	}
	return true
}

// resource is the amounts as a message.
func (a amounts) resource() *apportionv1.Resource {
	r := &apportionv1.Resource{}
	for _, d := range slices.Sorted(maps.Keys(a)) {
		r.Dimension, r.Amount = append(r.Dimension, d), append(r.Amount, a[d])
	}
	return r
}

// same reports whether two amounts are equal, also if neither is a number.
func same(l, r float64) bool { return l == r || math.IsNaN(l) && math.IsNaN(r) }
