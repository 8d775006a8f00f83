package fair

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// saveGang saves the rest of a job's gang that could not be claimed, and reports whether it did.
func (s *State) saveGang(p place, w *wait) bool {
	return s.savable(p, w.need, w.positive) && s.fitGang(w) && s.save(p, w.need, w.positive)
}

// saveOne saves a task that could not be claimed.
func (s *State) saveOne(p place, k restricted) {
	r := &s.requests[k.request]
	if s.savable(p, r.amount, r.positive) && s.fitEmpty(k, 1) == 1 {
		s.save(p, r.amount, r.positive)
	}
	s.claims.empty.refill(0)
}

// save claims a block for which there is no room yet, so that no borrower takes what becomes free. Later claims find as much as before.
func (s *State) save(p place, amount []int64, positive resource.Mask) bool {
	c := &s.claims
	claimed, saved := s.row(c.claimed, p), s.row(c.saved, p)
	for m := positive; m != 0; m = m.Rest() {
		d := m.First()
		claimed[d] += amount[d]
		saved[d] = amount[d]
	}
	c.saves = false
	return true
}

// savable reports whether room may be saved for a block of a leaf: with its claims it is next by memory and within its limits, it can never
// be had by taking, and the cluster has too little of something left, so that it is not only placement that is in its way.
func (s *State) savable(p place, amount []int64, positive resource.Mask) bool {
	c := &s.claims
	if !c.saves || positive == 0 {
		return false
	}
	held, claimed := s.row(s.accounts.held, p), s.row(c.claimed, p)
	beyond, lacks := false, false
	for m := positive; m != 0; m = m.Rest() {
		d := m.First()
		sum := held[d] + claimed[d] + amount[d]
		if sum > s.lineWithMemory(p, d) {
			return false
		}
		beyond = beyond || sum > s.line(2, p, d)
		lacks = lacks || amount[d] > c.cluster[d]
	}
	if !beyond || !lacks {
		return false
	}
	for a := p; a != none; a = s.tree.parent[a] {
		l, held := &s.limits[a], s.row(s.accounts.held, a)
		for m := positive & l.limited; m != 0; m = m.Rest() {
			if d := m.First(); held[d]+claimed[d]+amount[d] > l.capability[d] {
				return false
			}
		}
	}
	for m := positive; m != 0; m = m.Rest() {
		if d := m.First(); amount[d] > s.total(d) {
			return false
		}
	}
	return true
}

// fitGang reports whether the rest of a gang fits the nodes if nothing runs.
func (s *State) fitGang(w *wait) bool {
	defer s.claims.empty.refill(0)
	if len(w.kinds) == 1 {
		return s.fitEmpty(w.kinds[0].restricted, int64(w.gang)) == int64(w.gang)
	}
	for t := range s.first(w, w.gang) {
		if s.fitEmpty(s.restricted(t), 1) == 0 {
			return false
		}
	}
	return true
}

// fitEmpty places at most n equal tasks by first fit on nodes on which nothing else runs, and returns how many it placed.
func (s *State) fitEmpty(k restricted, n int64) int64 {
	h, r := &s.claims.empty, &s.requests[k.request]
	if r.positive == 0 || len(s.v.NodeOrder) == 0 {
		return n
	}
	s.openEmpty()
	placed := int64(0)
	take := func(slot int) {
		m := min(n-placed, h.times(slot, r))
		if m > 0 {
			h.take(slot, r, m)
			placed += m
		}
	}
	if k.set == model.AllNodes {
		for slot := h.first(r, 0); slot >= 0 && placed < n; slot = h.first(r, slot) {
			take(slot)
		}
		return placed
	}
	for _, slot := range s.slotsOf(k.set) {
		if placed == n {
			break
		}
		take(int(slot))
	}
	return placed
}

// openEmpty puts on a shelf what nodes have if nothing runs, which no event changes.
func (s *State) openEmpty() {
	h := &s.claims.empty
	if h.Stock != nil {
		return
	}
	h.Stock = resource.NewStock(len(s.v.NodeOrder), s.width, 0, func(slot int, row []int64) {
		n := s.v.NodeOrder[slot]
		if !s.v.Takes(n, model.AllNodes) || s.v.Reserved(n) {
			return
		}
		node := &s.v.Nodes[n]
		for d := range row {
			row[d] = atMost(node.Allocatable.V[d]) - atLeast(node.UsedByOthers.V[d])
		}
	})
}

// Saved returns the part of a leaf's claims for which free room is kept until enough tasks have ended; false if there is none.
func (s *State) Saved(q model.QueueID, saved []int64) bool {
	p := s.servingPlace(q)
	if p == none || s.memory == nil {
		return false
	}
	s.formClaims()
	copy(saved, s.row(s.claims.saved, p))
	for _, x := range saved {
		if x > 0 {
			return true
		}
	}
	return false
}
