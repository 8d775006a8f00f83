package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

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
