package kueue

import "slices"

// candidate is a workload that may be evicted.
type candidate struct {
	workload int32
	// top is the lowest cohort above both queues; none in the own queue.
	top     int32
	variant variant
}

// variant says on what terms a candidate may be evicted.
type variant uint8

const (
	sameQueue variant = iota
	// hierarchical: the claim has the first right to the quota that the candidate uses.
	hierarchical
	// withoutBorrowing: only if the claim's queue does not borrow in the end.
	withoutBorrowing
	// whileBorrowing: even if it does.
	whileBorrowing
)

func (v variant) reason() VictimReason {
	switch v {
	case sameQueue:
		return InQueue
	case whileBorrowing:
		return InCohortReclaimWhileBorrowing
	default:
		return InCohortReclamation
	}
}

// classicalVictims evicts by priority and by the position in the tree.
func (s *Session) classicalVictims(c *claim) []Victim {
	q := &s.queues[c.w.queue]
	same := s.classify(nil, c, c.w.queue, none, false)
	ahead, others := s.outside(c)
	tries := []bool{true, false}
	switch {
	case len(ahead)+len(others) == 0 || !q.preemption.Borrow && !s.underNominal(c):
		tries = []bool{true}
	case !q.preemption.Borrow && len(ahead) == 0:
		tries = []bool{false, true}
	}
	if !s.spend(len(same)+len(ahead)+len(others), comparisons) {
		return nil
	}
	all := make([]candidate, 0, len(same)+len(ahead)+len(others))
	lists := [][]candidate{ahead, others, same}
	for _, evicted := range []bool{true, false} {
		for _, list := range lists {
			s.sortClassified(list, c.w.queue)
			for _, o := range list {
				if s.workloads[o.workload].Evicted == evicted {
					all = append(all, o)
				}
			}
		}
	}
	for _, borrow := range tries {
		if victims := s.tryClassical(c, all, borrow); victims != nil {
			return victims
		}
	}
	return nil
}

func (s *Session) sortClassified(list []candidate, queue int32) {
	slices.SortFunc(list, func(l, r candidate) int { return s.compareCandidates(l.workload, r.workload, queue, true) })
}

// tryClassical evicts candidate after candidate until the claim fits; nil if it never does.
func (s *Session) tryClassical(c *claim, all []candidate, borrow bool) []Victim {
	var victims []Victim
	for _, o := range all {
		if !s.spendVictim(c, o.workload) {
			break
		}
		if !s.stillValid(c, o, borrow) {
			continue
		}
		s.release(o.workload)
		victims = append(victims, Victim{o.workload, o.variant.reason()})
		if s.fits(c, borrow) {
			victims = s.fillBack(c, victims, borrow)
			s.restoreAll(victims)
			return victims
		}
	}
	s.restoreAll(victims)
	return nil
}

// stillValid reports whether a candidate may still be evicted: its queue, and the cohorts above it below the common one, use more than
// their own.
func (s *Session) stillValid(c *claim, o candidate, borrow bool) bool {
	if o.variant == sameQueue {
		return true
	}
	if borrow && o.variant == withoutBorrowing {
		return false
	}
	for id := s.workloads[o.workload].queue; id != none && id != o.top; id = s.nodes[id].parent {
		if s.withinQuota(id, c.needed) {
			return false
		}
	}
	return true
}

// underNominal reports whether the queue uses less than its own quota of each flavor-resource that is needed.
func (s *Session) underNominal(c *claim) bool {
	row := s.nodes[c.w.queue].row
	return !slices.ContainsFunc(c.needed, func(fr int32) bool { return s.quotas.nominal[row+fr] <= s.usage[row+fr] })
}

// classify appends the candidates of a queue.
func (s *Session) classify(dst []candidate, c *claim, queue, top int32, ahead bool) []candidate {
	preemption := &s.queues[c.w.queue].preemption
	choice := preemption.Reclaim
	if queue == c.w.queue {
		choice = preemption.Within
	}
	for _, id := range s.candidates(nil, c, queue, choice) {
		o := candidate{workload: id, top: top, variant: withoutBorrowing}
		priority := s.workloads[id].priority
		switch {
		case queue == c.w.queue:
			o.variant = sameQueue
		case ahead:
			o.variant = hierarchical
		case preemption.Borrow && priority < c.w.priority && (preemption.Threshold == nil || priority <= int64(*preemption.Threshold)):
			o.variant = whileBorrowing
		}
		dst = append(dst, o)
	}
	return dst
}

// outside returns the candidates of other queues: those over which the claim has the first right, and the others.
func (s *Session) outside(c *claim) (ahead, others []candidate) {
	n := &s.nodes[c.w.queue]
	if n.parent == none || s.queues[c.w.queue].preemption.Reclaim == Never {
		return nil, nil
	}
	rest := slices.Clone(c.wanted)
	first := s.within(c.w.queue, rest)
	seen := int32(none)
	for top := n.parent; top != none; top = s.nodes[top].parent {
		list := &others
		if first {
			list = &ahead
		}
		*list = s.below(*list, c, top, top, seen, first)
		if s.within(top, rest) {
			first = true
		}
		seen = top
	}
	return ahead, others
}

// within reports whether amounts fit into what a node has without borrowing, and takes from them what the node does not lend.
func (s *Session) within(id int32, amounts []Use) bool {
	n, fits := &s.nodes[id], true
	for i := range amounts {
		u := &amounts[i]
		if s.quotas.subtree[n.row+u.FR] < s.usage[n.row+u.FR].plus(u.Amount) {
			fits = false
		}
		u.Amount = max(0, u.Amount.minus(s.localAvailable(n, u.FR)))
	}
	return fits
}

// below appends the candidates below a cohort, except those below the cohort that was searched before. It skips nodes within their quota.
func (s *Session) below(dst []candidate, c *claim, cohort, top, seen int32, ahead bool) []candidate {
	if n := &s.nodes[cohort]; !s.spend(1+len(n.cohorts)+len(n.queues), 1+len(c.needed)) {
		return dst
	}
	for _, child := range s.nodes[cohort].cohorts {
		if child != seen && !s.withinQuota(child, c.needed) {
			dst = s.below(dst, c, child, top, seen, ahead)
		}
	}
	for _, queue := range s.nodes[cohort].queues {
		if queue != c.w.queue && !s.withinQuota(queue, c.needed) {
			dst = s.classify(dst, c, queue, top, ahead)
		}
	}
	return dst
}
