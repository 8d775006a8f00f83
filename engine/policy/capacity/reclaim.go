package capacity

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// trial is what queues would still have allocated after the victims chosen so far; the accounts themselves stay.
type trial struct {
	rows []resource.Row
	// rows[q] is valid if stamp[q] is the present epoch.
	stamp      []uint32
	epoch      uint32
	candidates []model.TaskID
	// tested are the ancestors that a candidate was tested at.
	tested []model.QueueID
}

func newTrial(n, width int) trial {
	return trial{rows: resource.NewAccounts(n, width), stamp: make([]uint32, n)}
}

func (t *trial) begin(candidates []model.TaskID) {
	t.candidates = append(t.candidates[:0], candidates...)
	if t.epoch++; t.epoch == 0 {
		clear(t.stamp)
		t.epoch = 1
	}
}

// left returns what a queue has left of its allocated.
func (s *State) left(q model.QueueID) *resource.Row {
	t := &s.reclaim
	if t.stamp[q] != t.epoch {
		t.stamp[q] = t.epoch
		t.rows[q].CopyFrom(s.allocated[q])
	}
	return &t.rows[q]
}

// Reclaimable judges the candidates in the order in which the session would evict them, and takes one that
//
//   - asks for a dimension that the claimant asks for, and leaves its queue what is guaranteed, in every dimension;
//   - comes from a queue that deserves nothing of what it asks for, or has more than it deserves of some of it; in the former case a
//     claimant that deserves nothing of what it asks for either takes nothing from under a common ancestor below the root within
//     AncestorReclaimLevel;
//   - passes the second test at each of the nearest ancestors below the root (AncestorReclaimLevel) where the claimant, as many levels up,
//     has another one.
//
// Each one taken is subtracted, where it was tested, before the next is judged. The vote is a permit even for no victims.
func (s *State) Reclaimable(
	claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds,
) ([]model.TaskID, policy.Vote) {
	if !s.takesPart[s.v.QueueOf(claimant)] {
		reason := policy.Because(name, policy.QueueTakesNoPart, s.v.QueueOf(claimant))
		if len(s.faults) > 0 {
			reason = refusal(s.faults[0])
		}
		for _, t := range candidates {
			g.Protect(t, reason)
		}
		return dst, policy.Reject
	}
	s.reclaim.begin(candidates)
	if s.v.SortVictims != nil {
		s.v.SortVictims(claimant, s.reclaim.candidates)
	}
	for _, t := range s.reclaim.candidates {
		if s.takes(claimant, t, g) {
			dst = append(dst, t)
		}
	}
	return dst, policy.Permit
}

// takes judges one candidate and subtracts it if it is taken.
func (s *State) takes(claimant, victim model.TaskID, g *policy.Grounds) bool {
	mine, theirs := s.v.QueueOf(claimant), s.v.QueueOf(victim)
	request := s.v.Request(victim)
	if !s.takesPart[theirs] || !s.shares(claimant, victim, g) || !s.sparesGuarantee(theirs, victim, g) {
		return false
	}
	if request.AtLeastThreshold()&s.some[theirs] == 0 && s.uncontended(claimant, mine, theirs) {
		g.Protect(victim, policy.Because(name, policy.BestEffortSubtree, theirs))
		return false
	}
	if !s.exceeds(theirs, victim, g) {
		return false
	}
	s.reclaim.tested = s.reclaim.tested[:0]
	for range s.level {
		if theirs = s.above(theirs); theirs == model.None || s.above(theirs) == model.None {
			break
		}
		if mine != model.None {
			mine = s.above(mine)
		}
		if mine == theirs {
			continue
		}
		if !s.exceeds(theirs, victim, g) {
			return false
		}
		s.reclaim.tested = append(s.reclaim.tested, theirs)
	}
	s.left(s.v.QueueOf(victim)).SubWithin(request)
	for _, q := range s.reclaim.tested {
		s.left(q).SubWithin(request)
	}
	return true
}

// shares reports whether claimant and candidate ask for a common dimension; `pods` is none.
func (s *State) shares(claimant, victim model.TaskID, g *policy.Grounds) bool {
	asked, offered := s.v.Request(claimant), s.v.Request(victim)
	common := asked.AtLeastThreshold() & offered.AtLeastThreshold() &^ s.v.Dims.Pods()
	if common == 0 {
		g.Protect(victim, policy.Because(name, policy.NoSharedDimension, s.v.QueueOf(victim)))
		return false
	}
	if g.Explains() {
		reason := policy.Because(name, policy.NoSharedDimension, s.v.QueueOf(victim))
		reason.Dimension = common.First()
		reason.Have, reason.Need = offered.V[reason.Dimension], asked.V[reason.Dimension]
		g.Pass(victim, reason)
	}
	return true
}

// sparesGuarantee reports whether a queue keeps its guarantee without the candidate, in every dimension, whether or not the candidate uses
// it.
func (s *State) sparesGuarantee(q model.QueueID, victim model.TaskID, g *policy.Grounds) bool {
	guarantee, request, left := s.guarantee[q], s.v.Request(victim), s.left(q)
	for m := guarantee.Has; m != 0; m = m.Rest() {
		if d := m.First(); guarantee.V[d]-(left.V[d]-request.V[d]) >= resource.Threshold {
			g.Protect(victim, s.comparison(policy.GuaranteeKept, q, d, *left, request, guarantee))
			return false
		}
	}
	if g.Explains() {
		for m := guarantee.Positive(); m != 0; m = m.Rest() {
			g.Pass(victim, s.comparison(policy.GuaranteeKept, q, m.First(), *left, request, guarantee))
		}
	}
	return true
}

// exceeds reports whether a queue deserves nothing of what the candidate asks for, or has strictly more than it deserves in a dimension of
// it that deserved names. `pods` can make the candidate one that the queue deserves something for, but never exceed.
func (s *State) exceeds(q model.QueueID, victim model.TaskID, g *policy.Grounds) bool {
	request := s.v.Request(victim)
	if request.AtLeastThreshold()&s.some[q] == 0 {
		if g.Explains() {
			g.Pass(victim, policy.Because(name, policy.WithinDeserved, q))
		}
		return true
	}
	left, deserved := *s.left(q), s.deserved[q]
	tested := request.Positive() & s.relevant[q]
	for m := tested; m != 0; m = m.Rest() {
		if d := m.First(); left.V[d] > deserved.V[d] {
			if g.Explains() {
				g.Pass(victim, s.comparison(policy.WithinDeserved, q, d, left, request, deserved))
			}
			return true
		}
	}
	if g != nil {
		reason := policy.Because(name, policy.WithinDeserved, q)
		if tested != 0 {
			reason = s.comparison(policy.WithinDeserved, q, tested.First(), left, request, deserved)
		}
		g.Protect(victim, reason)
	}
	return false
}

// uncontended reports whether a candidate that its queue deserves nothing for, and a claimant that its queue deserves nothing for, live
// below a common ancestor other than the root, AncestorReclaimLevel or less above both: there is nothing then that one could claim from
// the other.
func (s *State) uncontended(claimant model.TaskID, mine, theirs model.QueueID) bool {
	if s.level == 0 || s.v.Request(claimant).AtLeastThreshold()&s.some[mine] != 0 {
		return false
	}
	above, over := s.tree.Parent(mine), s.tree.Parent(theirs)
	if above == model.None || over == model.None {
		return false
	}
	common := s.tree.Common(above, over)
	at := s.tree.Depth(common)
	return at > 0 && s.tree.Depth(mine)-at <= s.level && s.tree.Depth(theirs)-at <= s.level
}
