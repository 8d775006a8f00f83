package fair

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// claims protect what entitled tasks could be given now; they are valid for one version of the accounts, to which a rollback returns.
//
// Forming them costs a visit to each leaf that wants anything, to each of its jobs and distinct requests, and to each node on which a run
// of equal requests is placed; finding a node takes a logarithm of their number, or in the worst case, where nodes have room in every
// dimension but never in all at once, a visit to each. A request that no node has room for is not looked for again.
type claims struct {
	formed
	// kept are those of two versions; the ones above are one of them.
	kept [2]formed
	// cluster and nodes are the amounts that earlier claims leave free.
	cluster []int64
	nodes   shelf
	// from says for each request that no node before this one has room for it; -1: none has. Those of tasks that are restricted to a set
	// are in fromOf, and mean nodes of the set.
	from   []int32
	fromOf map[restricted]int32
	// before holds those of one gang.
	before []int32
	// failed marks the kinds of one job of which no further task can be claimed, and tried those of which none can be saved either.
	failed, tried []bool
	// saves reports whether the present leaf may still save a block.
	saves bool
	// empty has what nodes have if nothing runs; filled in when it is first needed.
	empty shelf
}

// formClaims forms the claims of all places anew if anything has changed.
func (s *State) formClaims() {
	c := &s.claims
	leaves := s.ordered()
	s.forgetUnpaid()
	if c.recall(s.version) {
		return
	}
	if c.from == nil {
		c.fromOf, c.from, c.cluster = map[restricted]int32{}, make([]int32, len(s.requests)), make([]int64, s.width)
		s.openShelf()
	}
	c.begin(s.version, s.tree.len()*s.width, s.memory != nil)
	clear(c.claimed)
	clear(c.saved)
	clear(c.from)
	clear(c.fromOf)
	for d := range c.cluster {
		c.cluster[d] = s.free(d)
	}
	kept := s.reserved()
	if kept != nil {
		s.withholdReserved(kept)
	}
	for _, p := range leaves {
		if !s.order.wants[p] {
			// Without claims it is entitled to none of its blocks, so it claims none.
			continue
		}
		c.saves = s.memory != nil && !s.plugin.Memory.NoSaving && s.turns == nil
		for _, w := range s.waitsOf(p) {
			if kept != nil && kept.job == w.job {
				continue
			}
			if s.refresh(w); w.gang >= 0 && (s.claimGang(p, w) || s.saveGang(p, w)) {
				s.claimLoose(p, w)
			}
		}
	}
	c.nodes.refill(0)
	s.withhold()
}

// withhold sums the claims up the tree.
func (s *State) withhold() {
	c := &s.claims
	for p := place(s.tree.len()) - 1; p >= 0; p-- {
		claimed, withheld, held := s.row(c.claimed, p), s.row(c.withheld, p), s.row(s.accounts.held, p)
		for d := range withheld {
			withheld[d] = claimed[d]
			if s.plugin.ReserveGuarantee {
				withheld[d] = max(withheld[d], s.division.columns[d].Low[p]*s.quantum[d]-held[d])
			}
		}
		if p > 0 {
			add(s.row(c.claimed, s.tree.parent[p]), withheld)
		}
	}
}

// claimGang claims the rest of a job's gang, all of it or nothing. It reports whether the job's further tasks may claim: where the rest is
// passed over, so are they. A rest of best effort needs no claim.
func (s *State) claimGang(p place, w *wait) bool {
	if w.gang == 0 || w.positive == 0 {
		return true
	}
	if s.claimable(p, w.need, w.positive, 1) < 1 {
		return false
	}
	c := &s.claims
	c.before = c.before[:0]
	for i := range w.kinds {
		c.before = append(c.before, s.fromSlot(w.kinds[i].restricted))
	}
	taken, whole := len(c.nodes.taken), true
	if len(w.kinds) == 1 {
		whole = s.placeRun(w.kinds[0].restricted, int64(w.gang)) == int64(w.gang)
	} else {
		for t := range s.first(w, w.gang) {
			if whole = s.placeRun(s.restricted(t), 1) == 1; !whole {
				break
			}
		}
	}
	if !whole {
		c.nodes.refill(taken)
		for i, from := range c.before {
			s.setFromSlot(w.kinds[i].restricted, from)
		}
		return false
	}
	claimed := s.row(c.claimed, p)
	for m := w.positive; m != 0; m = m.Rest() {
		d := m.First()
		claimed[d] += w.need[d]
		c.cluster[d] -= w.need[d]
	}
	return true
}

