package capacity

import (
	"cmp"

	"github.com/apportion/apportion/engine/model"
)

// CompareQueues puts the queue of higher priority first, then the one with the smaller share, then the one that deserves something.
func (s *State) CompareQueues(l, r model.QueueID) int {
	if by := s.comparePriority(l, r); by != 0 {
		return by
	}
	return s.compareShare(l, r)
}

// comparePriority puts the queue of higher priority first.
func (s *State) comparePriority(l, r model.QueueID) int {
	return cmp.Compare(s.v.Queues[r].Priority, s.v.Queues[l].Priority)
}

// compareShare puts the smaller share first, and of equal shares the queue that is not best effort.
func (s *State) compareShare(l, r model.QueueID) int {
	switch {
	case s.share[l] < s.share[r]:
		return -1
	case s.share[l] > s.share[r]:
		return 1
	case s.bestEffort(l) == s.bestEffort(r):
		return 0
	case s.bestEffort(r):
		return -1
	}
	return 1
}

// CompareQueues puts the queue of higher priority first, leaves before inner queues, and otherwise goes by shares: of two inner queues
// their own, of two leaves those of the branches that lead to them from where their paths part. A refused tree has no order.
func (s *TreeState) CompareQueues(l, r model.QueueID) int {
	if s.tree == nil {
		return 0
	}
	if by := s.comparePriority(l, r); by != 0 {
		return by
	}
	switch lLeaf, rLeaf := s.tree.IsLeaf(l), s.tree.IsLeaf(r); {
	case lLeaf && !rLeaf:
		return -1
	case rLeaf && !lLeaf:
		return 1
	case lLeaf:
		l, r = s.tree.Branches(l, r)
	}
	return s.compareShare(l, r)
}

// nearness caches how near queues are to one claimant's queue, because a sort compares the same few queues repeatedly.
type nearness struct {
	to model.QueueID
	// depth[q] is valid if stamp[q] is the current epoch.
	depth []uint32
	stamp []uint32
	epoch uint32
}

func newNearness(n int) nearness {
	return nearness{to: model.None, depth: make([]uint32, n), stamp: make([]uint32, n)}
}

// from clears the cache if it belongs to another claimant.
func (n *nearness) from(claimant model.QueueID) {
	if n.to == claimant {
		return
	}
	n.to = claimant
	if n.epoch++; n.epoch == 0 {
		clear(n.stamp)
		n.epoch = 1
	}
}

// Nearness returns the depth of the lowest queue that is an ancestor of both q and the claimant's queue; 0 where there is none. A sibling
// of the claimant's queue is as near as that queue itself, and the root's children are as near as the root.
func (s *TreeState) Nearness(q, claimant model.QueueID) uint32 {
	if s.tree == nil {
		return 0
	}
	near := &s.near
	near.from(claimant)
	if near.stamp[q] != near.epoch {
		near.stamp[q], near.depth[q] = near.epoch, 0
		if up, to := s.tree.Parent(q), s.tree.Parent(near.to); up != model.None && to != model.None {
			near.depth[q] = uint32(s.tree.Depth(s.tree.Common(up, to)))
		}
	}
	return near.depth[q]
}
