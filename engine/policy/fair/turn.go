package fair

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Turns lets a gang that cannot start now hold a reservation: the earliest time, and the nodes, at which it has room as running jobs end.
// Until then nothing starts that would still be in its way.
type Turns struct {
	// Wait is how long a gang must have waited, in nanoseconds; not negative.
	Wait int64
	// SingleWait is how long a job of one task must have waited to hold a reservation as gangs do, in nanoseconds. 0: it holds none.
	SingleWait int64
}

// turning is a State with turns. It also says which nodes a task may use.
type turning struct{ *State }

// Unwrap returns the State.
func (t *turning) Unwrap() policy.State { return t.State }

// Fits reports whether a task may start on a node: it ends before the reservation begins, or the node has room for both.
func (t *turning) Fits(task model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	r := t.reservationBefore([]model.TaskID{task})
	if r == nil {
		return true
	}
	spare := t.spareOn(r, n)
	if q := t.requestOf(task); spare == nil || covers(spare, q.amount, q.positive) {
		return true
	}
	why.Add(t.becauseReserved(r))
	return false
}

// FitClass tells the gang that holds the reservation from others, and these by when they end.
func (t *turning) FitClass(j model.JobID) int64 {
	switch r := t.reserved(); {
	case r == nil:
		return 0
	case r.job == j:
		return -1
	}
	return t.ends.of[j]
}

// becauseReserved names the gang whose room is kept, and in how many seconds it can start.
func (s *State) becauseReserved(r *reservation) policy.Reason {
	reason := policy.Because(name, policy.Reserved, s.tree.queue[r.leaf])
	reason.Detail, reason.Have = s.v.Jobs.At(r.job).UID, float64((r.from-s.v.AsOf)/nanoseconds)
	return reason
}

// takesTurns reports whether gangs may hold reservations: the setting allows it, and the snapshot says of some queue what it was entitled
// to. Without that no queue earns a turn, and every answer is that of a policy without turns.
func (s *State) takesTurns() bool {
	if s.plugin.Turns == nil || s.memory == nil {
		return false
	}
	return slices.ContainsFunc(s.memory.queues, func(of *model.QueueMemory) bool { return of != nil && of.Entitled != nil })
}

// openTurns finds when jobs are expected to end.
func (s *State) openTurns() {
	s.turns = s.plugin.Turns
	present := s.v.Present()
	s.v.Work.Use(len(present), 1+bits.Len(uint(len(present))))
	s.ends.of = make([]int64, s.v.Jobs.Len())
	for i, j := range present {
		s.v.Yield(i)
		s.ends.of[j] = s.v.LikelyEnd(j)
		if s.ends.of[j] != endless {
			s.ends.jobs = append(s.ends.jobs, j)
		}
	}
	slices.SortFunc(s.ends.jobs, func(l, r model.JobID) int {
		return cmp.Or(cmp.Compare(s.ends.of[l], s.ends.of[r]), cmp.Compare(s.v.Jobs.At(l).UID, s.v.Jobs.At(r).UID))
	})
}

// endless is the end of a job whose end is not known.
const endless = policy.Endless

// ends are the times at which jobs are expected to end: those that ran when the session was opened, and all others if they started then.
type ends struct {
	of []int64
	// jobs are those with an end, in its order.
	jobs []model.JobID
}

// runs reports whether a job has tasks that run.
func (s *State) runs(j model.JobID) bool { return s.v.Account(j).Holding() > 0 }

// earned reports whether a job may start that needs so much: its queue is entitled to it. A gang may also start if its queue, and every
// queue above it that is not entitled to the gang, has used and reserved about as much as it was entitled to; one task is no block that a
// queue could be entitled to a part of. held is what a place on the path of the job holds then.
func (s *State) earned(j model.JobID, p place, held func(place) []int64, need []int64, positive resource.Mask) bool {
	gang := s.v.Jobs.At(j).MinAvailable > 1
	for ; p > 0; p = s.tree.parent[p] {
		row, within := held(p), true
		for m := positive; m != 0; m = m.Rest() {
			d := m.First()
			if row[d]+need[d] <= s.lineWithMemory(p, d) {
				continue
			}
			if within = false; !gang || !s.hasCredit(p, d) {
				return false
			}
		}
		if within {
			// Lines of siblings add up to no more than their parent's.
			return true
		}
	}
	return true
}

