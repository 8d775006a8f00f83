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
	return &State{view: v, ready: scratch.New[model.JobID, int32](len(v.Jobs))}, nil
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
	return s.occupied(j) >= s.view.Jobs[j].MinAvailable
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

// Pipelined is Ready with the tasks that wait for resources being released.
func (s *State) Pipelined(j model.JobID, why *policy.Reasons) bool {
	a := s.view.Account(j)
	occupied := func(g int) int32 {
		return a.GroupReady(g) + a.GroupPendingBestEffort[g] + a.GroupTasks[g][model.Pipelined]
	}
	if !s.roles(j, policy.NotPipelined, occupied, why) {
		return false
	}
	return s.reaches(s.occupied(j)+a.Tasks[model.Pipelined], j, policy.NotPipelined, why)
}

// Starving reports whether ready and pipelined tasks together are below the minimum; roles and best-effort tasks do not count.
func (s *State) Starving(j model.JobID, why *policy.Reasons) bool {
	a := s.view.Account(j)
	have, limit := a.Ready()+a.Tasks[model.Pipelined], s.view.Jobs[j].MinAvailable
	if have < limit {
		return true
	}
	why.Add(reason(policy.NotStarving, have, limit))
	return false
}

func (s *State) reaches(have int32, j model.JobID, code policy.Code, why *policy.Reasons) bool {
	limit := s.view.Jobs[j].MinAvailable
	if have >= limit {
		return true
	}
	why.Add(reason(code, have, limit))
	return false
}

// roles reports whether each role of a job has its minimum, by the count of tasks given. The minima of roles are void if they add up to
// more than the job's own (Volcano's JobInfo.CheckTask…).
func (s *State) roles(j model.JobID, code policy.Code, count func(g int) int32, why *policy.Reasons) bool {
	job := &s.view.Jobs[j]
	groups := s.view.Groups[job.FirstGroup:job.EndGroup]
	sum := int64(0)
	for i := range groups {
		sum += int64(max(groups[i].MinAvailable, 0))
	}
	if int64(job.MinAvailable) < sum {
		return true
	}
	all := true
	for i := range groups {
		if have := count(i); have < groups[i].MinAvailable {
			all = false
			short := reason(code, have, groups[i].MinAvailable)
			short.Role = groups[i].Role
			why.Add(short)
		}
	}
	return all
}

// Reclaimable is Preemptable.
func (s *State) Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	return s.Preemptable(claimant, candidates, dst, g)
}

// Preemptable takes tasks of a job while more than its minimum are ready, each victim counted off.
func (s *State) Preemptable(_ model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	for _, t := range candidates {
		j := s.view.Tasks[t].Job
		ready, first := s.ready.At(j)
		if first {
			*ready = s.view.Account(j).Ready()
		}
		limit := s.view.Jobs[j].MinAvailable
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

func reason(code policy.Code, have, limit int32) policy.Reason {
	because := policy.Because(name, code, model.None)
	because.Have, because.Limit = float64(have), float64(limit)
	return because
}
