package odds

import "cmp"

// nextQueue returns the queue that is served next, -1 if none is.
func (r *run) nextQueue() int {
	r.findWants()
	best := -1
	for q, n := range r.open {
		if n > 0 && (best < 0 || r.compareQueues(q, best) < 0) {
			best = q
		}
	}
	r.left -= int64(len(r.open))
	return best
}

// compareQueues compares two queues by order of service: by priority, then those first that have something waiting which they deserve,
// then by how much of their parts they use.
func (r *run) compareQueues(q, other int) int {
	if r.Entitles {
		return r.compareSiblings(r.branches(q, other))
	}
	if mine, its := r.Queues[q].Priority, r.Queues[other].Priority; mine != its {
		return cmp.Compare(its, mine)
	}
	q, other = r.branches(q, other)
	return cmp.Compare(r.ratio[q], r.ratio[other])
}

func (r *run) compareSiblings(q, other int) int {
	mine, its := &r.Queues[q], &r.Queues[other]
	switch {
	case mine.Priority != its.Priority:
		return cmp.Compare(its.Priority, mine.Priority)
	case r.wants[q] != r.wants[other]:
		if r.wants[q] {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(r.ratio[q], r.ratio[other]), cmp.Compare(q, other))
}

// branches returns the queues on the paths to two queues from where these part.
func (r *run) branches(q, other int) (mine, its int) {
	if !r.Branches {
		return q, other
	}
	for q != other && r.Queues[q].Parent != r.Queues[other].Parent {
		switch {
		case r.depth[q] > r.depth[other]:
			q = r.Queues[q].Parent
		case r.depth[q] < r.depth[other]:
			other = r.Queues[other].Parent
		default:
			q, other = r.Queues[q].Parent, r.Queues[other].Parent
		}
		r.left--
	}
	return q, other
}

// measureDepths finds how many queues are above each.
func (b *Base) measureDepths() {
	b.depth = make([]int, len(b.Queues))
	for q := range b.depth {
		for up := b.Queues[q].Parent; up >= 0; up = b.Queues[up].Parent {
			b.depth[q]++
		}
	}
}

// findWants says which queues have something waiting that is within what they deserve, or are above such queues.
func (r *run) findWants() {
	if !r.Entitles {
		return
	}
	clear(r.wants)
	for q := range r.Queues {
		if r.wants[q] || !r.entitled(q) {
			continue
		}
		for up := q; up >= 0 && !r.wants[up]; up = r.Queues[up].Parent {
			r.wants[up] = true
		}
	}
}

// rate finds how much of its part a queue uses.
func (r *run) rate(q int) {
	r.ratio[q] = r.Queues[q].Ratio
	parts := r.Queues[q].Part
	if r.Capped {
		parts = r.part[q]
	}
	for d, part := range parts {
		switch used := r.used[q][d]; {
		case part > 0:
			r.ratio[q] = max(r.ratio[q], used/part)
		case used > slack:
			r.ratio[q] = max(r.ratio[q], 1)
		}
	}
}

// use adds to what a queue and all above it use, times an amount.
func (r *run) use(q int, amount []float64, times float64) {
	addTo(r.used[q], amount, times)
	r.rate(q)
	for up := r.Queues[q].Parent; up >= 0; up = r.Queues[up].Parent {
		if addTo(r.used[up], amount, times); r.Entitles {
			r.rate(up)
		}
	}
}

// rateBranches finds how much of its part each queue uses when a round begins. Unless it Entitles, the policy compares branches by that
// until the round ends (Volcano's capacity).
func (r *run) rateBranches() {
	if r.Branches && !r.Entitles {
		for q := range r.Queues {
			r.rate(q)
		}
		r.left -= int64(len(r.Queues))
	}
}
