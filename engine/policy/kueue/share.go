package kueue

import (
	"cmp"
	"math"
)

// share is the dominant resource share of a node: what it borrows of a resource, in thousandths of what the children of its parent could
// have, for the resource of which this is most.
type share struct {
	unweighted, weight float64
	// resource is the dominant one, or none.
	resource int32
	// borrowing may be true with a share of 0: where nothing can be lent.
	borrowing bool
}

// weighted returns the share over the weight of the node; +Inf for a share with weight 0.
func (h *share) weighted() float64 {
	switch {
	case h.unweighted == 0:
		return 0
	case h.weight == 0:
		return math.Inf(1)
	}
	return h.unweighted / h.weight
}

// unbounded reports whether a node of weight 0 borrows.
func (h *share) unbounded() bool { return h.weight == 0 && h.unweighted != 0 }

// compareShares orders shares. Those of weight 0 come after all others, among themselves by what they borrow.
func compareShares(a, b *share) int {
	switch {
	case a.unbounded() && b.unbounded():
		return cmp.Compare(a.unweighted, b.unweighted)
	case a.unbounded():
		return 1
	case b.unbounded():
		return -1
	}
	return cmp.Compare(a.weighted(), b.weighted())
}

// shareOf returns the share of a node.
func (s *Session) shareOf(id int32) *share {
	if tree := s.nodes[id].tree; !s.known[id] {
		if tree != none {
			s.spend(1, len(s.trees[tree].pairs))
		}
		s.shares[id], s.known[id] = s.computeShare(id), true
	}
	return &s.shares[id]
}

func (s *Session) computeShare(id int32) share {
	n, a := &s.nodes[id], &s.quotas
	h := share{weight: n.weight, resource: none}
	if n.parent == none {
		return h
	}
	t := &s.trees[n.tree]
	lendable := a.lendable[s.nodes[n.parent].lendable:]
	frs := int32(len(t.pairs))
	for fr := int32(0); fr < frs; {
		resource := t.resource[fr]
		var borrowed Amount
		for ; fr < frs && t.resource[fr] == resource; fr++ {
			at := n.row + fr
			if a.kept[at]&hasSubtree == 0 {
				continue
			}
			if over := s.usage[at].minus(a.subtree[at]); over > 0 {
				borrowed = borrowed.plus(over)
			}
		}
		if borrowed == 0 {
			continue
		}
		h.borrowing = true
		if lendable[resource] <= 0 {
			continue
		}
		ratio := float64(borrowed) * 1000 / float64(lendable[resource])
		if ratio > h.unweighted {
			h.unweighted, h.resource = ratio, t.resources[resource]
		}
	}
	return h
}

// borrowsOf reports whether a node borrows a flavor-resource that is asked for.
func (s *Session) borrowsOf(id int32, asked []Use) bool {
	n := &s.nodes[id]
	for _, u := range asked {
		at := n.row + u.FR
		if u.Amount > 0 && s.quotas.kept[at]&hasSubtree != 0 && s.usage[at] > s.quotas.subtree[at] {
			return true
		}
	}
	return false
}
