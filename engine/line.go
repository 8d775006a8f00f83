package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// keep lets a plugin keep room for jobs that wait.
func (s *state) keep(p Policy) error {
	for _, opened := range s.plugins {
		keeper, ok := opened.State.(policy.Keeper)
		if !ok {
			continue
		}
		// The plugin asks in the middle of questions, of which the memory must not be used.
		own := *s
		own.scratch = resource.NewAccount(s.view.Dims.Len())
		list, err := keeper.Keep(&line{Host: Host{&Session{policy: p.without(opened.Name), state: &own}}})
		if err != nil {
			return err
		}
		return s.view.Keep(opened.Name, list)
	}
	return nil
}

// line is policy.Line. The plugin that asks does not answer what it is asked meanwhile.
type line struct {
	Host

	// released is what is being released on nodes while released is of the moves and rollbacks in at; nil until needed.
	released map[model.NodeID]*resource.Row
	at       [2]uint64
	// kin are the jobs of which it is known when they end, by the kin of their queues; nil until needed.
	kin map[model.QueueID][]model.JobID
	// tops are the queues at the top of the tree, nil until needed.
	tops []model.QueueID
	// outside are the jobs of the present Each that only what is missing now keeps out of their queues.
	outside map[model.JobID]bool
}

// Each is policy.Line.Each.
func (l *line) Each(offer func(j model.JobID, tasks []model.TaskID) (more bool)) error {
	return l.Tried(func() error {
		v := l.view
		if err := v.Work.Spend(len(v.Present())+len(v.Queues)*maxDepth, v.Dims.Len()); err != nil {
			return err
		}
		var refused []model.JobID
		for i, j := range l.Order().Pending() {
			if v.Stopped(i) {
				return policy.ErrStopped
			}
			if !l.Job(j).Enqueue(nil) {
				refused = append(refused, j)
			}
		}
		if err := l.findOutside(refused); err != nil {
			return err
		}
		defer func() { l.outside = nil }()
		for i, j := range slices.Concat(l.byQueue(l.starts)...) {
			if v.Stopped(i) {
				return policy.ErrStopped
			}
			job := v.Jobs.At(j)
			if err := v.Work.Spend(int(job.EndTask-job.FirstTask), v.Dims.Len()); err != nil {
				return err
			}
			if tasks := l.Needs(j); tasks != nil && !offer(j, tasks) {
				break
			}
		}
		return v.Work.Exceeded()
	})
}

// starts reports whether a job is admitted, or only kept out by what is missing now, and has not started.
func (l *line) starts(j model.JobID) bool {
	account := l.view.Account(j)
	switch l.view.Phase(j) {
	case model.PhasePending:
		return l.outside[j] && account.Tasks[model.Pending] > 0
	case model.PhaseCompleted:
		return false
	default:
		return account.Tasks[model.Pending] > 0 && (account.Holding() == 0 || !l.Settled(j, nil))
	}
}

// Needs is policy.Line.Needs.
func (l *line) Needs(j model.JobID) []model.TaskID {
	v, w := l.view, l.NeedOf(j)
	if w.Short || len(w.Tasks) == 0 || w.Unjudged != 0 || v.Reservations().Holds(j) ||
		slices.ContainsFunc(w.Kinds, func(t model.TaskID) bool { return v.PodKind(t) != 0 }) ||
		!l.Job(j).Valid(nil) {
		return nil
	}
	return w.Needed
}

// Takes is policy.Line.Takes.
func (l *line) Takes(t model.TaskID, n model.NodeID) bool {
	return l.PolicyFits(t, n, nil) && l.view.Takes(n, l.view.NodeSetOf(t))
}

// Kin is policy.Line.Kin.
func (l *line) Kin(q model.QueueID) model.QueueID {
	if l.tops == nil {
		l.tops = make([]model.QueueID, len(l.view.Queues))
		for i := range l.tops {
			l.tops[i] = l.top(model.QueueID(i))
		}
	}
	return l.tops[q]
}

