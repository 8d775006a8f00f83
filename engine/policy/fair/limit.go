package fair

import (
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// limit holds the settings of a queue for one place, per dimension.
type limit struct {
	// capability is raw; unlimited where none is stated. A hard budget lowers it.
	capability []int64
	// limited are the dimensions in which capability limits anything.
	limited resource.Mask
}

// readLimits also fills the columns of the division with capabilities, guarantees and deserved amounts in quanta.
func (s *State) readLimits() []limit {
	n := s.tree.len()
	list, cells := make([]limit, n), make([]int64, n*s.width)
	for p := range list {
		l := &list[p]
		l.capability = cells[p*s.width : (p+1)*s.width : (p+1)*s.width]
		for d := range l.capability {
			l.capability[d] = unlimited
		}
		q := s.tree.queue[p]
		if q < 0 {
			continue
		}
		capability := s.v.Queues[q].Capability
		for m := capability.Has; m != 0; m = m.Rest() {
			d := m.First()
			if l.capability[d] = limitOf(capability.V[d]); l.capability[d] != unlimited {
				l.limited = l.limited.With(d)
			}
		}
	}
	if s.memory != nil {
		s.applyBudgets(list)
	}
	return list
}

// exceeded returns the nearest place of p's path, p first, in which what it holds and the amount exceed its capability, and the first such
// dimension; (none, -1) if there is none.
func (s *State) exceeded(p place, amount []int64, positive resource.Mask) (place, int) {
	for a := p; a != none; a = s.tree.parent[a] {
		l := &s.limits[a]
		if positive&l.limited == 0 {
			continue
		}
		held := s.row(s.accounts.held, a)
		for _, d := range s.dims {
			if positive.Has(d) && l.limited.Has(d) && held[d]+amount[d] > l.capability[d] {
				return a, d
			}
		}
	}
	return none, -1
}

// aboveLimits adds a reason for every capability on the way up that an amount would exceed.
func (s *State) aboveLimits(p place, amount []int64, positive resource.Mask, why *policy.Reasons) {
	for a := p; a != none; a = s.tree.parent[a] {
		held, limited := s.row(s.accounts.held, a), s.limits[a].limited&positive
		for _, d := range s.dims {
			if limited.Has(d) && held[d]+amount[d] > s.limits[a].capability[d] {
				why.Add(s.aboveLimit(a, d, held[d], amount[d]))
			}
		}
	}
}

// aboveLimit compares what a queue has and what it is asked for with its capability.
func (s *State) aboveLimit(a place, d int, have, need int64) policy.Reason {
	return policy.Reason{
		Plugin: name, Code: policy.AboveLimit, Queue: s.tree.queue[a], Dimension: d,
		Have: float64(have), Need: float64(need), Limit: float64(s.limits[a].capability[d]),
	}
}
