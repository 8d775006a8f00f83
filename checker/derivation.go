package checker

import (
	"maps"
	"math"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// mostWork bounds the work of rounds, in amounts; a server answers with LIMIT_EXCEEDED long before.
const mostWork = 4_000_000_000

// rounds divides the total among the queues with jobs by weight, as docs/semantics.md says under proportion, and returns the rounds; nil
// if there are too many.
func (v *volcano) rounds() *apportionv1.ProportionDerivation {
	unmet, remaining := v.busy(), maps.Clone(v.total)
	out := &apportionv1.ProportionDerivation{Total: v.total.resource(), TotalGuarantee: v.reserved.resource()}
	for _, q := range unmet {
		v.deserved[q] = v.sumOf()
	}
	for work := 0; out.GetEnd() == 0; {
		round := &apportionv1.ProportionRound{Remaining: remaining.resource()}
		for _, q := range unmet {
			round.TotalWeight += uint64(v.weight(q))
		}
		if round.GetTotalWeight() == 0 {
			out.End = apportionv1.ProportionEnd_PROPORTION_END_NO_WEIGHT
			break
		}
		if work += len(unmet) * len(v.dims); work > mostWork {
			return nil
		}
		given, still := amounts{}, unmet[:0]
		for _, q := range unmet {
			before := v.deserved[q]
			share := v.raise(q, remaining, float64(v.weight(q))/float64(round.GetTotalWeight()))
			for d, x := range v.deserved[q] {
				if x > before[d] {
					given[d] += x - before[d]
				}
			}
			if share.Met = v.deserved[q].covers(v.sums[q].request) || maps.Equal(before, v.deserved[q]); !share.GetMet() {
				still = append(still, q)
			}
			round.Shares = append(round.GetShares(), share)
		}
		out.Rounds = append(out.GetRounds(), round)
		rest := v.exceeding(remaining, given)
		if v.none(rest) {
			out.End = apportionv1.ProportionEnd_PROPORTION_END_NOTHING_REMAINS
		} else if maps.Equal(rest, remaining) {
			out.End = apportionv1.ProportionEnd_PROPORTION_END_UNCHANGED
		}
		unmet, remaining = still, rest
	}
	return out
}

// raise gives a queue its part of a round.
func (v *volcano) raise(q int, remaining amounts, part float64) *apportionv1.ProportionShare {
	now := maps.Clone(v.deserved[q])
	out := &apportionv1.ProportionShare{Queue: uint32(q), Weight: uint32(v.weight(q))}
	now.add(remaining, part)
	out.Weighted = now.resource()
	now.atMost(v.limits[q].most, math.Inf(1))
	out.Capped = now.resource()
	now.atMost(v.sums[q].request, 0)
	out.Requested = now.resource()
	now.atLeast(v.limits[q].guarantee)
	out.Deserved = now.resource()
	v.deserved[q] = now
	return out
}
