package fair

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Standing returns in which of some dimensions, at which queue of its path, a queue has used most for its part of its siblings' usage, of
// those in which it has used more than its part, or siblings that want something come first up to a line below its entitlement. It returns
// false if there are none.
func (s *State) Standing(q model.QueueID, dims resource.Mask) (policy.Standing, bool) {
	p := s.servingPlace(q)
	if s.memory == nil || p == none {
		return policy.Standing{}, false
	}
	s.sortQueues()
	best, at, found := policy.Standing{}, none, false
	for ; p > 0; p = s.tree.parent[p] {
		weight := s.weights()[p]
		if s.memory.usage[p] == nil || weight == 0 {
			continue
		}
		for m := dims; m != 0; m = m.Rest() {
			d := m.First()
			sum := s.sumSiblings(s.weighed(d), s.tree.parent[p], d)
			if sum.reference.isZero() {
				continue
			}
			own, _ := s.charged(p, d)
			used, part := own.float()/sum.reference.float(), float64(weight)/float64(sum.weight)
			behind := used > part || s.lineWithMemory(p, d) < s.line(2, p, d) && len(s.before(p, d)) > 0
			if behind && (!found || used/part > best.Used/best.Part) {
				best, at, found = policy.Standing{Queue: s.tree.queue[p], Dimension: d, Used: used, Part: part}, p, true
			}
		}
	}
	if !found {
		return best, false
	}
	best.First = s.before(at, best.Dimension)
	if s.memory.prices != nil {
		best.Dimension = -1
	}
	if next := s.memory.Epoch; next < math.MaxInt64/nanoseconds/s.memory.EpochSeconds {
		best.Until = (next + 1) * s.memory.EpochSeconds * nanoseconds
	}
	return best, true
}

// before returns the siblings of a place that want something and have used less of a dimension for their weight, in order of service. The
// queues are sorted.
func (s *State) before(p place, d int) (first []model.QueueID) {
	own, parent := ratio{s.weighed(d).weight[p], max(1, s.weights()[p])}, s.tree.parent[p]
	for _, k := range s.order.sorted[s.tree.first[parent]:s.tree.end[parent]] {
		its := ratio{s.weighed(d).weight[k], max(1, s.weights()[k])}
		if k != p && s.order.wants[k] && its.compare(own) > 0 {
			first = append(first, s.tree.queue[k])
		}
	}
	return first
}
