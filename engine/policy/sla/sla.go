// Package sla lets jobs in that have waited long enough, and counts them as pipelined: Volcano's plugin sla (pkg/scheduler/plugins/sla).
package sla

import (
	"cmp"
	"math/bits"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Name is the plugin's name in a configuration.
const Name = "sla"

// Plugin holds the settings.
type Plugin struct {
	// WaitingTime is how long jobs wait at most that state no time of their own, in nanoseconds; below 1: they may wait for ever.
	WaitingTime int64
}

// Name returns "sla".
func (Plugin) Name() string { return Name }

// Normal returns settings of the same meaning.
func (p Plugin) Normal() Plugin { return Plugin{max(p.WaitingTime, 0)} }

// Open returns a *State.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	return &State{v, p.Normal().WaitingTime}, nil
}

// State reads the model alone: the clock is the snapshot's.
type State struct {
	view    *policy.View
	waiting int64
}

// limit returns how long a job waits at most; 0: for ever.
func (s *State) limit(j model.JobID) int64 {
	if d := s.view.Jobs.At(j).Detail; d != nil && d.WaitingLimit > 0 {
		return d.WaitingLimit
	}
	return s.waiting
}

// CompareJobs puts jobs with a limit first, that one whose time ends first. A job whose age is not known has waited longest.
func (s *State) CompareJobs(l, r model.JobID) int {
	left, right := s.limit(l), s.limit(r)
	if left == 0 || right == 0 {
		return cmp.Compare(min(right, 1), min(left, 1))
	}
	lAt, rAt := s.view.Jobs.At(l).CreateTime, s.view.Jobs.At(r).CreateTime
	if lAt == 0 || rAt == 0 {
		if lAt != rAt {
			return ageless(lAt) - ageless(rAt)
		}
		return cmp.Compare(left, right)
	}
	lHigh, lLow := end(lAt, left)
	rHigh, rLow := end(rAt, right)
	return cmp.Or(cmp.Compare(lHigh, rHigh), cmp.Compare(lLow, rLow))
}

// ageless is 0 for a job whose age is not known, and 1 for others.
func ageless(created int64) int {
	if created == 0 {
		return 0
	}
	return 1
}

// end is the sum of a time and a duration, which may exceed 64 bits: the comparison of two such sums is that of high, then of low.
func end(from, duration int64) (high, low uint64) {
	low, high = bits.Add64(uint64(from)^1<<63, uint64(duration), 0)
	return high, low
}

// over reports whether a job has waited as long as it may.
func (s *State) over(j model.JobID) bool {
	limit, created := s.limit(j), s.view.Jobs.At(j).CreateTime
	if limit == 0 || created == 0 {
		return limit > 0
	}
	high, low := end(created, limit)
	return high == 0 && low <= uint64(s.view.AsOf)^1<<63
}

func (s *State) vote(j model.JobID) policy.Vote {
	if s.over(j) {
		return policy.Permit
	}
	return policy.Abstain
}

// Enqueueable permits a job that has waited as long as it may, and abstains from all others.
func (s *State) Enqueueable(j model.JobID, _ *policy.Reasons) policy.Vote { return s.vote(j) }

// Pipelined is Enqueueable: room is kept for a job that has waited as long as it may, whether or not it is enough.
func (s *State) Pipelined(j model.JobID, _ *policy.Reasons) policy.Vote { return s.vote(j) }

// Steadily is true: the times of jobs do not change.
func (*State) Steadily() bool { return true }
