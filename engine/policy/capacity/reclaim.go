package capacity

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// A claimant's question about victims walks the candidates in order. What a queue has allocated falls with each that is chosen, in the
// trial and not in the accounts, so that a later candidate is tested against what the earlier ones leave its queue and those above it.

// trial holds the allocated amounts of queues after the victims chosen so far; the accounts do not change.
type trial struct {
	rows []resource.Row
	// rows[q] is valid if stamp[q] is the current epoch.
	stamp      []uint32
	epoch      uint32
	candidates []model.TaskID
	// queues are those of the candidates.
	queues []model.QueueID
	// tested are the ancestors at which a candidate was tested.
	tested []model.QueueID
}

// party is a claimant or a candidate.
type party struct {
	task  model.TaskID
	queue model.QueueID
	// request is the task's request; some and positive are the dimensions with at least Threshold and with more than 0.
	request        resource.Row
	some, positive resource.Mask
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

// left returns the remaining allocated amount of a queue.
func (s *State) left(q model.QueueID) resource.Row {
	if s.reclaim.stamp[q] == s.reclaim.epoch {
		return s.reclaim.rows[q]
	}
	return s.allocated[q]
}

// take subtracts a victim from the remaining amount of a queue.
func (s *State) take(q model.QueueID, request resource.Row) {
	t := &s.reclaim
	if t.stamp[q] != t.epoch {
		t.stamp[q] = t.epoch
		t.rows[q].CopyFrom(s.allocated[q])
	}
	t.rows[q].SubWithin(request)
}

// set makes p the party of a task, field by field, because it is read at once.
func (p *party) set(t model.TaskID, q model.QueueID, request resource.Row) {
	p.task, p.queue, p.request = t, q, request
	p.some, p.positive = request.AtLeastThreshold(), request.Positive()
}

// ReclaimClass returns the dimensions that a claimant asks for, which is all of it that counts if its queue takes part; none if it does
// not, since both claimants take nothing. Only ancestors that are tested connect the tasks of different queues.
func (s *State) ReclaimClass(claimant model.TaskID) (class uint64, local bool) {
	if s.takesPart[s.v.QueueOf(claimant)] {
		class = uint64(s.v.Request(claimant).AtLeastThreshold() &^ s.v.Dims.Pods())
	}
	return class, s.level == 0
}

// Reclaimable judges the candidates in the order in which the session would evict them, and takes one that
//
//   - asks for a dimension that the claimant asks for, and leaves its queue what is guaranteed, in every dimension;
//   - comes from a queue that deserves nothing of the requested dimensions, or has more than it deserves in one of them; in the former
//     case a claimant that deserves nothing of its own request takes nothing from under a common ancestor below the root within
//     AncestorReclaimLevel;
//   - passes the second test at each of the nearest ancestors below the root (AncestorReclaimLevel) where the claimant, as many levels up,
//     has another one.
//
// Each one taken is subtracted, where it was tested, before the next is judged. The vote is a permit even for no victims.
func (s *State) Reclaimable(
	claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds,
) ([]model.TaskID, policy.Vote) {
	var by, victim party
	by.set(claimant, s.v.QueueOf(claimant), s.v.Request(claimant))
	if !s.takesPart[by.queue] {
		reason := policy.Because(name, policy.QueueTakesNoPart, by.queue)
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
	s.reclaim.queues = s.v.QueuesOf(s.reclaim.candidates, s.reclaim.queues)
	for i, t := range s.reclaim.candidates {
		victim.set(t, s.reclaim.queues[i], s.v.Request(t))
		if s.shares(&by, &victim, g) && s.sparesGuarantee(&victim, g) && s.isOver(&by, &victim, g) {
			dst = append(dst, t)
			s.take(victim.queue, victim.request)
			for _, q := range s.reclaim.tested {
				s.take(q, victim.request)
			}
		}
	}
	return dst, policy.Permit
}

// GangEvictable takes every candidate of the claimant's queue, and of other queues those that leave their queue what is guaranteed, and
// come from one that deserves nothing of what they ask for or has more than it deserves of it. Neither what the claimant asks for nor
// ancestors count.
func (s *State) GangEvictable(claimant model.JobID, candidates, dst []model.TaskID) ([]model.TaskID, policy.Vote) {
	var victim party
	mine, vote := s.v.Jobs.At(claimant).Queue, policy.Permit
	s.reclaim.begin(nil)
	for i, t := range candidates {
		s.v.Yield(i)
		victim.set(t, s.v.QueueOf(t), s.v.Request(t))
		switch {
		case victim.queue == mine:
			dst = append(dst, t)
		case !s.takesPart[victim.queue]:
			vote = policy.Reject
		case s.sparesGuarantee(&victim, nil) && s.exceeds(victim.queue, &victim, nil):
			dst = append(dst, t)
			s.take(victim.queue, victim.request)
		}
	}
	return dst, vote
}

// isOver reports whether the candidate's queue and ancestors have more than they deserve, and sets tested to the ancestors tested.
func (s *State) isOver(by, victim *party, g *policy.Grounds) bool {
	s.reclaim.tested = s.reclaim.tested[:0]
	if victim.some&s.some[victim.queue] == 0 && s.uncontended(by, victim) {
		g.Protect(victim.task, policy.Because(name, policy.BestEffortSubtree, victim.queue))
		return false
	}
	if !s.exceeds(victim.queue, victim, g) {
		return false
	}
	mine, theirs := by.queue, victim.queue
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
	return true
}

// shares reports whether claimant and candidate request a common dimension other than `pods`.
func (s *State) shares(by, victim *party, g *policy.Grounds) bool {
	common := by.some & victim.some &^ s.v.Dims.Pods()
	if common == 0 {
		g.Protect(victim.task, policy.Because(name, policy.NoSharedDimension, victim.queue))
		return false
	}
	if g.Explains() {
		reason := policy.Because(name, policy.NoSharedDimension, victim.queue)
		reason.Dimension = common.First()
		reason.Have, reason.Need = victim.request.V[reason.Dimension], by.request.V[reason.Dimension]
		g.Pass(victim.task, reason)
	}
	return true
}

// sparesGuarantee reports whether a queue keeps its guarantee without the candidate, in every dimension, whether or not the candidate uses
// it.
func (s *State) sparesGuarantee(victim *party, g *policy.Grounds) bool {
	q := victim.queue
	guarantee, left := s.guarantee[q], s.left(q)
	for m := guarantee.Has; m != 0; m = m.Rest() {
		if d := m.First(); guarantee.V[d]-(left.V[d]-victim.request.V[d]) >= resource.Threshold {
			g.Protect(victim.task, s.comparison(policy.GuaranteeKept, q, d, left, victim.request, guarantee))
			return false
		}
	}
	if g.Explains() {
		for m := guarantee.Positive(); m != 0; m = m.Rest() {
			g.Pass(victim.task, s.comparison(policy.GuaranteeKept, q, m.First(), left, victim.request, guarantee))
		}
	}
	return true
}

// exceeds reports whether a queue deserves nothing of what the candidate asks for, or has strictly more than it deserves in a dimension of
// it that deserved names. `pods` can make the candidate one that the queue deserves something for, but never exceed.
func (s *State) exceeds(q model.QueueID, victim *party, g *policy.Grounds) bool {
	if victim.some&s.some[q] == 0 {
		if g.Explains() {
			g.Pass(victim.task, policy.Because(name, policy.WithinDeserved, q))
		}
		return true
	}
	left, deserved, tested := s.left(q), s.deserved[q], victim.positive&s.relevant[q]
	for m := tested; m != 0; m = m.Rest() {
		if d := m.First(); left.V[d] > deserved.V[d] {
			if g.Explains() {
				g.Pass(victim.task, s.comparison(policy.WithinDeserved, q, d, left, victim.request, deserved))
			}
			return true
		}
	}
	if g != nil {
		reason := policy.Because(name, policy.WithinDeserved, q)
		if tested != 0 {
			reason = s.comparison(policy.WithinDeserved, q, tested.First(), left, victim.request, deserved)
		}
		g.Protect(victim.task, reason)
	}
	return false
}

// uncontended reports whether the claimant's queue deserves nothing of what the claimant asks for, and shares an ancestor other than the
// root with the candidate's, AncestorReclaimLevel or less above both: where the candidate's queue deserves nothing either, there is nothing
// that one could claim from the other.
func (s *State) uncontended(by, victim *party) bool {
	if s.level == 0 || by.some&s.some[by.queue] != 0 {
		return false
	}
	mine, theirs := s.tree.Parent(by.queue), s.tree.Parent(victim.queue)
	if mine == model.None || theirs == model.None {
		return false
	}
	shared := s.tree.Depth(s.tree.Common(mine, theirs))
	return shared > 0 && s.tree.Depth(by.queue)-shared <= s.level && s.tree.Depth(victim.queue)-shared <= s.level
}
