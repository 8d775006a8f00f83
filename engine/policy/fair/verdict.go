package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Allocatable reports whether a queue may use that much more. What it is entitled to it may within its limits; anything else it may borrow
// as far as no entitled task could be given it now. why gets the rule by which it may, too.
func (s *State) Allocatable(q model.QueueID, r policy.Request, mode policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	p, refusal := s.serving(q)
	if p == none {
		why.Add(refusal)
		checks.Add(model.None, false, refusal)
		return false
	}
	if mode == policy.InSession && !s.tree.open[p] {
		closed := policy.Because(name, policy.QueueNotOpen, q)
		why.Add(closed)
		checks.Add(model.None, false, closed)
		return false
	}
	amount := s.scratch.asked
	positive := s.sum(r.Tasks, amount)
	reason, permitted := s.permit(p, amount, positive)
	reason, permitted = s.permitTurn(p, r.Tasks, amount, positive, reason, permitted)
	if reason.Code == policy.AboveLimit && why.All() {
		s.aboveLimits(p, amount, positive, why)
	} else {
		why.Add(reason)
	}
	checks.Add(model.None, permitted, reason)
	return permitted
}

// serving returns the leaf of a queue, or none and why it is served nothing.
func (s *State) serving(q model.QueueID) (place, policy.Reason) {
	reason := policy.Because(name, policy.HierarchyRefused, q)
	p := s.tree.at[q]
	switch {
	case p == none:
		reason.Fault = uint8(s.tree.refused[q])
		return none, reason
	case !s.tree.isLeaf(p):
		reason.Fault = uint8(hierarchy.NotLeaf)
		return none, reason
	}
	return p, policy.Reason{}
}

// permit decides about an amount for an open leaf.
func (s *State) permit(p place, amount []int64, positive resource.Mask) (policy.Reason, bool) {
	q := s.tree.queue[p]
	if a, d := s.exceeded(p, amount, positive); a != none {
		return s.aboveLimit(a, d, s.row(s.accounts.held, a)[d], amount[d]), false
	}
	s.settle()
	beyond := s.unentitled(p, amount, positive, (*State).lineWithMemory)
	if beyond < 0 {
		return policy.Because(name, policy.Entitled, q), true
	}
	for _, d := range s.dims {
		if !positive.Has(d) {
			continue
		}
		if free, aside := s.free(d), s.aside(p, d); amount[d] > free-aside {
			return policy.Reason{
				Plugin: name, Code: policy.NotIdle, Queue: q, Dimension: d,
				Have: float64(aside), Need: float64(amount[d]), Limit: float64(free),
			}, false
		}
	}
	borrowed := s.aboveLine(p, beyond, amount[beyond], s.lineWithMemory(p, beyond))
	borrowed.Code = policy.Borrowed
	return borrowed, true
}

// Preemptive reports whether a queue may take that much from others: it is open, and entitled to it by weight and with memory.
func (s *State) Preemptive(q model.QueueID, r policy.Request, why *policy.Reasons, checks *policy.Checks) bool {
	p, refusal := s.serving(q)
	amount := s.scratch.asked
	switch {
	case p == none:
	case !s.tree.open[p]:
		refusal = policy.Because(name, policy.QueueNotOpen, q)
	default:
		positive := s.sum(r.Tasks, amount)
		s.settle()
		d := s.unentitled(p, amount, positive, (*State).takingLine)
		if d < 0 {
			checks.Add(model.None, true, policy.Because(name, policy.Entitled, q))
			return true
		}
		refusal = s.aboveLine(p, d, amount[d], s.takingLine(p, d))
	}
	why.Add(refusal)
	checks.Add(model.None, false, refusal)
	return false
}

// aboveLine compares what a queue holds and asks for with a line of it.
func (s *State) aboveLine(p place, d int, amount, line int64) policy.Reason {
	return policy.Reason{
		Plugin: name, Code: policy.NotEntitled, Queue: s.tree.queue[p], Dimension: d,
		Have: float64(s.row(s.accounts.held, p)[d]), Need: float64(amount), Limit: float64(line),
	}
}

// Entitles reports whether a queue is entitled to a block of it, for which it may take from others.
func (s *State) Entitles(q model.QueueID) bool {
	p := s.servingPlace(q)
	return p != none && s.wants(p)
}

// Overused reports whether a queue has blocks and may use none of them. why gets what stands against the first.
func (s *State) Overused(q model.QueueID, why *policy.Reasons) bool {
	p := s.servingPlace(q)
	if p == none {
		return false
	}
	if r := s.reserved(); r != nil && r.leaf == p && r.from <= s.v.AsOf {
		return false
	}
	var against policy.Reason
	asked := 0
	// Many waiting tasks ask for the same: what was refused last is not decided again.
	var last []int64
	var lastPositive resource.Mask
	refused := func(amount []int64, positive resource.Mask) bool {
		if asked > 0 && positive == lastPositive && slices.Equal(amount, last) {
			return true
		}
		reason, permitted := s.permit(p, amount, positive)
		last, lastPositive = amount, positive
		if asked++; asked == 1 {
			against = reason
		}
		return !permitted
	}
	for _, w := range s.waitsOf(p) {
		if s.refresh(w); w.gang < 0 {
			continue
		}
		if w.gang > 0 && !refused(w.need, w.positive) {
			return false
		}
		if asked == 0 {
			// The first task by the order of serving, because kinds are in an order that depends on the snapshot's.
			for t := range s.first(w, 1) {
				r := &s.requests[s.restricted(t).request]
				if !refused(r.amount, r.positive) {
					return false
				}
			}
		}
		for i := range w.kinds {
			k := &w.kinds[i]
			if r := &s.requests[k.request]; k.pending > k.ganged && !refused(r.amount, r.positive) {
				return false
			}
		}
	}
	if asked > 0 {
		why.Add(against)
	}
	return asked > 0
}