// claimLoose claims for the single tasks of a job, one by one, each as if alone: runs of equal ones are claimed together.
func (s *State) claimLoose(p place, w *wait) {
	c, k := &s.claims, w.kinds[0].restricted
	if n := int64(w.pending - w.gang); len(w.kinds) == 1 {
		// What is saved leaves as much as before to tasks that are claimed, but less of the line: no further one can be.
		if n > 0 && s.claimRun(p, k, n) < n {
			s.saveOne(p, k)
		}
		return
	}
	c.failed = append(c.failed[:0], make([]bool, len(w.kinds))...)
	c.tried = append(c.tried[:0], c.failed...)
	failed, tried, skipped := 0, 0, w.gang
	for t := range s.first(w, w.pending) {
		if skipped > 0 {
			skipped--
			continue
		}
		k := s.restricted(t)
		i := w.indexOf(k)
		switch {
		case c.failed[i]:
		case s.claimRun(p, k, 1) > 0:
			// With more claims a task of a kind that could not be saved may be next to be.
			clear(c.tried)
			tried = 0
			continue
		case s.requests[k.request].positive != 0:
			c.failed[i] = true
			failed++
		default:
			continue
		}
		if !c.tried[i] {
			c.tried[i] = true
			tried++
			s.saveOne(p, k)
		}
		if failed == len(w.kinds) && (!c.saves || tried == len(w.kinds)) {
			return
		}
	}
}

// claimRun claims for at most n equal tasks and returns for how many. What cannot be claimed for one can be claimed for none after it.
func (s *State) claimRun(p place, k restricted, n int64) int64 {
	c, r := &s.claims, &s.requests[k.request]
	if r.positive == 0 || n == 0 || s.fromSlot(k) < 0 {
		return 0
	}
	if n = s.claimable(p, r.amount, r.positive, n); n < 1 {
		return 0
	}
	if n = s.placeRun(k, n); n > 0 {
		addTimes(s.row(c.claimed, p), r, n)
		addTimes(c.cluster, r, -n)
	}
	return n
}

// claimable returns how many times, at most n, a leaf may claim an amount beyond what it has claimed: it is entitled to it, within its
// limits, and the cluster has that much left.
func (s *State) claimable(p place, amount []int64, positive resource.Mask, n int64) int64 {
	c := &s.claims
	claimed, held := s.row(c.claimed, p), s.row(s.accounts.held, p)
	for m := positive; m != 0 && n > 0; m = m.Rest() {
		d := m.First()
		line := s.lineWithMemory(p, d)
		n = min(n, c.cluster[d]/amount[d], (line-held[d]-claimed[d])/amount[d])
		if c.cluster[d] < 0 || line < held[d]+claimed[d] {
			return 0
		}
	}
	for a := p; a != none && n > 0; a = s.tree.parent[a] {
		l := &s.limits[a]
		held := s.row(s.accounts.held, a)
		for m := positive & l.limited; m != 0; m = m.Rest() {
			d := m.First()
			room := l.capability[d] - held[d] - claimed[d]
			if n = min(n, room/amount[d]); room < 0 {
				return 0
			}
		}
	}
	return n
}

// placeRun takes room for at most n equal tasks, each on the first node that has it, and returns how many were placed.
func (s *State) placeRun(k restricted, n int64) int64 {
	c, r := &s.claims, &s.requests[k.request]
	if r.positive == 0 || len(s.v.NodeOrder) == 0 {
		return n
	}
	placed := int64(0)
	from := s.fromSlot(k)
	for placed < n && from >= 0 {
		slot, at := s.firstFit(k, r, from)
		if from = at; slot >= 0 {
			m := min(n-placed, c.nodes.times(slot, r))
			c.nodes.take(slot, r, m)
			placed += m
		}
	}
	s.setFromSlot(k, from)
	return placed
}

