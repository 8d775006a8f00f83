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

// CompareVictimQueues puts the queue first whose ancestors have more in common with the claimant's: who is near pays first. A sibling of
// the claimant's queue is as near as that queue itself, and the root's children are as near as the root.
func (s *TreeState) CompareVictimQueues(l, r, claimant model.QueueID) int {
	if s.tree == nil {
		return 0
	}
	return cmp.Compare(s.nearness(r, claimant), s.nearness(l, claimant))
}

// nearness returns the depth of the lowest queue that is an ancestor of both; 0 where there is none.
func (s *TreeState) nearness(q, claimant model.QueueID) int {
	q, claimant = s.tree.Parent(q), s.tree.Parent(claimant)
	if q == model.None || claimant == model.None {
		return 0
	}
	return s.tree.Depth(s.tree.Common(q, claimant))
}
