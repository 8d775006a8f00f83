package fair

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// claims protect what entitled tasks could be given now; they are valid for one version of the accounts.
type claims struct {
	version uint64
	known   bool
	// claimed is a row for each place: what a leaf claims, or what the children of a place withhold. withheld is what all others must leave
	// to the place: its claims and, where guarantees are reserved, at least what it lacks of its guarantee.
	claimed, withheld []int64
	// cluster and nodes are what earlier claims leave free.
	cluster, nodes []int64
	placed         []placement
}

// placement is where a task of a block would be placed.
type placement struct {
	node    model.NodeID
	request *request
}

// formClaims forms the claims of all places anew if anything has changed.
func (s *State) formClaims() {
	c := &s.claims
	if c.known && c.version == s.version {
		return
	}
	leaves := s.ordered()
	s.openRooms()
	c.known, c.version = true, s.version
	if c.claimed == nil {
		cells := make([]int64, 2*s.tree.len()*s.width)
		c.claimed, c.withheld = cells[:len(cells)/2], cells[len(cells)/2:]
	}
	clear(c.claimed)
	s.clearRoom()
	for _, p := range leaves {
		s.claimLeaf(p)
	}
	s.withhold()
}

// clearRoom makes everything that is free open to claims.
func (s *State) clearRoom() {
	c := &s.claims
	c.cluster = append(c.cluster[:0], s.accounts.occupied...)
	for d := range c.cluster {
		c.cluster[d] = s.free(d)
	}
	c.nodes = append(c.nodes[:0], s.rooms.idle...)
	for n := range s.v.Nodes {
		for d := range s.width {
			c.nodes[n*s.width+d] = s.freeOn(model.NodeID(n), d)
		}
	}
}

// withhold sums the claims up the tree.
func (s *State) withhold() {
	c := &s.claims
	for p := place(s.tree.len()) - 1; p >= 0; p-- {
		claimed, withheld, held := s.row(c.claimed, p), s.row(c.withheld, p), s.row(s.accounts.held, p)
		for d := range withheld {
			withheld[d] = claimed[d]
			if s.plugin.ReserveGuarantee {
				withheld[d] = max(withheld[d], s.division.columns[d].lo[p]*s.quantum[d]-held[d])
			}
		}
		if p > 0 {
			add(s.row(c.claimed, s.tree.parent[p]), withheld)
		}
	}
}

// claimLeaf lets a leaf claim block by block. Where the rest of a gang is not claimed, neither are the further tasks of its job.
func (s *State) claimLeaf(p place) {
	for _, b := range s.blocksOf(p) {
		if len(b.gang) > 0 && !s.claim(p, b.gang) {
			continue
		}
		for i := range b.loose {
			s.claim(p, b.loose[i:i+1])
		}
	}
}

// claim reports whether a block is claimed, or is one of best effort, which needs no claim.
func (s *State) claim(p place, tasks []model.TaskID) bool {
	amount := s.scratch.request
	positive := s.sum(tasks, amount)
	if positive == 0 {
		return true
	}
	for m := positive; m != 0; m = m.Rest() {
		if d := m.First(); amount[d] > s.claims.cluster[d] {
			return false
		}
	}
	claimed := s.row(s.claims.claimed, p)
	add(amount, claimed)
	if !s.entitled(p, 2, amount, positive) {
		return false
	}
	if a, _ := s.exceeded(p, amount, positive); a != none {
		return false
	}
	if !s.claimRoom(tasks) {
		return false
	}
	for _, t := range tasks {
		addTimes(s.claims.cluster, s.requestOf(t), -1)
		addTimes(claimed, s.requestOf(t), 1)
	}
	return true
}

// claimRoom takes the room of tasks on the first nodes that have it, for all of them or for none.
func (s *State) claimRoom(tasks []model.TaskID) bool {
	c := &s.claims
	if len(s.v.NodeOrder) == 0 {
		return true
	}
	c.placed = c.placed[:0]
	for _, t := range tasks {
		r := s.requestOf(t)
		n := s.firstFit(r, s.v.NodeSetOf(t))
		if n == model.None {
			for _, p := range c.placed {
				addTimes(s.roomOf(c.nodes, p.node), p.request, 1)
			}
			return false
		}
		addTimes(s.roomOf(c.nodes, n), r, -1)
		c.placed = append(c.placed, placement{n, r})
	}
	return true
}

// firstFit returns the first node of a set that takes new tasks and on which claims leave room for a request.
func (s *State) firstFit(r *request, set model.NodeSetID) model.NodeID {
	for _, n := range s.v.NodeOrder {
		if covers(s.roomOf(s.claims.nodes, n), r.amount, r.positive) && s.v.Takes(n, set) {
			return n
		}
	}
	return model.None
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
	p := s.tree.at[q]
	if p == none || !s.tree.isLeaf(p) {
		return false
	}
	s.formClaims()
	copy(claimed, s.row(s.claims.claimed, p))
	for d := range aside {
		aside[d] = s.aside(p, d)
	}
	return true
}

// Wants reports whether a queue without children has a block, not of best effort, that it is entitled to.
func (s *State) Wants(q model.QueueID) bool {
	s.ordered()
	return s.order.wants[s.tree.at[q]]
}
