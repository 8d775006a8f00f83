package capacity

import (
	"cmp"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// PlaceQueues is policy.QueueOrderer.PlaceQueues. Of queues of equal shares those come last that are best effort.
func (s *State) PlaceQueues(queues []model.QueueID, places []policy.QueuePlace) bool {
	for i, q := range queues {
		// A share is no negative number; a NaN would not be ordered.
		if !(s.share[q] >= 0) {
			return false
		}
		places[i] = s.placeOf(q)
	}
	return true
}

func (s *State) placeOf(q model.QueueID) policy.QueuePlace {
	at := policy.PlaceOf(s.v.Queues[q].Priority, s.share[q])
	if s.bestEffort(q) {
		at.Low++
	}
	return at
}

// branching ranks leaves by their position in the tree. Its memory is reused.
type branching struct {
	// branch is valid where stamp is the current epoch.
	branch []branch
	stamp  []uint32
	epoch  uint32
	// rank is the rank of the leaf that was ranked last.
	rank uint64
	// siblings is a stack of the children of the nodes from the root to the current one.
	siblings []model.QueueID
}

// branch is a node with leaves to rank.
type branch struct {
	// child is the first of the children on the way to such leaves, next the next child of the same parent.
	child, next model.QueueID
	// leaves counts the leaves.
	leaves int32
	rank   uint64
}

// PlaceQueues is policy.QueueOrderer.PlaceQueues: queues of equal priority are placed by their rank among the given leaves of a walk
// through the tree that visits siblings by their shares. Siblings with equal shares do not order the leaves below them, which are then
// ordered by age: places exist only if each such sibling leads to one leaf.
func (s *TreeState) PlaceQueues(queues []model.QueueID, places []policy.QueuePlace) bool {
	if s.tree == nil || len(queues) == 0 {
		clear(places)
		return true
	}
	b := s.plant(queues)
	if b == nil || !s.rankBelow(s.tree.Root(), b, false) {
		return false
	}
	for i, q := range queues {
		places[i] = policy.PlaceOf(s.v.Queues[q].Priority, 0)
		places[i].Low = b.branch[q].rank
	}
	return true
}

// plant marks the paths from the root to the leaves. It returns nil if a queue is not a leaf.
func (s *TreeState) plant(leaves []model.QueueID) *branching {
	b := &s.branches
	if b.branch == nil {
		b.branch, b.stamp = make([]branch, len(s.v.Queues)), make([]uint32, len(s.v.Queues))
	}
	if b.epoch++; b.epoch == 0 {
		clear(b.stamp)
		b.epoch = 1
	}
	for _, q := range leaves {
		if !s.tree.IsLeaf(q) || q == s.tree.Root() {
			return nil
		}
		below := model.QueueID(model.None)
		for at := q; at != model.None; at = s.tree.Parent(at) {
			seen := b.stamp[at] == b.epoch
			if !seen {
				b.stamp[at], b.branch[at] = b.epoch, branch{child: model.None, next: model.None}
			}
			node := &b.branch[at]
			node.leaves++
			if below != model.None {
				b.branch[below].next, node.child = node.child, below
			}
			if below = at; seen {
				below = model.None
			}
		}
	}
	b.rank, b.siblings = 0, b.siblings[:0]
	return b
}

// rankBelow ranks the leaves below a node, which all have the same rank if tied. It returns false if they have no order.
func (s *TreeState) rankBelow(q model.QueueID, b *branching, tied bool) bool {
	if b.branch[q].child == model.None {
		if !tied {
			b.rank++
		}
		b.branch[q].rank = b.rank
		return true
	}
	from := len(b.siblings)
	for c := b.branch[q].child; c != model.None; c = b.branch[c].next {
		if math.IsNaN(s.share[c]) {
			return false
		}
		b.siblings = append(b.siblings, c)
	}
	siblings := b.siblings[from:]
	if len(siblings) > 1 {
		slices.SortFunc(siblings, func(l, r model.QueueID) int { return cmp.Or(s.compareShare(l, r), cmp.Compare(l, r)) })
	}
	for i := range siblings {
		c := b.siblings[from+i]
		alike := tied
		if i > 0 && s.compareShare(b.siblings[from+i-1], c) == 0 {
			if b.branch[b.siblings[from+i-1]].leaves > 1 || b.branch[c].leaves > 1 {
				return false
			}
			alike = true
		}
		if !s.rankBelow(c, b, alike) {
			return false
		}
	}
	b.siblings = b.siblings[:from]
	return true
}
