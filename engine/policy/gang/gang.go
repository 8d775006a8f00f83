// Package gang keeps jobs at their minimum: a job is served before it has its minimum, and loses no task that it needs for it
// (Volcano's pkg/scheduler/plugins/gang).
package gang

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/scratch"
)

const name = "gang"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return name }

// Open returns a *State.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	return &State{view: v, ready: scratch.New[model.JobID, int32](v.Jobs.Len())}, nil
}

// State answers from the counts of tasks that the view keeps; it has no accounts of its own.
type State struct {
	view *policy.View
	// ready counts, while victims are chosen, the ready tasks of each job that would remain.
	ready scratch.Values[model.JobID, int32]
}

// CompareJobs puts jobs that lack their minimum first. Minima of roles do not count here, as in Volcano's JobInfo.IsReady.
func (s *State) CompareJobs(l, r model.JobID) int {
	switch lReady, rReady := s.enough(l), s.enough(r); {
	case lReady == rReady:
		return 0
	case lReady:
		return 1
	}
	return -1
}

func (s *State) enough(j model.JobID) bool {
	return s.occupied(j) >= s.view.Jobs.At(j).MinAvailable
}

// occupied counts ready tasks and those that need nothing to become so.
func (s *State) occupied(j model.JobID) int32 {
	a := s.view.Account(j)
	return a.Ready() + a.PendingBestEffort
}

// Valid reports whether a job has enough tasks that run or may still run, of each role first, then in all.
func (s *State) Valid(j model.JobID, why *policy.Reasons) bool {
	a := s.view.Account(j)
	if !s.roles(j, policy.NotEnoughTasksOfRole, a.GroupValid, why) {
		return false
	}
	return s.reaches(a.Valid(), j, policy.NotEnoughTasks, why)
}

// Ready reports whether enough tasks run or have succeeded, of each role and in all; best-effort tasks that are pending count.
func (s *State) Ready(j model.JobID, why *policy.Reasons) bool {
	a := s.view.Account(j)
	occupied := func(g int) int32 { return a.GroupReady(g) + a.GroupPendingBestEffort[g] }
	if !s.roles(j, policy.RoleNotReady, occupied, why) {
		return false
	}
	return s.reaches(s.occupied(j), j, policy.NotReady, why)
}

// Pipelined permits a job that is Ready with the tasks that wait for resources being released, and rejects any other.
func (s *State) Pipelined(j model.JobID, why *policy.Reasons) policy.Vote {
	a := s.view.Account(j)
	occupied := func(g int) int32 {
		return a.GroupReady(g) + a.GroupPendingBestEffort[g] + a.GroupTasks[g][model.Pipelined]
	}
	if s.roles(j, policy.NotPipelined, occupied, why) &&
		s.reaches(s.occupied(j)+a.Tasks[model.Pipelined], j, policy.NotPipelined, why) {
		return policy.Permit
	}
	return policy.Reject
}

// Starving reports whether ready and pipelined tasks together are below the minimum; roles and best-effort tasks do not count.
func (s *State) Starving(j model.JobID, why *policy.Reasons) bool {
	a := s.view.Account(j)
	have, limit := a.Ready()+a.Tasks[model.Pipelined], s.view.Jobs.At(j).MinAvailable
	if have < limit {
		return true
	}
	why.Add(reason(policy.NotStarving, have, limit))
	return false
}

func (s *State) reaches(have int32, j model.JobID, code policy.Code, why *policy.Reasons) bool {
	limit := s.view.Jobs.At(j).MinAvailable
	if have >= limit {
		return true
	}
	why.Add(reason(code, have, limit))
	return false
}

// roles reports whether each role of a job has its minimum, by the count of tasks given. The minima of roles are void if they add up to
// more than the job's own (Volcano's JobInfo.CheckTask…).
func (s *State) roles(j model.JobID, code policy.Code, count func(g int) int32, why *policy.Reasons) bool {
	job := s.view.Jobs.At(j)
	sum := int64(0)
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		sum += int64(max(s.view.Groups.At(g).MinAvailable, 0))
	}
	if int64(job.MinAvailable) < sum {
		return true
	}
	all := true
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := s.view.Groups.At(g)
		if have := count(int(g - job.FirstGroup)); have < group.MinAvailable {
			all = false
			short := reason(code, have, group.MinAvailable)
			short.Detail = group.Role
			why.Add(short)
		}
	}
	return all
}

// ReclaimClass returns one class for all claimants: only the job of the candidate counts.
func (*State) ReclaimClass(model.TaskID) (class uint64, local bool) { return 0, true }

// Reclaimable is Preemptable.
func (s *State) Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	return s.Preemptable(claimant, candidates, dst, g)
}

// Preemptable takes tasks of a job while more than its minimum are ready, each victim counted off.
func (s *State) Preemptable(_ model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	for i, t := range candidates {
		s.view.Yield(i)
		j := s.view.Tasks.At(t).Job
		ready, first := s.ready.At(j)
		if first {
			*ready = s.view.Account(j).Ready()
		}
		limit := s.view.Jobs.At(j).MinAvailable
		if *ready <= limit {
			g.Protect(t, reason(policy.GangMinimum, *ready, limit))
			continue
		}
		if g.Explains() {
			g.Pass(t, reason(policy.GangMinimum, *ready, limit))
		}
		*ready--
		dst = append(dst, t)
	}
	s.ready.Clear()
	return dst, policy.Permit
}

// GangEvictable permits all: the actions that ask keep gangs whole by themselves.
func (*State) GangEvictable(_ model.JobID, candidates, dst []model.TaskID) ([]model.TaskID, policy.Vote) {
	return append(dst, candidates...), policy.Permit
}

func reason(code policy.Code, have, limit int32) policy.Reason {
	because := policy.Because(name, code, model.None)
	because.Have, because.Limit = float64(have), float64(limit)
	return because
}

// Steadily is true: only the tasks of a job itself count.
func (*State) Steadily() bool { return true }
