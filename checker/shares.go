package checker

import (
	"fmt"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// bound is section 2 of the rules for one queue and dimension, in quanta: guarantee, where weights begin, what there is a use for, and the
// weights of the first two cases.
type bound struct{ lo, m, hi, guaranteed, deserving, capability int64 }

// check is the check of one response.
type check struct {
	*cluster
	*findings

	policy *apportionv1.Policy
	// texts: the request asks for reasons as sentences.
	texts bool
	// turns: gangs may hold reservations, which are not formed here.
	turns bool
	fair  *apportionv1.FairDerivation
	// bounds and shares by dimension and queue, the second ones those of the second division.
	bounds, sated []map[int]bound
	given, other  []map[int]int64
	// lines are guarantee, fair share, entitlement and the line with memory by queue and dimension, in quanta; nil without a certificate.
	lines map[int][][4]int64
	// effective are the weights with memory by dimension and queue; nil without a memory.
	effective []map[int]int64
	claims
	// admitted are jobs that an enqueue step has admitted.
	admitted map[int]bool
	// enqueued: a step before has asked whether jobs may enter; entered: other plugins decided that.
	enqueued, entered bool
	// exact says of which dimensions no sum is rounded; nil if it is not known yet.
	exact []bool
	// lacking is what admitted jobs lack, by queue; nil if it is not known.
	lacking map[int][]int64
}

// certificate checks the first answer with the shares of all queues and their derivation, and forms what the verdicts of fair rest on. An
// answer that lacks a derivation that was asked for is found where the answer is checked.
func (c *check) certificate(steps []*apportionv1.Step, answers []*apportionv1.Answer) {
	for i, step := range steps {
		if slices.Contains(changing, memberOf(step)) || c.settings == nil || c.fair != nil {
			return
		}
		if e := step.GetShares().GetExplain(); e == nil || e.GetQueues() != nil || e.GetJobs() != nil || e.GetTasks() != nil {
			continue
		}
		for _, p := range answers[i].GetShares().GetPlugins() {
			if c.fair = p.GetFair(); c.fair != nil {
				c.divisions()
				if !c.turns {
					c.form()
					c.leaves()
				}
				return
			}
		}
	}
}

// expect records a number that is not what it must be.
func expect[T comparable](c *check, path string, got, want T) {
	c.checked++
	if got != want {
		c.wrong("%s is %v, not %v", path, got, want)
	}
}

// divisions checks both divisions and forms the lines.
func (c *check) divisions() {
	width := len(c.dims)
	expect(c, "quanta", fmt.Sprint(c.fair.GetQuanta()), fmt.Sprint(c.unit))
	c.resource("total", c.fair.GetTotal(), c.resourceOf(c.all))
	byWeight := func(_, q int) int64 { return c.weight(q) }
	c.other = c.list("sated", c.fair.GetSated(), c.sated, byWeight)
	c.given = c.list("divisions", c.fair.GetDivisions(), c.bounds, byWeight)
	remembered := c.given
	if c.GetMemory() == nil {
		expect(c, "with_memory: entries", len(c.fair.GetWithMemory()), 0)
		expect(c, "weights: entries", len(c.fair.GetWeights()), 0)
	} else {
		c.weights()
		remembered = c.list("with_memory", c.fair.GetWithMemory(), c.bounds, func(d, q int) int64 { return c.effective[d][q] })
	}
	c.lines = map[int][][4]int64{}
	for _, q := range c.order {
		for d := range width {
			lo, e := c.bounds[d][q].lo, c.given[d][q]
			c.lines[q] = append(c.lines[q], [4]int64{min(lo, e), min(e, max(lo, c.other[d][q])), e, remembered[d][q]})
		}
	}
	if !c.turns {
		expect(c, "reservation set", c.fair.GetReservation() != nil, false)
	}
	c.portions("sated", c.fair.GetSated())
	c.portions("divisions", c.fair.GetDivisions())
	c.portions("with_memory", c.fair.GetWithMemory())
}

// bound sets the bounds of all queues, bottom up.
func (c *check) bound(d int, sated bool) map[int]bound {
	out := map[int]bound{}
	for _, q := range slices.Backward(c.order) {
		var below bound
		for _, k := range c.kids[q] {
			b := out[k]
			below = bound{
				below.lo + b.lo, below.m + b.m, below.hi + b.hi, below.guaranteed + b.guaranteed, below.deserving + b.deserving, 0,
			}
		}
		b := bound{capability: c.capability[q][d]}
		if b.capability != unlimited {
			b.capability /= c.unit[d]
		}
		guarantee, deserved := c.limit(q, d, (*apportionv1.Queue).GetGuarantee, 0), c.limit(q, d, (*apportionv1.Queue).GetDeserved, -1)
		want := below.hi
		if len(c.kids[q]) == 0 {
			want = c.demand[q][d]
			if sated && want > 0 {
				want = c.all[d]
			}
			want = (want + c.unit[d] - 1) / c.unit[d]
		}
		b.hi = min(b.capability, want)
		b.guaranteed = min(b.capability, max(guarantee, below.guaranteed))
		b.lo = min(b.hi, max(min(guarantee, b.hi), below.lo))
		if c.settings.GetReserveGuarantee() {
			b.lo = min(b.capability, max(guarantee, below.lo))
		}
		b.hi = max(b.hi, b.lo)
		b.m, b.deserving = b.lo, b.guaranteed
		if c.settings.GetBase() == apportionv1.FairBase_FAIR_BASE_DESERVED {
			target, weight := deserved, deserved
			if deserved < 0 {
				target, weight = below.m, below.deserving
			}
			b.m, b.deserving = max(b.lo, min(target, b.hi)), max(b.guaranteed, min(b.capability, weight))
		}
		out[q] = b
	}
	return out
}

// list checks that a list has every division once, and each of them; it returns the shares by dimension and queue.
func (c *check) list(
	name string, divisions []*apportionv1.FairDivision, bounds []map[int]bound, weight func(d, q int) int64,
) []map[int]int64 {
	shares := make([]map[int]int64, len(c.dims))
	for d := range shares {
		b := bounds[d][c.top]
		shares[d] = map[int]int64{c.top: min(c.all[d]/c.unit[d], b.capability)}
		if len(c.kids[c.top]) == 0 {
			shares[d][c.top] = min(shares[d][c.top], b.hi)
		}
	}
	at := 0
	for _, q := range c.order {
		for d := range shares {
			if q != c.top && len(c.kids[q]) == 0 {
				continue
			}
			path := fmt.Sprintf("%s[%d]", name, at)
			if at++; at > len(divisions) {
				c.wrong("%s is missing", path)
				return shares
			}
			expect(c, path+".queue", queueOf(divisions[at-1].Queue), q)
			expect(c, path+".dimension", int(divisions[at-1].GetDimension()), d)
			c.division(path, divisions[at-1], q, bounds[d], shares[d], func(k int) int64 { return weight(d, k) })
		}
	}
	expect(c, name+": number of divisions", len(divisions), at)
	return shares
}

func queueOf(index *uint32) int {
	if index == nil {
		return root
	}
	return int(*index)
}
