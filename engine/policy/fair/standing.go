package fair

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Standing returns in which of some dimensions, at which queue of its path, a queue has used most beyond its part of its siblings' usage;
// false if it has used no more than its part in any.
func (s *State) Standing(q model.QueueID, dims resource.Mask) (policy.Standing, bool) {
	p := s.servingPlace(q)
	if s.memory == nil || p == none {
		return policy.Standing{}, false
	}
	s.sortQueues()
	best, at, found := policy.Standing{}, none, false
	for ; p > 0; p = s.tree.parent[p] {
		usage, weight := s.usageOf(p), s.weights()[p]
		if usage == nil || weight == 0 {
			continue
		}
		for m := dims; m != 0; m = m.Rest() {
			d := m.First()
			sum := s.sumSiblings(s.weighed(d), s.tree.parent[p], d)
			if sum.reference.isZero() {
				continue
			}
			used, part := s.memory.charge(usage, d).float()/sum.reference.float(), float64(weight)/float64(sum.weight)
			if used > part && (!found || used/part > best.Used/best.Part) {
				best, at, found = policy.Standing{Queue: s.tree.queue[p], Dimension: d, Used: used, Part: part}, p, true
			}
		}
	}
	if !found {
		return best, false
	}
	own := ratio{s.weighed(best.Dimension).weight[at], max(1, s.weights()[at])}
	parent := s.tree.parent[at]
	for _, k := range s.order.sorted[s.tree.first[parent]:s.tree.end[parent]] {
		its := ratio{s.weighed(best.Dimension).weight[k], max(1, s.weights()[k])}
		if k != at && s.order.wants[k] && its.compare(own) > 0 {
			best.First = append(best.First, s.tree.queue[k])
		}
	}
	if s.memory.prices != nil {
		best.Dimension = -1
	}
	if next := s.memory.Epoch; next < math.MaxInt64/nanoseconds/s.memory.EpochSeconds {
		best.Until = (next + 1) * s.memory.EpochSeconds * nanoseconds
	}
	return best, true
}
