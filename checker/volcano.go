package checker

import (
	"fmt"
	"maps"
	"math"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// volcano collects what is wrong with the numbers of the plugins that decide as Volcano does.
type volcano struct {
	*apportionv1.PluginShares

	queues map[uint32]*apportionv1.QueueShare
	faults []string
}

// CheckVolcano returns a sentence for each number of proportion and capacity in an answer with derivations that does not follow from the
// numbers beside it: the steps of every round of proportion, the sums that are left after each, and the amounts at the end; what each queue
// of capacity gets of its parent. It needs no snapshot, and says nothing about whether requests and capabilities are those of the
// snapshot. Checked counts the numbers; 0 means that the answer has no such derivation.
func CheckVolcano(shares *apportionv1.SharesAnswer) (faults []string, checked int) {
	for _, p := range shares.GetPlugins() {
		c := &volcano{PluginShares: p, queues: map[uint32]*apportionv1.QueueShare{}}
		for _, q := range p.GetQueues() {
			c.queues[q.GetQueue()] = q
		}
		checked += c.rounds() + c.levels()
		faults = append(faults, c.faults...)
	}
	return faults, checked
}

// amounts are a resource by dimension.
type amounts map[uint32]float64

// of returns the amounts of a resource. A dimension without an amount is NaN, which equals nothing.
func of(r *apportionv1.Resource) amounts {
	a := amounts{}
	for i, d := range r.GetDimension() {
		a[d] = math.NaN()
		if i < len(r.GetAmount()) {
			a[d] = r.GetAmount()[i]
		}
	}
	return a
}

// near reports whether two amounts are equal up to rounding.
func near(l, r float64) bool {
	return l == r || math.Abs(l-r) <= 1e-9*max(math.Abs(l), math.Abs(r), 1)
}

// same records the dimensions in which a resource is not what it must be; what one side does not name is 0 on the other.
func (c *volcano) same(path string, got, want amounts) int {
	for d, x := range want {
		if !near(got[d], x) {
			c.faults = append(c.faults, fmt.Sprintf("%s: dimension %d is %v, not %v", path, d, got[d], x))
		}
	}
	for d, x := range got {
		if _, ok := want[d]; !ok && !near(x, 0) {
			c.faults = append(c.faults, fmt.Sprintf("%s: dimension %d is %v, not 0", path, d, x))
		}
	}
	return max(len(got), len(want))
}

// rounds checks each step of each round of proportion, if the derivation is of all queues.
func (c *volcano) rounds() int {
	n, deserved := 0, map[uint32]amounts{}
	rounds := c.GetProportion().GetRounds()
	if c.GetProportion() == nil {
		return 0
	}
	remaining := of(c.GetProportion().GetTotal())
	for i, r := range rounds {
		path := fmt.Sprintf("%s.rounds[%d]", c.GetPlugin(), i)
		weights := uint64(0)
		for _, s := range r.GetShares() {
			weights += uint64(s.GetWeight())
		}
		if weights != r.GetTotalWeight() {
			return n // Only some queues are explained: the others' part of the round is not known.
		}
		n += c.same(path+".remaining", of(r.GetRemaining()), remaining)
		left := of(r.GetRemaining())
		for k, s := range r.GetShares() {
			n += c.step(fmt.Sprintf("%s.shares[%d]", path, k), r, s, deserved[s.GetQueue()])
			for d, x := range of(s.GetDeserved()) {
				left[d] -= max(0, x-deserved[s.GetQueue()][d])
			}
			deserved[s.GetQueue()] = of(s.GetDeserved())
		}
		remaining = amounts{}
		for d, x := range left {
			remaining[d] = max(0, x)
		}
	}
	for q, want := range deserved {
		n += c.same(fmt.Sprintf("%s: deserved of queue %d", c.GetPlugin(), q), of(c.queues[q].GetDeserved()), want)
	}
	return n
}

// step checks what one round gave one queue.
func (c *volcano) step(path string, r *apportionv1.ProportionRound, s *apportionv1.ProportionShare, before amounts) int {
	queue := c.queues[s.GetQueue()]
	weighted, capped, requested, deserved := amounts{}, amounts{}, amounts{}, amounts{}
	for d, x := range of(r.GetRemaining()) {
		weighted[d] = before[d] + x*float64(s.GetWeight())/float64(r.GetTotalWeight())
	}
	for d, x := range before {
		if _, ok := weighted[d]; !ok {
			weighted[d] = x
		}
	}
	limit, request := of(queue.GetRealCapability()), of(queue.GetRequest())
	for d, x := range of(s.GetWeighted()) {
		capped[d] = x
		if most, ok := limit[d]; ok {
			capped[d] = min(x, most)
		}
	}
	for d, x := range of(s.GetCapped()) {
		requested[d] = min(x, request[d])
	}
	maps.Copy(deserved, of(s.GetRequested()))
	for d, x := range of(queue.GetGuarantee()) {
		deserved[d] = max(deserved[d], x)
	}
	return c.same(path+".weighted", of(s.GetWeighted()), weighted) + c.same(path+".capped", of(s.GetCapped()), capped) +
		c.same(path+".requested", of(s.GetRequested()), requested) + c.same(path+".deserved", of(s.GetDeserved()), deserved)
}

// levels checks what each queue of capacity may have: what its parent may have less the guarantees of its siblings, within its own
// capability.
func (c *volcano) levels() int {
	n := 0
	for i, l := range c.GetCapacity().GetLevels() {
		path := fmt.Sprintf("%s.levels[%d]", c.GetPlugin(), i)
		queue := c.queues[l.GetQueue()]
		if queue == nil || !queue.GetParticipating() {
			continue
		}
		n += c.same(path+".real_capability", of(l.GetRealCapability()), of(queue.GetRealCapability()))
		n += c.same(path+".deserved", of(l.GetDeserved()), of(queue.GetDeserved()))
		limit := of(l.GetResolvedCapability())
		for d, x := range of(l.GetRealCapability()) {
			if most := limit[d]; most > 0 && x > most && !near(x, most) {
				c.faults = append(c.faults,
					fmt.Sprintf("%s.real_capability: dimension %d is %v, above the capability of %v", path, d, x, most))
			}
			n++
		}
	}
	return n
}
