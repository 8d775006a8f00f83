// Package conformance protects the cluster's system tasks (Volcano's pkg/scheduler/plugins/conformance).
package conformance

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

const name = "conformance"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return name }

// Open returns a *State.
func (Plugin) Open(v *policy.View) (policy.State, error) { return &State{v}, nil }

// State uses only the model.
type State struct {
	view *policy.View
}

// ReclaimClass returns one class for all claimants: only the candidate counts.
func (*State) ReclaimClass(model.TaskID) (class uint64, local bool) { return 0, true }

// Reclaimable is Preemptable.
func (s *State) Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	return s.Preemptable(claimant, candidates, dst, g)
}

// Preemptable permits every task except those of a system priority class or of the system's namespace. The value of the priority does not
// count.
func (s *State) Preemptable(_ model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	for i, t := range candidates {
		s.view.Yield(i)
		switch {
		case s.critical(t):
			g.Protect(t, policy.Because(name, policy.SystemCritical, model.None))
			continue
		case s.view.Jobs.At(s.view.Tasks.At(t).Job).Namespace == "kube-system":
			g.Protect(t, policy.Because(name, policy.SystemNamespace, model.None))
			continue
		case g.Explains():
			g.Pass(t, policy.Because(name, policy.SystemCritical, model.None))
			g.Pass(t, policy.Because(name, policy.SystemNamespace, model.None))
		}
		dst = append(dst, t)
	}
	return dst, policy.Permit
}

// GangEvictable is Preemptable.
func (s *State) GangEvictable(_ model.JobID, candidates, dst []model.TaskID) ([]model.TaskID, policy.Vote) {
	return s.Preemptable(model.None, candidates, dst, nil)
}

func (s *State) critical(t model.TaskID) bool {
	at := s.view.Tasks.At(t).Detail
	if at == model.None {
		return false
	}
	class := s.view.Details.At(at).PriorityClass
	return class == "system-cluster-critical" || class == "system-node-critical"
}

// Steadily is true: what a task is does not change.
func (*State) Steadily() bool { return true }
