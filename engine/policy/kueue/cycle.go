package kueue

import (
	"cmp"
	"slices"
	"strings"
)

// A cycle looks at one head of each queue. All heads are nominated on the usage at its begin, and then decided one by one in order, each on
// what the decisions before it have left: a victim is claimed once, and room that an earlier head took is gone. The cycle changes usage
// while it runs only; it is as before when the decisions are returned.

// Verdict is what a cycle decides of a head.
type Verdict uint8

// The verdicts.
const (
	// NotNominated: the workload may not be admitted, whatever the quota; see Workload.Withheld.
	NotNominated Verdict = iota
	// DoesNotFit: not without more quota.
	DoesNotFit
	// NoVictims: others would have to leave, and none may be evicted.
	NoVictims
	// Overlaps: a victim was claimed by an earlier head of the cycle.
	Overlaps
	// NoLongerFits: earlier heads of the cycle took the room.
	NoLongerFits
	// WaitsForVictims: its victims are evicted.
	WaitsForVictims
	// WaitsForOthers: it fits once the victims of earlier heads have left.
	WaitsForOthers
	// Admitted: quota is reserved.
	Admitted
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{
		"not nominated", "does not fit", "no victims", "victims overlap", "no longer fits", "waits for victims", "waits for others",
		"admitted",
	}[v]
}

// Skipped reports whether Kueue says that a head with this verdict was skipped.
func (v Verdict) Skipped() bool { return v == Overlaps || v == NoLongerFits }

// Decision is what a cycle decides of a head.
type Decision struct {
	Nomination

	// Workload is a position in the cluster's list, Queue one in its queues.
	Workload, Queue int32
	Verdict         Verdict
	// Evicts has the victims that this decision evicts; those that are leaving anyway are not among them.
	Evicts []Victim
}

// Cycle returns the decisions of one cycle about the first pending workload of each active queue, in the order in which they are made:
// first those about workloads that are not nominated. Kueue orders heads of different trees at random in fair sharing, and equal ones.
func (s *Session) Cycle() []Decision {
	usage := slices.Clone(s.usage)
	defer func() {
		copy(s.usage, usage)
		clear(s.known)
	}()
	var decisions []Decision
	heads := s.heads()
	nominated := heads[:0]
	for _, h := range heads {
		if s.workloads[h.workload].Withheld != "" {
			decisions = append(decisions, Decision{Workload: h.workload, Queue: h.queue})
			continue
		}
		nominated = append(nominated, h)
	}
	run := cycle{session: s, claimed: map[int32]bool{}}
	for next := s.ordered(nominated); ; {
		h := next()
		if h == nil {
			return decisions
		}
		decisions = append(decisions, run.decide(h))
	}
}

// head is the first workload of a queue.
type head struct {
	Nomination

	workload, queue int32
	done            bool
	// paths are the shares at each level of the tree; see tournament.
	paths []level
}

// heads nominates the first workload of each active queue, by the names of the queues.
func (s *Session) heads() []*head {
	var heads []*head
	for i := range s.queues {
		q := &s.queues[i]
		if !s.spend(1+len(q.pending), 1) {
			break
		}
		first := slices.IndexFunc(q.pending, func(id int32) bool { return !s.workloads[id].Parked && !s.booked[id] })
		if !q.active() || first < 0 {
			continue
		}
		h := &head{workload: q.pending[first], queue: int32(i)}
		if w := &s.workloads[h.workload]; w.Withheld == "" {
			if h.Nomination = s.nominate(w, nil); !s.keep(&h.Nomination) {
				break
			}
		}
		heads = append(heads, h)
	}
	slices.SortFunc(heads, func(a, b *head) int { return strings.Compare(s.nodes[a.queue].name, s.nodes[b.queue].name) })
	return heads
}

// ordered returns the heads one after the other, nil in the end.
func (s *Session) ordered(heads []*head) func() *head {
	if s.settings.Fair {
		return s.newTournament(heads).next
	}
	slices.SortStableFunc(heads, func(a, b *head) int {
		return cmp.Or(cmp.Compare(a.Borrows, b.Borrows), s.compareHeads(&s.workloads[a.workload], &s.workloads[b.workload]))
	})
	return func() *head {
		if len(heads) == 0 {
			return nil
		}
		h := heads[0]
		heads = heads[1:]
		return h
	}
}