// maxDepth bounds how far up a tree of queues is followed, which may have circles.
const maxDepth = 64

// top returns the queue at the top of the tree that a queue is below, or itself.
func (l *line) top(q model.QueueID) model.QueueID {
	for range maxDepth {
		parent, ok := l.view.Queue(l.view.Queues[q].Parent)
		if !ok || l.view.Queues[parent].Name == hierarchy.Root {
			return q
		}
		q = parent
	}
	return q
}

// Permits is policy.Line.Permits.
func (l *line) Permits(tasks []model.TaskID, at int64, beside []policy.Reservation) (permits bool) {
	q := l.view.QueueOf(tasks[0])
	// Nothing fails in it.
	_ = l.Tried(func() error {
		if at > l.view.AsOf && !l.end(q, at) {
			return nil
		}
		for i := range beside {
			if l.Kin(l.view.Jobs.At(beside[i].Job).Queue) != l.Kin(q) {
				continue
			}
			if !l.view.Work.Use(len(beside[i].Tasks), l.view.Dims.Len()) {
				return nil
			}
			for _, t := range beside[i].Tasks {
				if l.view.Status(t) == model.Pending {
					l.book(t, model.Allocated, model.None)
				}
			}
		}
		var why policy.Reasons
		permits = !l.IsOverused(q, nil) &&
			(l.Allocatable(tasks, policy.InSession, &why, nil) || len(why.List) == 1 && why.List[0].Code == policy.NotIdle)
		return nil
	})
	return permits
}

// end lets the tasks leave of the jobs that are expected to end until a time and are of the same kin as a queue. It returns false if there
// is too little work left.
func (l *line) end(q model.QueueID, at int64) bool {
	v := l.view
	if l.kin == nil {
		if l.kin = map[model.QueueID][]model.JobID{}; !v.Work.Use(len(v.Present()), 1) {
			return false
		}
		for _, j := range v.Present() {
			if kin := l.Kin(v.Jobs.At(j).Queue); v.LikelyEnd(j) != policy.Endless {
				l.kin[kin] = append(l.kin[kin], j)
			}
		}
	}
	for _, j := range l.kin[l.Kin(q)] {
		job := v.Jobs.At(j)
		if v.LikelyEnd(j) > at || v.Account(j).Holding() == 0 {
			continue
		}
		if !v.Work.Use(int(job.EndTask-job.FirstTask), v.Dims.Len()*len(l.plugins)) {
			return false
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			if v.Status(t).Holds() && l.booked(t) {
				l.unbook(t, model.Succeeded)
			}
		}
	}
	return true
}

// KeptOff is policy.Line.KeptOff.
func (l *line) KeptOff(t model.TaskID) (policy.Reason, bool) {
	v := l.view
	if v.Reservations() == nil || !v.Work.Use(len(v.NodeOrder), v.Dims.Len()) {
		return policy.Reason{}, false
	}
	row, request := resource.NewAccount(v.Dims.Len()), v.Request(t)
	released, first := l.beingReleased(), policy.Reasons{}
	for i, n := range v.NodeOrder {
		v.Yield(i)
		v.Idle(n, &row)
		if more := released[n]; more != nil {
			row.Add(*more)
		}
		if !resource.Covers(row, request) || !l.Takes(t, n) {
			continue
		}
		if v.Reservations().Fits(t, n, resource.Row{}, &first) {
			return policy.Reason{}, false
		}
	}
	i := slices.IndexFunc(first.List, func(r policy.Reason) bool { return r.Code == policy.Reserved })
	if i < 0 {
		return policy.Reason{}, false
	}
	return first.List[i], true
}

// beingReleased is what is being released on nodes.
func (l *line) beingReleased() map[model.NodeID]*resource.Row {
	moves, back := l.view.Moves()
	at := [2]uint64{0, back}
	for _, n := range moves {
		at[0] += uint64(n)
	}
	if l.released == nil || l.at != at {
		l.released, l.at = l.Released(), at
	}
	return l.released
}

