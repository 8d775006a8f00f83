package hdrf

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/dominant"
)

// CompareQueues walks both queues' paths from the root. At the first level at which they differ, the unsaturated node comes first, then
// the one of the smaller share / weight. Where one path is the beginning of the other, the queues are equal.
func (s *State) CompareQueues(l, r model.QueueID) int {
	c, _, _ := s.settled().compare(s.tree.path(l), s.tree.path(r))
	return c
}

// PlaceQueues returns false: queues on one path are equal to each other, and not all of them to a third one.
func (*State) PlaceQueues([]model.QueueID, []policy.QueuePlace) bool { return false }

// compare also returns the share / weight of both nodes at the level that decided. A part of a path that no job lies under counts as
// saturated and empty: no job asks for anything there. (Volcano dereferences nil.)
func (v *values) compare(l, r []int32) (c int, left, right float64) {
	for i := range min(len(l), len(r)) {
		if l[i] == r[i] {
			continue
		}
		var lFull, rFull bool
		lFull, left = v.standing(l[i])
		rFull, right = v.standing(r[i])
		switch {
		case lFull != rFull && rFull:
			return -1, left, right
		case lFull != rFull:
			return 1, left, right
		case left < right:
			return -1, left, right
		case left > right:
			return 1, left, right
		}
	}
	return 0, left, right
}

func (v *values) standing(i int32) (saturated bool, weighted float64) {
	if i == missing {
		return true, 0
	}
	return v.saturated[i], v.share[i] / v.tree.nodes[i].weight
}

// Reclaimable takes a candidate if the claimant's queue, having gained the claimant, comes before the candidate's queue without the
// candidate. Each candidate is put back before the next is tried, so victims do not add up. As in Volcano, a job is put back as it was
// before the question: after a candidate of the claimant's own job the claimant is no longer counted in the tree.
func (s *State) Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	if s.trial == nil {
		s.trial = newValues(s.view, s.tree, s.Jobs, s.request)
	}
	mine := s.view.Tasks.At(claimant).Job
	path := s.tree.path(s.view.Jobs.At(mine).Queue)
	gain := s.view.Request(claimant)
	s.gained.CopyFrom(*s.Allocated(mine))
	s.gained.Add(gain)
	s.try(mine, true)
	for i, t := range candidates {
		if s.view.Stopped(i) {
			break
		}
		j := s.view.Tasks.At(t).Job
		loss := s.view.Request(t)
		s.left.CopyFrom(*s.Allocated(j))
		s.left.SubWithin(loss)
		s.try(j, false)
		s.trial.settle(s.demanding(gain, loss))
		c, have, limit := s.trial.compare(path, s.tree.path(s.view.Jobs.At(j).Queue))
		s.end(j)
		switch {
		case c >= 0:
			g.Protect(t, s.behind(j, have, limit))
			continue
		case g.Explains():
			g.Pass(t, s.behind(j, have, limit))
		}
		dst = append(dst, t)
	}
	s.end(mine)
	return dst, policy.Permit
}

// try gives the leaf of a job the account that it would have with the claimant, or without the candidate.
func (s *State) try(j model.JobID, gains bool) {
	leaf, account := s.tree.leaf[j], &s.left
	if gains {
		account = &s.gained
	}
	if leaf != missing {
		share, _ := s.Of(*account)
		s.trial.place(leaf, account, share)
	}
}

// end gives the leaf of a job its account back.
func (s *State) end(j model.JobID) {
	if leaf := s.tree.leaf[j]; leaf != missing {
		s.trial.place(leaf, s.Allocated(j), s.Share(j))
	}
}

func (s *State) behind(j model.JobID, have, limit float64) policy.Reason {
	because := policy.Because(dominant.Name, policy.HierarchyOrder, s.view.Jobs.At(j).Queue)
	because.Have, because.Limit = have, limit
	return because
}
