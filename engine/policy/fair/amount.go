package fair

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

const (
	// maxExact bounds sums of floating-point numbers that are exact.
	maxExact = 1 << 53
	// maxSum bounds what all amounts of a dimension add up to, so that no sum or difference of a few of them overflows.
	maxSum = 1 << 60
	// unlimited is a capability that limits nothing.
	unlimited = math.MaxInt64
)

// atLeast returns the least integer that is not below x. More than maxSum, which checkAmounts refuses, counts as maxSum.
func atLeast(x float64) int64 { return int64(math.Ceil(min(x, maxSum))) }

// atMost returns the greatest integer that is not above x.
func atMost(x float64) int64 { return int64(math.Floor(min(x, maxSum))) }

// limitOf returns the greatest integer that is not above a capability; what exceeds every sum is unlimited.
func limitOf(x float64) int64 {
	if x > maxSum {
		return unlimited
	}
	return int64(math.Floor(x))
}

// checkAmounts returns a *model.Error if amounts of some dimension add up to more than maxSum. It names the list that is too much.
func (s *State) checkAmounts() error {
	v := s.v
	c := adder{sums: make([]float64, s.width)}
	c.add(v.Total)
	c.within(v, "total")
	for _, n := range v.NodeOrder {
		c.add(v.Nodes[n].Allocatable)
		c.add(v.Nodes[n].UsedByOthers)
	}
	c.within(v, "nodes")
	for _, q := range v.QueueOrder {
		c.add(v.Queues[q].Guarantee)
		c.add(v.Queues[q].Deserved)
	}
	c.within(v, "queues")
	if !v.Fresh() || !c.surely(v) {
		for _, j := range v.Present() {
			c.add(v.Account(j).Total)
			c.add(v.Jobs.At(j).MinResources)
		}
		c.within(v, "jobs")
	}
	return c.faults.OrNil()
}

// adder adds up amounts, rounded as they come.
type adder struct {
	sums   []float64
	faults model.Error
}

func (c *adder) add(row resource.Row) {
	for d, x := range row.V {
		c.sums[d] += x
	}
}

// surely reports whether the amounts of all jobs, in whatever order they are added, stay so far within maxSum that rounding cannot matter.
func (c *adder) surely(v *policy.View) bool {
	sums := slices.Clone(c.sums)
	for _, q := range v.QueueOrder {
		for d, x := range v.QueueSumOf(q).Named.V {
			sums[d] += x
		}
	}
	return !slices.ContainsFunc(sums, func(x float64) bool { return !(x <= maxSum/2) })
}

func (c *adder) within(v *policy.View, path string) {
	for d := range c.sums {
		if !(c.sums[d] <= maxSum) {
			c.faults.Add(path, "amounts of %s add up to more than %d, the most that fair divides", v.Dims.Name(d), int64(maxSum))
			c.sums[d] = 0
		}
	}
}

// wide is an unsigned integer of 256 bits, the least significant word first. Charged usage has at most 101 bits, a sum of it over all
// queues 132, and a product with a weight and two factors 205.
type wide [4]uint64

func wideOf(x int64) wide { return wide{uint64(x)} }

func (w wide) plus(o wide) wide {
	carry := uint64(0)
	for i := range w {
		w[i], carry = bits.Add64(w[i], o[i], carry)
	}
	return w
}

func (w wide) times(x int64) wide {
	carry := uint64(0)
	for i := range w {
		if w[i] == 0 && carry == 0 {
			continue
		}
		high, low := bits.Mul64(w[i], uint64(x))
		var over uint64
		w[i], over = bits.Add64(low, carry, 0)
		carry = high + over
	}
	return w
}

// over returns ⌊w / x⌋ for x > 0.
func (w wide) over(x int64) wide {
	rest := uint64(0)
	for i := len(w) - 1; i >= 0; i-- {
		// A division takes longer than all else here, and most words are 0.
		if w[i] != 0 || rest != 0 {
			w[i], rest = bits.Div64(rest, w[i], uint64(x))
		}
	}
	return w
}

func (w wide) compare(o wide) int {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i] != o[i] {
			if w[i] < o[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

func (w wide) isZero() bool { return w == wide{} }

// float returns about w.
func (w wide) float() float64 {
	x := 0.0
	for i := len(w) - 1; i >= 0; i-- {
		x = x*0x1p64 + float64(w[i])
	}
	return x
}

// quotient returns ⌊w / o⌋, which is below 2^40, for o > 0. It is estimated by floating point, whose error is below 1, and then made exact.
func (w wide) quotient(o wide) int64 {
	q := max(int64(w.float()/o.float()), 0)
	product := o.times(q)
	for product.compare(w) > 0 {
		q--
		product = o.times(q)
	}
	for next := product.plus(o); next.compare(w) <= 0; next = next.plus(o) {
		q++
	}
	return q
}

// Integer returns w as an integer of any size.
func (w wide) Integer() *big.Int {
	x := new(big.Int)
	for i := len(w) - 1; i >= 0; i-- {
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(w[i]))
	}
	return x
}