// firstFit returns the slot of the first node, not before from, on which claims leave room for a request, and where to go on next time;
// both are -1 if there is none.
func (s *State) firstFit(k restricted, r *request, from int32) (slot int, at int32) {
	h := &s.claims.nodes
	if k.set == model.AllNodes {
		slot = h.first(r, int(from))
		return slot, int32(slot)
	}
	for slots := s.slotsOf(k.set); int(from) < len(slots); from++ {
		if h.times(int(slots[from]), r) > 0 {
			return int(slots[from]), from
		}
	}
	return -1, -1
}

func (s *State) fromSlot(k restricted) int32 {
	if k.set == model.AllNodes {
		return s.claims.from[k.request]
	}
	return s.claims.fromOf[k]
}

func (s *State) setFromSlot(k restricted, from int32) {
	if k.set == model.AllNodes {
		s.claims.from[k.request] = from
	} else {
		s.claims.fromOf[k] = from
	}
}

// covers reports whether room is enough for an amount.
func covers(room, amount []int64, positive resource.Mask) bool {
	for m := positive; m != 0; m = m.Rest() {
		if d := m.First(); amount[d] > room[d] {
			return false
		}
	}
	return true
}

// aside returns what a queue must leave to others of a dimension: what the siblings of each place on its path withhold.
func (s *State) aside(p place, d int) int64 {
	s.formClaims()
	sum := int64(0)
	for ; p != 0; p = s.tree.parent[p] {
		sum += s.claims.claimed[int(s.tree.parent[p])*s.width+d] - s.claims.withheld[int(p)*s.width+d]
	}
	return sum
}

// Claims returns what a leaf claims of each dimension and what it must leave to others when it borrows; false if the queue is no leaf. The
// amounts are raw.
func (s *State) Claims(q model.QueueID, claimed, aside []int64) bool {
	p := s.servingPlace(q)
	if p == none {
		return false
	}
	s.formClaims()
	copy(claimed, s.row(s.claims.claimed, p))
	for d := range aside {
		aside[d] = s.aside(p, d)
	}
	return true
}

// formed are the claims of one version of the accounts.
type formed struct {
	version uint64
	known   bool
	// claimed is a row for each place: what a leaf claims, or what the children of a place withhold. withheld is what all others must leave
	// to the place: its claims and, where guarantees are reserved, at least what it lacks of its guarantee.
	claimed, withheld []int64
	// saved is a row for each leaf: the part of its claims that waits for tasks to end. nil without a memory.
	saved []int64
	// unused counts the claims that were formed since these were last asked for.
	unused int
}

// patience limits how often claims replace newer ones before those of the older version are given up.
const patience = 8

// recall reports whether claims of a version are kept, and makes them the present ones.
func (c *claims) recall(version uint64) bool {
	if c.known && c.version == version {
		return true
	}
	for i := range c.kept {
		if f := &c.kept[i]; f.known && f.version == version {
			f.unused = 0
			c.formed = *f
			return true
		}
	}
	return false
}

// begin makes room for the claims of a version. What is tried and rolled back again and again returns to one version: of two that are kept
// the newer one is replaced, unless the older one is not used any more.
func (c *claims) begin(version uint64, cells int, saves bool) {
	older, newer := &c.kept[0], &c.kept[1]
	if newer.known && newer.version < older.version {
		older, newer = newer, older
	}
	older.unused++
	f := newer
	if !older.known || newer.known && older.unused > patience {
		f = older
	}
	if f.claimed == nil {
		both := make([]int64, 2*cells)
		f.claimed, f.withheld = both[:cells], both[cells:]
		if saves {
			f.saved = make([]int64, cells)
		}
	}
	f.version, f.known, f.unused = version, true, 0
	c.formed = *f
}

// forget gives up all claims.
func (c *claims) forget() {
	c.known, c.kept[0].known, c.kept[1].known = false, false, false
}