// ReservationOf returns the room that is kept for a job until it can start; false if there is none.
func (s *Session) ReservationOf(j model.JobID) (policy.Reservation, bool) {
	return s.reservationOf(j, func(policy.State) bool { return true })
}

// PlannedStart is ReservationOf for the plugins that plan each job after those before it.
func (h Host) PlannedStart(j model.JobID) (policy.Reservation, bool) {
	return h.reservationOf(j, func(state policy.State) bool {
		_, plans := state.(policy.Keeper)
		return plans
	})
}

func (s *Session) reservationOf(j model.JobID, counts func(policy.State) bool) (policy.Reservation, bool) {
	for _, p := range s.plugins {
		if r, ok := p.State.(policy.Reserver); ok && counts(p.State) {
			if kept, ok := r.ReservationOf(j); ok {
				return kept, true
			}
		}
	}
	return policy.Reservation{}, false
}

// without returns the policy without a plugin.
func (p Policy) without(plugin string) Policy {
	tiers := make([]Tier, len(p.Tiers))
	for i, tier := range p.Tiers {
		tiers[i] = slices.DeleteFunc(slices.Clone(tier), func(e Entry) bool { return e.Plugin.Name() == plugin })
	}
	p.Tiers = tiers
	return p
}

// findOutside finds which of the jobs that may not enter their queues could if nothing ran and no other job waited: only what is missing
// now keeps these out.
func (l *line) findOutside(refused []model.JobID) error {
	l.outside = make(map[model.JobID]bool)
	if len(refused) == 0 {
		return nil
	}
	isRefused := make(map[model.JobID]bool, len(refused))
	for _, j := range refused {
		isRefused[j] = true
	}
	return l.Tried(func() error {
		if err := l.leave(func(j model.JobID) bool { return !isRefused[j] }); err != nil {
			return err
		}
		for i, j := range refused {
			if l.view.Stopped(i) {
				return policy.ErrStopped
			}
			l.outside[j] = l.entersAlone(j)
		}
		return nil
	})
}

// entersAlone reports whether a job may enter its queue, and books nothing.
func (l *line) entersAlone(j model.JobID) (enters bool) {
	// Nothing fails in it.
	_ = l.Tried(func() error {
		enters = l.Job(j).Enqueueable(nil)
		return nil
	})
	return enters
}

// leave lets jobs leave the cluster. A job that runs with as many tasks as it needs counts as running, as in the next session: what it
// was admitted for is not promised beside what it holds.
func (l *line) leave(gone func(model.JobID) bool) error {
	v := l.view
	return l.Change(nil, func(b *model.ChangeBuilder) {
		for i, j := range v.Present() {
			v.Yield(i)
			switch {
			case gone(j):
				b.RemoveJobs(j)
			case v.Phase(j) == model.PhaseInqueue && v.Account(j).Holding() >= max(v.Jobs.At(j).MinAvailable, 1):
				b.UpdatePhase(j, model.PhaseRunning)
			}
		}
	})
}

// Enters is policy.Line.Enters.
func (l *line) Enters(j model.JobID, at int64, beside []policy.Reservation) (enters bool, err error) {
	if !l.outside[j] {
		return true, nil
	}
	v, started := l.view, make(map[model.JobID]bool, len(beside))
	for i := range beside {
		started[beside[i].Job] = true
	}
	err = l.Tried(func() error {
		if err := l.leave(func(k model.JobID) bool {
			if k == j || started[k] {
				return false
			}
			holds := v.Account(k).Holding() > 0 || v.Account(k).Tasks[model.Pipelined] > 0
			return !holds || at > v.AsOf && v.LikelyEnd(k) <= at
		}); err != nil {
			return err
		}
		for i := range beside {
			l.Job(beside[i].Job).Admit(nil)
		}
		enters = l.Job(j).Enqueueable(nil)
		return nil
	})
	return enters, err
}