// compareHeads orders heads of different queues: higher priority, earlier time.
func (s *Session) compareHeads(a, b *workload) int {
	if s.settings.PrioritySortingWithinCohort && a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Compare(a.since, b.since)
}

// cycle is what the heads of a cycle did so far.
type cycle struct {
	session *Session
	// claimed are the victims of the heads so far, order lists them.
	claimed map[int32]bool
	order   []int32
}

// decide decides about a head and books what it takes.
func (c *cycle) decide(h *head) Decision {
	s := c.session
	deferred := false
	if s.settings.RecomputeAssignmentUponPreemptionTargetsOverlap && c.overlaps(h.Victims) {
		deferred = c.recompute(h)
	}
	d := Decision{Nomination: h.Nomination, Workload: h.workload, Queue: h.queue}
	switch {
	case h.Mode == NoFit:
		d.Verdict = DoesNotFit
	case h.Mode == Preempt && len(h.Victims) == 0:
		d.Verdict = NoVictims
		s.reserve(h)
	case deferred:
		d.Mode, d.Verdict = DeferredFit, WaitsForOthers
		s.addAll(h.queue, h.Usage)
	case c.overlaps(h.Victims):
		d.Verdict = Overlaps
	case !c.fits(h):
		d.Verdict = NoLongerFits
	default:
		d.Verdict = Admitted
		s.addAll(h.queue, h.Usage)
		for _, v := range h.Victims {
			c.claimed[v.Workload] = true
			c.order = append(c.order, v.Workload)
			if !s.workloads[v.Workload].Evicted {
				d.Evicts = append(d.Evicts, v)
			}
		}
		if h.Mode == Preempt {
			d.Verdict = WaitsForVictims
		}
	}
	return d
}

func (c *cycle) overlaps(victims []Victim) bool {
	return slices.ContainsFunc(victims, func(v Victim) bool { return c.claimed[v.Workload] })
}

// fits reports whether a head still fits, with all victims gone.
func (c *cycle) fits(h *head) bool {
	s := c.session
	var gone []int32
	for _, v := range h.Victims {
		gone = append(gone, v.Workload)
	}
	gone = append(gone, c.order...)
	for _, id := range gone {
		if !s.spend(s.depth(h.queue), 1+s.moves(id)) {
			return false
		}
	}
	for _, id := range gone {
		s.release(id)
	}
	fits := s.fits(&claim{w: &s.workloads[h.workload], wanted: h.Usage}, true)
	for _, id := range gone {
		s.restore(id)
	}
	return fits
}

// recompute nominates a head again, in the flavors that were nominated, with the victims of earlier heads gone. It reports whether the head
// fits then.
func (c *cycle) recompute(h *head) bool {
	s := c.session
	for _, id := range c.order {
		if !s.spend(s.depth(h.queue), 1+s.moves(id)) {
			return false
		}
	}
	s.restricted = make([]flavoredSet, len(h.PodSets))
	for i := range h.PodSets {
		s.restricted[i] = flavoredSet{h.PodSets[i].Flavors}
	}
	for _, id := range c.order {
		s.release(id)
		s.gone[id] = true
	}
	h.Nomination = s.nominate(&s.workloads[h.workload], nil)
	for _, id := range c.order {
		s.restore(id)
		s.gone[id] = false
	}
	s.restricted = nil
	return h.Mode == Fit
}

// reserve keeps the quota that a head without victims would use, if its queue cannot always take it back.
func (s *Session) reserve(h *head) {
	if s.queues[h.queue].preemption.Reclaim == Any {
		return
	}
	n, a := &s.nodes[h.queue], &s.quotas
	amounts := make([]Use, 0, len(h.Usage))
	for _, u := range h.Usage {
		at := n.row + u.FR
		switch {
		case h.Borrows == 0:
			u.Amount = max(0, min(u.Amount, a.nominal[at].minus(s.usage[at])))
		case a.kept[at]&hasBorrowing != 0:
			u.Amount = min(u.Amount, a.nominal[at].plus(a.borrowing[at]).minus(s.usage[at]))
		}
		amounts = append(amounts, u)
	}
	s.addAll(h.queue, amounts)
}
