package kueue

import (
	"cmp"
	"slices"
	"strings"
)

// Victim is a workload that is evicted for another one.
type Victim struct {
	// Workload is a position in the cluster's list.
	Workload int32
	Reason   VictimReason
}

// VictimReason says by which rule a workload may be evicted.
type VictimReason uint8

// The rules.
const (
	InQueue VictimReason = iota
	InCohortReclamation
	InCohortReclaimWhileBorrowing
	InCohortFairSharing
)

// String returns Kueue's word for the reason.
func (r VictimReason) String() string {
	return [...]string{"InClusterQueue", "InCohortReclamation", "InCohortReclaimWhileBorrowing", "InCohortFairSharing"}[r]
}

// claim is what victims make room for.
type claim struct {
	w *workload
	// needed are the flavor-resources of which there is not enough, wanted is what shall fit in the end.
	needed []int32
	wanted []Use
}

// claimOf returns the claim of an assignment. As in Kueue, wanted lacks the resource that counts pods.
func (s *Session) claimOf(w *workload, a *Assignment) *claim {
	c := &claim{w: w}
	q := &s.queues[w.queue]
	for i := range a.PodSets {
		p := &a.PodSets[i]
		asked := len(p.Flavors) + len(w.podSets[i].requests)
		if !s.spend(asked, q.width+len(p.Flavors)+len(c.needed)+len(c.wanted)) {
			break
		}
		for k := range p.Flavors {
			f := &p.Flavors[k]
			g, covered := q.groupOf(f.Resource)
			fr := g.fr(g.flavorAt(f.Flavor), covered)
			if f.Mode == Preempt && !slices.Contains(c.needed, fr) {
				c.needed = append(c.needed, fr)
			}
		}
		for _, r := range w.podSets[i].requests {
			amount := w.podSets[i].scaled(r, p.Count)
			f := p.flavorOf(r.resource)
			if f == nil || amount == 0 {
				continue
			}
			g, covered := q.groupOf(r.resource)
			c.wanted = addUse(c.wanted, g.fr(g.flavorAt(f.Flavor), covered), amount)
		}
	}
	return c
}

// victims returns the workloads that are evicted for a claim, in Kueue's order; none if evictions do not help or are not allowed.
func (s *Session) victims(c *claim) []Victim {
	if s.settings.Fair {
		return s.fairVictims(c)
	}
	return s.classicalVictims(c)
}

// fits reports whether the wanted amounts fit now, and, if the queue may not borrow, into its own quota.
func (s *Session) fits(c *claim, borrow bool) bool {
	for _, u := range c.wanted {
		if !borrow && s.borrows(c.w.queue, u.FR, u.Amount) || u.Amount > max(0, s.available(c.w.queue, u.FR)) {
			return false
		}
	}
	return true
}

// fillBack puts back the victims that are not needed after all, from the last but one to the first. The last victim of the list takes the
// place of one that is put back, so that the order changes, as in Kueue.
func (s *Session) fillBack(c *claim, victims []Victim, borrow bool) []Victim {
	for i := len(victims) - 2; i >= 0 && s.spendVictim(c, victims[i].Workload); i-- {
		s.restore(victims[i].Workload)
		if !s.fits(c, borrow) {
			s.release(victims[i].Workload)
			continue
		}
		last := len(victims) - 1
		victims[i] = victims[last]
		victims = victims[:last]
	}
	return victims
}

func (s *Session) restoreAll(victims []Victim) {
	for _, v := range victims {
		s.restore(v.Workload)
	}
}

// candidates appends the workloads of a queue that a claim may evict by a choice.
func (s *Session) candidates(dst []int32, c *claim, queue int32, choice Choice) []int32 {
	for _, id := range s.queues[queue].admitted {
		w := &s.workloads[id]
		if !s.spend(1, 1+len(c.needed)*len(w.assigned)) {
			break
		}
		uses := func(fr int32) bool { return slices.Contains(c.needed, fr) }
		if !s.gone[id] && s.permits(choice, c.w, w) && slices.ContainsFunc(w.assigned, uses) {
			dst = append(dst, id)
		}
	}
	return dst
}

// permits reports whether a choice lets one workload evict another.
func (s *Session) permits(choice Choice, by, victim *workload) bool {
	const buffer = 5 * 60 * 1_000_000_000
	switch choice {
	case Any:
		return true
	case LowerPriority:
		return victim.priority < by.priority
	case LowerOrNewerEqualPriority:
		newer := victim.since > by.since
		if s.settings.SchedulerTimestampPreemptionBuffer {
			newer = newer && victim.since-by.since > buffer
		}
		return victim.priority < by.priority || victim.priority == by.priority && newer
	case Unset, Never:
	}
	return false
}

// compareCandidates orders candidates for a claim of a queue: those that are leaving anyway, those of other queues, of two local queues the
// one that used more, lower priority, later reservation, UID.
func (s *Session) compareCandidates(l, r, queue int32, local bool) int {
	a, b := &s.workloads[l], &s.workloads[r]
	usage := 0
	if local && a.queue == b.queue && a.LocalQueue != b.LocalQueue {
		usage = s.compareLocal(b, a)
	}
	return cmp.Or(
		compareBool(a.Evicted, b.Evicted), compareBool(a.queue != queue, b.queue != queue), usage, cmp.Compare(a.priority, b.priority),
		cmp.Compare(b.reserved, a.reserved), strings.Compare(a.UID, b.UID), cmp.Compare(l, r))
}

// compareBool orders what is true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (s *Session) sortCandidates(candidates []int32, queue int32) {
	slices.SortFunc(candidates, func(l, r int32) int { return s.compareCandidates(l, r, queue, true) })
}
