// Package pdb keeps disruption budgets: Volcano's plugin pdb (pkg/scheduler/plugins/pdb).
package pdb

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/scratch"
)

// Name is the plugin's name in a configuration.
const Name = "pdb"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name returns "pdb".
func (Plugin) Name() string { return Name }

// Open returns a *State.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	return &State{view: v, left: scratch.New[int32, int32](len(v.DisruptionBudgets))}, nil
}

// State reads the model alone.
type State struct {
	view *policy.View
	// left counts, while victims are chosen, how many evictions each budget still allows.
	left scratch.Values[int32, int32]
}

// ReclaimClass returns one class for all claimants: only the candidates count. A budget may select tasks of several queues.
func (*State) ReclaimClass(model.TaskID) (class uint64, local bool) { return 0, false }

// Reclaimable is Preemptable.
func (s *State) Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	return s.Preemptable(claimant, candidates, dst, g)
}

// Shuffled names the running tasks whose budgets allow it.
func (s *State) Shuffled(running, dst []model.TaskID) []model.TaskID {
	dst, _ = s.Preemptable(model.None, running, dst, nil)
	return dst
}

// Preemptable takes tasks while every budget that selects them allows it, and those that no budget selects. Each candidate that a budget
// selects is counted off, refused ones too. A task without labels is never taken.
func (s *State) Preemptable(_ model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	for i, t := range candidates {
		s.view.Yield(i)
		if s.view.Unlabelled(t) {
			g.Protect(t, policy.Because(Name, policy.Unlabelled, model.None))
			continue
		}
		if s.allowed(t, g) {
			dst = append(dst, t)
		}
	}
	s.left.Clear()
	return dst, policy.Permit
}

// allowed counts a task off its budgets, and reports whether each of them allowed it.
func (s *State) allowed(t model.TaskID, g *policy.Grounds) bool {
	budgets, all := s.view.BudgetsOf(t), true
	for _, b := range budgets {
		budget := &s.view.DisruptionBudgets[b]
		left, first := s.left.At(b)
		if first {
			*left = budget.Allowed
		}
		if *left > 0 {
			*left--
			if all && g.Explains() {
				g.Pass(t, because(budget, *left+1))
			}
			continue
		}
		if all {
			g.Protect(t, because(budget, 0))
		}
		all = false
	}
	return all
}

func because(budget *model.DisruptionBudget, left int32) policy.Reason {
	reason := policy.Because(Name, policy.DisruptionBudget, model.None)
	reason.Have, reason.Limit, reason.Detail = float64(left), float64(max(budget.Allowed, 0)), budget.Name
	return reason
}
