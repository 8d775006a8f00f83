package engine

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Valid reports whether a job can be scheduled at all, according to every plugin.
func (s *Session) Valid(j model.JobID, why *policy.Reasons) bool {
	for _, p := range s.by.valid {
		if !p.Valid(j, why) {
			return false
		}
	}
	return true
}

// Ready reports whether enough tasks of a job run, according to every plugin.
func (s *Session) Ready(j model.JobID, why *policy.Reasons) bool {
	for _, p := range s.by.ready {
		if !p.Ready(j, why) {
			return false
		}
	}
	return true
}

// Pipelined reports whether enough tasks of a job run or wait for resources that are being released, according to every plugin.
func (s *Session) Pipelined(j model.JobID, why *policy.Reasons) bool {
	for _, p := range s.by.pipelined {
		if !p.Pipelined(j, why) {
			return false
		}
	}
	return true
}

// Starving reports whether a job lacks tasks that it needs: the first tier with an opinion decides, and all its plugins must agree
// (Volcano's JobStarving). Without any opinion no job starves.
func (s *Session) Starving(j model.JobID, why *policy.Reasons) bool {
	if len(s.by.starving) == 0 {
		why.Add(policy.Because("", policy.NotStarving, model.None))
		return false
	}
	for i, e := range s.by.starving {
		if i > 0 && e.tier != s.by.starving[0].tier {
			break
		}
		if !e.part.Starving(j, why) {
			return false
		}
	}
	return true
}
