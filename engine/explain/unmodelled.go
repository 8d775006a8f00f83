package explain

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/policy"
)

// doubt makes the checks not known whose outcome a plugin may change that votes and is not modelled: its vote on admission may let a job in
// or keep it out, all others can only hold it back.
func (x *explainer) doubt(e *Explanation) {
	for i := range e.Findings {
		f := &e.Findings[i]
		var decision engine.Decision
		switch {
		case f.Check == judge.CheckAdmission && e.Enters && f.Outcome != judge.NotKnown:
			decision = engine.JobEnqueued
		case f.Check == judge.CheckQueue && f.Outcome == judge.Passed:
			decision = engine.Overused
		case f.Check == judge.CheckNodes && f.Outcome == judge.Passed:
			decision = engine.Predicate
		default:
			continue
		}
		if why, votes := x.NotModelled(decision); votes {
			f.Outcome, f.Reasons = judge.NotKnown, slices.Concat([]policy.Reason{why}, f.Reasons)
		}
	}
}
