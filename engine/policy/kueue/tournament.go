package kueue

// tournament chooses the heads of a tree by shares: at each cohort the child wins whose share would be the lowest with its own winner.
type tournament struct {
	session *Session
	heads   []*head
	// ofQueue has the head of a queue that is not decided yet.
	ofQueue map[int32]*head
}

// level describes a head as seen at a child of a cohort, on the way from the head's queue to the root.
type level struct {
	cohort int32
	share  share
	// borrows: the child would borrow something that the head asks for.
	borrows bool
}

func (s *Session) newTournament(heads []*head) *tournament {
	t := &tournament{session: s, heads: heads, ofQueue: make(map[int32]*head, len(heads))}
	for _, h := range heads {
		t.ofQueue[h.queue] = h
	}
	return t
}

// next returns the head that is decided next: the winner of the tree of the first queue that is left, or nil.
func (t *tournament) next() *head {
	for len(t.heads) > 0 && t.heads[0].done {
		t.heads = t.heads[1:]
	}
	if len(t.heads) == 0 {
		return nil
	}
	h, s := t.heads[0], t.session
	if n := &s.nodes[h.queue]; n.parent != none {
		for _, other := range t.heads {
			if !other.done && s.nodes[other.queue].tree == n.tree {
				t.measure(other)
			}
		}
		if best := t.winner(s.trees[n.tree].root); best != nil {
			h = best
		}
	}
	h.done = true
	delete(t.ofQueue, h.queue)
	return h
}

// measure computes the shares on a head's way up, with what it would use.
func (t *tournament) measure(h *head) {
	s := t.session
	h.paths = h.paths[:0]
	if !s.spend(s.depth(h.queue), 3*(1+len(h.Usage))) {
		return
	}
	s.addAll(h.queue, h.Usage)
	child := h.queue
	for cohort := s.nodes[child].parent; cohort != none; cohort = s.nodes[cohort].parent {
		h.paths = append(h.paths, level{cohort, *s.shareOf(child), s.borrowsOf(child, h.Usage)})
		child = cohort
	}
	s.removeAll(h.queue, h.Usage)
}

// at returns the level of a head below a cohort.
func (h *head) at(cohort int32) *level {
	for i := range h.paths {
		if h.paths[i].cohort == cohort {
			return &h.paths[i]
		}
	}
	return nil
}

// winner returns the head that wins below a cohort, or nil.
func (t *tournament) winner(cohort int32) *head {
	n := &t.session.nodes[cohort]
	if !t.session.spend(1+len(n.cohorts)+len(n.queues), 4) {
		return nil
	}
	var best *head
	try := func(h *head) {
		if h != nil && (best == nil || t.before(h, best, cohort)) {
			best = h
		}
	}
	for _, child := range n.cohorts {
		try(t.winner(child))
	}
	for _, queue := range n.queues {
		try(t.ofQueue[queue])
	}
	return best
}

// before reports whether a head wins against another one below a cohort. Kueue takes any of equal ones; this is the first by name.
func (t *tournament) before(a, b *head, cohort int32) bool {
	s := t.session
	l, r := a.at(cohort), b.at(cohort)
	if !s.spend(len(a.paths)+len(b.paths), 1) || l == nil || r == nil {
		return false
	}
	if s.settings.FairSharingPrioritizeNonBorrowing && l.borrows != r.borrows {
		return !l.borrows
	}
	if order := compareShares(&l.share, &r.share); order != 0 {
		return order < 0
	}
	return s.compareHeads(&s.workloads[a.workload], &s.workloads[b.workload]) < 0
}
