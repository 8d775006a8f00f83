package fair

import (
	"math"
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
