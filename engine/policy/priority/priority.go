// Package priority serves jobs and tasks of higher priority first, at the cost of lower ones (Volcano's pkg/scheduler/plugins/priority).
package priority

import (
	"cmp"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

const name = "priority"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return name }

// Open returns a *State.
func (Plugin) Open(v *policy.View) (policy.State, error) { return &State{v}, nil }

// State answers from the priorities in the model and the counts of tasks in the view.
type State struct {
	view *policy.View
}

// CompareJobs puts the job of higher priority first.
func (s *State) CompareJobs(l, r model.JobID) int {
	return cmp.Compare(s.view.Jobs.At(r).Priority, s.view.Jobs.At(l).Priority)
}

// CompareTasks puts the task of higher priority first.
func (s *State) CompareTasks(l, r model.TaskID) int {
	return cmp.Compare(s.view.Tasks.At(r).Priority, s.view.Tasks.At(l).Priority)
}

// Starving reports whether ready and pipelined tasks are fewer than all tasks, finished and failed ones included.
func (s *State) Starving(j model.JobID, why *policy.Reasons) bool {
	a := s.view.Account(j)
	have, all := a.Ready()+a.Tasks[model.Pipelined], a.AllTasks()
	if have < all {
		return true
	}
	because := policy.Because(name, policy.NotStarving, model.None)
	because.Have, because.Limit = float64(have), float64(all)
	why.Add(because)
	return false
}

// Preemptable takes tasks of jobs of lower priority, and of the claimant's own job those of lower priority themselves.
func (s *State) Preemptable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	by := s.view.Tasks.At(claimant)
	for i, t := range candidates {
		s.view.Yield(i)
		task := s.view.Tasks.At(t)
		have, limit := s.view.Jobs.At(task.Job).Priority, s.view.Jobs.At(by.Job).Priority
		if task.Job == by.Job {
			have, limit = task.Priority, by.Priority
		}
		switch {
		case have >= limit:
			g.Protect(t, lower(have, limit))
			continue
		case g.Explains():
			g.Pass(t, lower(have, limit))
		}
		dst = append(dst, t)
	}
	return dst, policy.Permit
}

// GangEvictable takes tasks of jobs of lower priority in the claimant's queue, and every task of other queues.
func (s *State) GangEvictable(claimant model.JobID, candidates, dst []model.TaskID) ([]model.TaskID, policy.Vote) {
	by := s.view.Jobs.At(claimant)
	for i, t := range candidates {
		s.view.Yield(i)
		if job := s.view.Jobs.At(s.view.Tasks.At(t).Job); job.Queue != by.Queue || job.Priority < by.Priority {
			dst = append(dst, t)
		}
	}
	return dst, policy.Permit
}

func lower(have, limit int32) policy.Reason {
	because := policy.Because(name, policy.PriorityNotLower, model.None)
	because.Have, because.Limit = float64(have), float64(limit)
	return because
}

// Steadily is true: priorities do not change.
func (*State) Steadily() bool { return true }
