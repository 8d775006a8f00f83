// Package cooldown protects tasks for a while after they were scheduled (Volcano's pkg/scheduler/plugins/cdp).
package cooldown

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

const name = "cdp"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return name }

// Open returns a *State.
func (Plugin) Open(v *policy.View) (policy.State, error) { return &State{v}, nil }

// State uses the model and the statuses of tasks in the view.
type State struct {
	view *policy.View
}

// ReclaimClass returns one class for all claimants: only the times of the candidate count.
func (*State) ReclaimClass(model.TaskID) (class uint64, local bool) { return 0, true }

// Reclaimable is Preemptable.
func (s *State) Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	return s.Preemptable(claimant, candidates, dst, g)
}

// Preemptable permits every task except those scheduled less than their cooldown before the time of the snapshot. A task scheduled after
// that time is protected unless its cooldown is negative enough.
func (s *State) Preemptable(_ model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	for i, t := range candidates {
		s.view.Yield(i)
		if detail := s.cooling(t); detail != nil {
			elapsed, over := since(detail.ScheduleTime, s.view.AsOf, detail.Cooldown)
			switch {
			case !over:
				g.Protect(t, active(elapsed, detail.Cooldown))
				continue
			case g.Explains():
				g.Pass(t, active(elapsed, detail.Cooldown))
			}
		}
		dst = append(dst, t)
	}
	return dst, policy.Permit
}

// cooling returns the times of a task that may be protected, or nil. Only a pod in phase Running may be; a pod that is being deleted counts
// as running.
func (s *State) cooling(t model.TaskID) *model.Detail {
	at := s.view.Tasks.At(t).Detail
	if at == model.None {
		return nil
	}
	detail := s.view.Details.At(at)
	status := s.view.Status(t)
	if !detail.HasCooldown || !detail.HasScheduleTime || status != model.Running && status != model.Releasing {
		return nil
	}
	return detail
}

// since returns now - then, and whether it is at least cooldown. The comparison is exact even if the difference overflows int64: it is then
// above or below every cooldown, depending on the order of the two times.
func since(then, now, cooldown int64) (elapsed float64, over bool) {
	difference := now - then
	if (now >= then) != (difference >= 0) {
		return float64(now) - float64(then), now >= then
	}
	return float64(difference), difference >= cooldown
}

func active(elapsed float64, limit int64) policy.Reason {
	because := policy.Because(name, policy.CooldownActive, model.None)
	because.Have, because.Limit = elapsed, float64(limit)
	return because
}
