package kueue

// walk chooses the queues that lose workloads in fair sharing: from the root down the child with the largest share.
type walk struct {
	session *Session
	claim   *claim
	// left are the candidates of each queue, in their order.
	left map[int32][]int32
	// pruned are nodes without further candidates.
	pruned map[int32]bool
	// above are the cohorts above the claim's queue.
	above map[int32]bool
}

func (s *Session) newWalk(c *claim, candidates []int32) *walk {
	w := &walk{session: s, claim: c, left: map[int32][]int32{}, pruned: map[int32]bool{}, above: map[int32]bool{}}
	for id := s.nodes[c.w.queue].parent; id != none; id = s.nodes[id].parent {
		w.above[id] = true
	}
	for _, id := range candidates {
		queue := s.workloads[id].queue
		w.left[queue] = append(w.left[queue], id)
	}
	return w
}

func (w *walk) has(queue int32) bool { return len(w.left[queue]) > 0 }

// pop returns the first candidate of a queue, and takes it from the list.
func (w *walk) pop(queue int32) int32 {
	list := w.left[queue]
	w.left[queue] = list[1:]
	return list[0]
}

// drop leaves out a queue from now on.
func (w *walk) drop(queue int32) { w.pruned[queue] = true }

// next returns the queue that loses a workload, or none. Between two calls pop or drop is called for the queue.
func (w *walk) next() int32 {
	own := w.claim.w.queue
	if w.session.nodes[own].parent == none {
		if w.pruned[own] || !w.has(own) {
			return none
		}
		return own
	}
	root := w.session.trees[w.session.nodes[own].tree].root
	for !w.pruned[root] && w.session.spend(w.session.depth(own), 4) {
		if queue := w.descend(root); queue != none {
			return queue
		}
	}
	return none
}

// descend goes from a cohort down the children with the largest share. none: nodes were pruned.
func (w *walk) descend(cohort int32) int32 {
	for {
		if n := &w.session.nodes[cohort]; !w.session.spend(1+len(n.queues)+len(n.cohorts), 4) {
			w.pruned[cohort] = true
			return none
		}
		queue, cohortBelow := w.largestQueue(cohort), w.largestCohort(cohort)
		switch {
		case queue == none && cohortBelow == none:
			w.pruned[cohort] = true
			return none
		case cohortBelow == none:
			return queue
		case queue != none && compareShares(w.session.shareOf(cohortBelow), w.session.shareOf(queue)) < 0:
			return queue
		}
		cohort = cohortBelow
	}
}

// largestQueue returns the child queue with the largest share; of equal ones the one whose first candidate comes first.
func (w *walk) largestQueue(cohort int32) int32 {
	s, own := w.session, w.claim.w.queue
	largest := int32(none)
	for _, id := range s.nodes[cohort].queues {
		if w.pruned[id] {
			continue
		}
		h := s.shareOf(id)
		if !h.borrowing && id != own || !w.has(id) {
			w.pruned[id] = true
			continue
		}
		if largest == none {
			largest = id
			continue
		}
		order := compareShares(h, s.shareOf(largest))
		if order == 0 {
			order = s.compareCandidates(w.left[largest][0], w.left[id][0], own, false)
		}
		if order > 0 {
			largest = id
		}
	}
	return largest
}

// largestCohort returns the child cohort with the largest share. Of equal ones Kueue takes any; this is the first by name.
func (w *walk) largestCohort(cohort int32) int32 {
	s := w.session
	largest := int32(none)
	for _, id := range s.nodes[cohort].cohorts {
		if w.pruned[id] {
			continue
		}
		if h := s.shareOf(id); !h.borrowing && !w.above[id] {
			w.pruned[id] = true
		} else if largest == none || compareShares(h, s.shareOf(largest)) > 0 {
			largest = id
		}
	}
	return largest
}