// tolerance is the part of what a queue was entitled to that it may have used and reserved beyond it, and still have credit. A queue that
// asks for gangs can cost the others this much more than its part in the long run, whatever their sizes. Without it each gang waits, while
// its room is free, until what the last one used is made up for to the last second.
const tolerance = 32

// hasCredit reports whether a place is known to have used, and kept idle for its gangs, no more of a dimension than it was entitled to, and
// a thirty-second of that.
func (s *State) hasCredit(p place, d int) bool {
	if s.memory == nil || s.memory.usage[p] == nil || s.memory.queues[p].Entitled == nil {
		return false
	}
	reserved, entitled := int64(0), s.memory.queues[p].Entitled.At(d)
	if of := s.memory.reserved[p]; of != nil {
		reserved = of.At(d)
	}
	// No amount is below 0, so that none of these differences overflows.
	return s.memory.usage[p].At(d)-entitled <= entitled/tolerance-reserved
}

// permitTurn is the verdict on tasks after that by lines and limits: the gang whose turn it is may start, and nothing else that is in its
// way.
func (s *State) permitTurn(
	p place, tasks []model.TaskID, amount []int64, positive resource.Mask, reason policy.Reason, permitted bool,
) (policy.Reason, bool) {
	if len(tasks) == 0 || !permitted && reason.Code != policy.NotIdle {
		return reason, permitted
	}
	r := s.reserved()
	switch {
	case r == nil:
	case permitted:
		if before := s.reservationBefore(tasks); before != nil && s.disturbs(before, p, amount, positive) {
			return s.becauseReserved(before), false
		}
	case s.isHolder(r, tasks) && r.from <= s.v.AsOf && covers(r.need, amount, positive):
		return policy.Because(name, policy.Entitled, s.tree.queue[p]), true
	}
	return reason, permitted
}

func (s *State) isHolder(r *reservation, tasks []model.TaskID) bool {
	return s.v.Tasks.At(tasks[0]).Job == r.job
}

// reservationBefore returns the reservation that tasks must leave room for; nil if there is none, if it is their own, or if they end before
// it begins. The tasks belong to one job.
func (s *State) reservationBefore(tasks []model.TaskID) *reservation {
	r := s.reserved()
	if r == nil || s.isHolder(r, tasks) || s.ends.of[s.v.Tasks.At(tasks[0]).Job] <= r.from {
		return nil
	}
	return r
}

// disturbs reports whether a leaf with an amount more leaves too little to a reservation of the cluster, or on its path.
func (s *State) disturbs(r *reservation, p place, amount []int64, positive resource.Mask) bool {
	return !covers(r.left, amount, positive&r.positive) || s.disturbsPath(r, p, amount, positive)
}

// disturbsPath reports whether a leaf with an amount more leaves too little to a reservation of a limit on its path, or of what its queue
// has earned.
func (s *State) disturbsPath(r *reservation, p place, amount []int64, positive resource.Mask) bool {
	shared, sum := map[place][]int64{}, slices.Clone(r.need)
	for d, x := range amount {
		sum[d] += x
	}
	for a := p; a != none; a = s.tree.parent[a] {
		held := r.held[a]
		if held == nil {
			continue
		}
		l := &s.limits[a]
		for m := positive & r.positive & l.limited; m != 0; m = m.Rest() {
			if d := m.First(); held[d]+sum[d] > l.capability[d] {
				return true
			}
		}
		if shared[a] = slices.Clone(held); a > 0 {
			add(shared[a], amount)
		}
	}
	heldWith := func(a place) []int64 {
		if row := shared[a]; row != nil {
			return row
		}
		return r.held[a]
	}
	return !s.earned(r.job, r.leaf, heldWith, r.need, r.positive)
}
