package kueue

import (
	"math"
	"slices"
)

// fairVictims evicts by shares.
func (s *Session) fairVictims(c *claim) []Victim {
	candidates := s.fairCandidates(c)
	if len(candidates) == 0 {
		return nil
	}
	if !s.spend(len(candidates), comparisons) {
		return nil
	}
	s.sortCandidates(candidates, c.w.queue)
	s.addAll(c.w.queue, c.wanted)
	strategies := s.settings.strategies()
	fits, victims, kept := s.firstStrategy(c, candidates, strategies[0])
	if !fits && len(strategies) > 1 {
		fits, victims = s.secondStrategy(c, kept, victims)
	}
	s.removeAll(c.w.queue, c.wanted)
	if !fits {
		s.restoreAll(victims)
		return nil
	}
	victims = s.fillBack(c, victims, true)
	s.restoreAll(victims)
	return victims
}

// fairCandidates returns the candidates of the own queue, and those of all queues of the tree that borrow something that is needed.
func (s *Session) fairCandidates(c *claim) []int32 {
	preemption := &s.queues[c.w.queue].preemption
	candidates := s.candidates(nil, c, c.w.queue, preemption.Within)
	n := &s.nodes[c.w.queue]
	if n.parent == none || preemption.Reclaim == Never {
		return candidates
	}
	stack := []int32{s.trees[n.tree].root}
	for len(stack) > 0 {
		cohort := &s.nodes[stack[len(stack)-1]]
		if !s.spend(1+len(cohort.cohorts)+len(cohort.queues), 1+len(c.needed)) {
			break
		}
		stack = append(stack[:len(stack)-1], cohort.cohorts...)
		for _, queue := range cohort.queues {
			if queue != c.w.queue && slices.ContainsFunc(c.needed, func(fr int32) bool { return s.borrows(queue, fr, 0) }) {
				candidates = s.candidates(candidates, c, queue, preemption.Reclaim)
			}
		}
	}
	return candidates
}

// fitsWithout reports whether the claim fits if it is not counted as used.
func (s *Session) fitsWithout(c *claim) bool {
	s.removeAll(c.w.queue, c.wanted)
	fits := s.fits(c, true)
	s.addAll(c.w.queue, c.wanted)
	return fits
}

// firstStrategy evicts until the claim fits. It returns whether it does, the victims, and the candidates that the strategy spared.
func (s *Session) firstStrategy(c *claim, candidates []int32, strategy Strategy) (fits bool, victims []Victim, kept []int32) {
	walk := s.newWalk(c, candidates)
	entitled := s.settings.FairSharingPreemptWithinNominal &&
		!slices.ContainsFunc(c.needed, func(fr int32) bool { return s.borrows(c.w.queue, fr, 0) })
	evict := func(id int32, reason VictimReason) bool {
		if !s.spendVictim(c, id) {
			return false
		}
		s.release(id)
		victims = append(victims, Victim{id, reason})
		return s.fitsWithout(c)
	}
	for queue := walk.next(); queue != none; queue = walk.next() {
		if queue == c.w.queue || entitled {
			reason := InCohortReclamation
			if queue == c.w.queue {
				reason = InQueue
			}
			if evict(walk.pop(queue), reason) {
				return true, victims, nil
			}
			continue
		}
		own, other := s.sides(c.w.queue, queue)
		mine, theirs := *s.shareOf(own), *s.shareOf(other)
		if math.IsInf(mine.weighted(), 1) && !math.IsInf(theirs.weighted(), 1) {
			for walk.has(queue) {
				kept = append(kept, walk.pop(queue))
			}
			continue
		}
		for walk.has(queue) {
			id := walk.pop(queue)
			if !s.passes(strategy, id, &mine, &theirs, other) {
				kept = append(kept, id)
				continue
			}
			if evict(id, InCohortFairSharing) {
				return true, victims, nil
			}
			break
		}
	}
	return false, victims, kept
}

// passes applies a strategy to a candidate.
func (s *Session) passes(strategy Strategy, id int32, mine, theirs *share, other int32) bool {
	if strategy == InitialShare {
		return compareShares(mine, theirs) < 0
	}
	if !s.spend(s.depth(s.workloads[id].queue), 1+s.moves(id)) {
		return false
	}
	s.release(id)
	left := *s.shareOf(other)
	s.restore(id)
	return compareShares(mine, &left) <= 0
}

// secondStrategy evicts one workload of each queue whose side has the larger share.
func (s *Session) secondStrategy(c *claim, kept []int32, victims []Victim) (bool, []Victim) {
	walk := s.newWalk(c, kept)
	for queue := walk.next(); queue != none; queue = walk.next() {
		own, other := c.w.queue, queue
		if queue != c.w.queue {
			own, other = s.sides(c.w.queue, queue)
		}
		id := walk.pop(queue)
		if compareShares(s.shareOf(own), s.shareOf(other)) < 0 {
			if !s.spendVictim(c, id) {
				break
			}
			s.release(id)
			victims = append(victims, Victim{id, InCohortFairSharing})
			if s.fitsWithout(c) {
				return true, victims
			}
		}
		walk.drop(queue)
	}
	return false, victims
}

// sides returns the nodes just below the lowest common cohort of two queues, on the side of each.
func (s *Session) sides(l, r int32) (left, right int32) {
	depth := func(id int32) int {
		n := 0
		for ; s.nodes[id].parent != none; id = s.nodes[id].parent {
			n++
		}
		return n
	}
	a, b := depth(l), depth(r)
	for ; a > b; a-- {
		l = s.nodes[l].parent
	}
	for ; b > a; b-- {
		r = s.nodes[r].parent
	}
	for s.nodes[l].parent != s.nodes[r].parent {
		l, r = s.nodes[l].parent, s.nodes[r].parent
	}
	return l, r
}
