package kueue

// grade is the mode of a search, with the victims that it found.
type grade uint8

const (
	noFit grade = iota
	// noCandidates: it would fit without other workloads, and none of these may be evicted.
	noCandidates
	// preempt: a victim is in the own queue.
	preempt
	// reclaim: all victims are in other queues.
	reclaim
	fit
)

// mode returns the mode that a grade amounts to.
func (g grade) mode() Mode {
	switch g {
	case noFit:
		return NoFit
	case fit:
		return Fit
	default:
		return Preempt
	}
}

// possibility returns what the search for victims found.
func (g grade) possibility() Possibility {
	switch g {
	case noCandidates:
		return NoCandidates
	case preempt:
		return OwnQueue
	case reclaim:
		return OtherQueues
	default:
		return NotSearched
	}
}

// outcome is the result of a search in a flavor.
type outcome struct {
	grade  grade
	borrow int32
}

// betterThan reports whether a is preferred to b.
func (a outcome) betterThan(b outcome, f Fungibility) bool {
	switch {
	case a.grade == noFit:
		return false
	case b.grade == noFit:
		return true
	case (a.grade == noCandidates) != (b.grade == noCandidates):
		return b.grade == noCandidates
	case f.PreferPreemption:
		return a.borrow < b.borrow || a.borrow == b.borrow && a.grade > b.grade
	}
	return a.grade > b.grade || a.grade == b.grade && a.borrow < b.borrow
}

// goesOn reports whether the next flavor is tried after this outcome.
func (a outcome) goesOn(f Fungibility) bool {
	switch a.grade {
	case noFit, noCandidates:
		return true
	case preempt, reclaim:
		if !f.PreemptStop {
			return true
		}
	case fit:
	}
	return a.borrow > 0 && f.BorrowNext
}

// assign gives flavors to the sets of a pending workload, one set after the other. counts are those of the sets if they are not the
// wanted ones; last is the former attempt after which this one goes on, or nil.
func (s *Session) assign(w *workload, counts []int32, last *Assignment) Assignment {
	q := &s.queues[w.queue]
	out := Assignment{Mode: Fit}
	if len(w.podSets) == 1 {
		// One allocation instead of two.
		one := &struct {
			set   [1]PodSetAssignment
			usage [1]Use
		}{}
		out.PodSets, out.Usage = one.set[:0], one.usage[:0]
	} else {
		out.PodSets = make([]PodSetAssignment, 0, len(w.podSets))
	}
	if len(w.podSets) == 0 {
		out.Mode = NoFit
	}
	for i := range w.podSets {
		set := &w.podSets[i]
		p := PodSetAssignment{Name: set.Name, Count: set.count}
		if counts != nil {
			p.Count = set.scaledCount(counts[i])
		}
		asked := s.asked(q, set, p.Count)
		s.assignSet(w, i, asked, &p, &out, last)
		if !s.spend(len(p.Flavors), q.width+len(p.Flavors)+len(out.Usage)) || !s.spend(len(p.Attempts), comparisons) {
			break
		}
		s.sortAttempts(p.Attempts)
		p.settle()
		for k := range p.Flavors {
			f := &p.Flavors[k]
			out.Borrows = max(out.Borrows, f.borrow)
			g, pos := q.groupOf(f.Resource)
			out.Usage = addUse(out.Usage, g.fr(g.flavorAt(f.Flavor), pos), f.Amount)
		}
		out.Mode = min(out.Mode, p.Mode)
		out.PodSets = append(out.PodSets, p)
		if p.failed || len(asked) > 0 && len(p.Flavors) == 0 {
			break
		}
	}
	if out.Mode == NoFit && s.spend(out.attempts(), q.width) {
		out.Cause = q.cause(&out)
	}
	return out
}

// flavorAt returns the position of a flavor in its group.
func (g *group) flavorAt(flavor int32) int {
	for i, f := range g.flavors {
		if f == flavor {
			return i
		}
	}
	return 0
}

// scaledCount returns the count of a set for an intended one: a set without pods stays as it is.
func (p *podSet) scaledCount(count int32) int32 {
	if p.count == 0 {
		return 0
	}
	return count
}

// scaled returns the request of so many pods of the set.
func (p *podSet) scaled(r request, count int32) Amount {
	if p.count == 0 || p.count == count {
		return r.amount
	}
	return (r.amount / Amount(p.count)).times(int64(count))
}

// asked returns the requests of a set, in the order in which they are looked at, with the number of pods if a group of the queue covers it.
// The result is valid until the next call.
func (s *Session) asked(q *queue, set *podSet, count int32) []request {
	out := s.scratch.asked[:0]
	pods := s.pods
	g, _ := q.groupOf(pods)
	covered := g != nil
	for _, r := range set.requests {
		if covered && r.resource == pods {
			continue
		}
		if covered && s.order[pods] < s.order[r.resource] {
			out, covered = append(out, request{pods, Amount(count)}), false
		}
		out = append(out, request{r.resource, set.scaled(r, count)})
	}
	if covered {
		out = append(out, request{pods, Amount(count)})
	}
	s.scratch.asked = out
	return out
}

// assignSet searches flavors for all requests of a set.
func (s *Session) assignSet(w *workload, i int, asked []request, p *PodSetAssignment, out *Assignment, last *Assignment) {
	q := &s.queues[w.queue]
	if !s.spend(len(asked), 1+len(q.groups)+len(asked)) {
		p.failed = true
		return
	}
	for _, r := range asked {
		g, _ := q.groupOf(r.resource)
		if g == nil {
			if r.amount == 0 || s.settings.IgnoreUndeclared {
				continue
			}
			p.Flavors, p.Lacks = nil, append(p.Lacks[:0], Lack{Kind: NotCovered, Flavor: none, Resource: r.resource})
			return
		}
		if p.flavorOf(r.resource) != nil {
			continue
		}
		search := search{session: s, w: w, set: i, group: g, asked: asked, out: out, start: s.start(last, i, r.resource)}
		search.run(r.resource)
		if !s.spend(len(p.Attempts), 2*len(search.attempts)+len(g.flavors)) {
			p.Flavors = nil
			return
		}
		p.merge(search.attempts, g)
		if search.failed || len(search.best) == 0 {
			p.Flavors, p.Lacks, p.failed = nil, search.lacks, search.failed
			return
		}
		if p.Flavors == nil {
			p.Flavors, p.Lacks = search.best, search.lacks
			continue
		}
		p.Flavors, p.Lacks = append(p.Flavors, search.best...), append(p.Lacks, search.lacks...)
	}
}

// start returns the position of the first flavor to try.
func (s *Session) start(last *Assignment, set int, resource int32) int {
	if !s.settings.FlavorFungibility {
		return 0
	}
	return last.start(set, resource)
}
