package fair

import (
	"math"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Share returns a queue's account: deserved is its entitlement, share what it holds of the total in the dimension in which that is most;
// false if it is set aside. The rows are valid until the next call.
func (s *State) Share(q model.QueueID) (policy.Share, bool) {
	p := s.tree.at[q]
	if p == none {
		return policy.Share{}, false
	}
	s.settle()
	s.openInqueue()
	rows := s.shareRows()
	out := policy.Share{
		Weight: s.v.Queues[q].Weight, Guarantee: rows[0], Deserved: rows[1], Allocated: rows[2], Request: rows[3], Inqueue: rows[4],
		Capability: rows[5], RealCapability: rows[6], Dominant: -1, Overused: s.Overused(q, nil),
	}
	if s.memory != nil {
		out.WithMemory = rows[7]
	}
	greatest := ratio{0, 1}
	for d := range s.width {
		at := int(p)*s.width + d
		c := &s.division.columns[d]
		out.Guarantee.V[d], out.Deserved.V[d] = float64(c.Guaranteed[p]*s.quantum[d]), float64(s.line(2, p, d))
		out.Allocated.V[d], out.Request.V[d] = float64(s.accounts.held[at]), float64(s.demandOf(p, d))
		out.Inqueue.V[d], out.Capability.V[d] = float64(s.inqueue.lacked[at]), math.Inf(1)
		if limit := s.limits[p].capability[d]; limit != unlimited {
			out.Capability.V[d] = float64(limit)
		}
		out.RealCapability.V[d] = float64(s.atMost(p, d))
		if s.memory != nil {
			out.WithMemory.V[d] = float64(s.lineWithMemory(p, d))
		}
		if r := (ratio{s.accounts.held[at], s.divided(d)}); r.total > 0 && r.compare(greatest) > 0 {
			greatest, out.Dominant = r, d
		}
	}
	out.Share = float64(greatest.held) / float64(greatest.total)
	for a := s.tree.parent[p]; a != none; a = s.tree.parent[a] {
		if above := s.tree.queue[a]; above != model.None {
			out.Ancestors = append([]model.QueueID{above}, out.Ancestors...)
		}
	}
	out.Children = s.Children(q)
	return out, true
}

// ReservedFor returns the room that stands idle because it is kept for a job of a queue; absent if none is kept. In each dimension it is at
// most what the other queues wait for: what nobody else asks for is kept from nobody.
func (s *State) ReservedFor(q model.QueueID) resource.Row {
	r := s.reserved()
	if r == nil || s.tree.at[q] != r.leaf {
		return resource.Row{}
	}
	row := s.shareRows()[8]
	clear(row.V)
	waiting := func(p place, d int) int64 { return s.demandOf(p, d) - s.accounts.held[int(p)*s.width+d] }
	idle := s.idleBeside(r)
	for m := r.positive; m != 0; m = m.Rest() {
		d := m.First()
		row.V[d] = float64(max(0, min(idle[d], waiting(0, d)-waiting(r.leaf, d))))
	}
	return row
}

// atMost returns what a place could ever hold: no more than there is, and than any capability on its path.
func (s *State) atMost(p place, d int) int64 {
	most := s.total(d)
	for a := p; a != none; a = s.tree.parent[a] {
		if limit := s.limits[a].capability[d]; limit != unlimited {
			most = min(most, limit)
		}
	}
	return most
}

// shareRows returns rows that name every dimension.
func (s *State) shareRows() []resource.Row {
	if s.scratch.rows == nil {
		s.scratch.rows = resource.NewTable(9, s.width)
		for i := range s.scratch.rows {
			s.scratch.rows[i].Has = ^resource.Mask(0) >> (resource.MaxDimensions - s.width)
		}
	}
	return s.scratch.rows
}

// demandOf returns what the leaves of a place demand.
func (s *State) demandOf(p place, d int) int64 {
	if s.tree.isLeaf(p) {
		return s.accounts.demand[int(p)*s.width+d]
	}
	sum := int64(0)
	for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
		sum += s.demandOf(k, d)
	}
	return sum
}

// Accepted reports whether every queue and every job takes part; why names those queues that do not.
func (s *State) Accepted(why *policy.Reasons) bool {
	accepted := true
	refuse := func(q model.QueueID, kind hierarchy.Kind) {
		accepted = false
		reason := policy.Because(name, policy.HierarchyRefused, q)
		reason.Fault = uint8(kind)
		why.Add(reason)
	}
	for _, q := range s.v.QueueOrder {
		if kind := s.tree.refused[q]; kind != 0 {
			refuse(q, kind)
		}
	}
	said := map[model.QueueID]bool{}
	for _, j := range s.v.Present() {
		if q := s.v.Jobs.At(j).Queue; s.tree.refused[q] == 0 && s.leafOf(j) == none && !said[q] {
			said[q] = true
			refuse(q, hierarchy.NotLeaf)
		}
	}
	return accepted
}

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
