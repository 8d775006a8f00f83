// Package overcommit admits jobs while their minimum fits into what a factor times the cluster leaves idle: Volcano's plugin overcommit
// (pkg/scheduler/plugins/overcommit/overcommit.go).
package overcommit

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
)

// Name is the plugin's name in a configuration.
const Name = "overcommit"

// defaultFactor stands in for a factor that is not given or means nothing.
const defaultFactor = 1.2

// Plugin holds the settings.
type Plugin struct {
	// Factor times the cluster's total may be promised. Below 1, or not finite, it counts as 1.2.
	Factor float64
}

// Default returns the settings of a configuration that says nothing.
func Default() Plugin { return Plugin{Factor: defaultFactor} }

// Name returns "overcommit".
func (Plugin) Name() string { return Name }

// Normal returns settings of the same meaning, with the factor that counts.
func (p Plugin) Normal() Plugin {
	if !(p.Factor >= 1 && p.Factor <= math.MaxFloat64) {
		p.Factor = defaultFactor
	}
	return p
}

// Open returns a policy.Enqueuer that follows the jobs admitted.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	factor := p.Normal().Factor
	s := &state{view: v, idle: resource.NewAccount(v.Dims.Len()), inqueue: resource.NewAccount(v.Dims.Len())}
	s.idle.AddTimes(v.Total, factor)
	used := resource.NewAccount(v.Dims.Len())
	for i, n := range v.NodeOrder {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		used.Add(v.Used(n))
	}
	s.idle.SubWithin(used)
	s.scratch = resource.NewAccount(v.Dims.Len())
	for i, j := range v.Present() {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		s.promise(j)
	}
	return s, nil
}

type state struct {
	view *policy.View
	// idle is total * factor - used as the session opened; in a dimension of which too much is used it is negative.
	idle resource.Row
	// inqueue is what admitted jobs still have to get.
	inqueue resource.Row
	scratch resource.Row
}

var (
	_ policy.Enqueuer        = (*state)(nil)
	_ policy.EnqueuedHandler = (*state)(nil)
)

// Enqueueable permits a job without minimum resources, and any other if inqueue + minimum <= idle in every dimension that the minimum
// asks for, `pods` aside. It books nothing: a job may still be refused by another plugin.
func (s *state) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	minimum := s.view.Jobs.At(j).MinResources
	if minimum.Absent() {
		return policy.Permit
	}
	over := resource.Exceeding(s.idle, s.inqueue, minimum, ^s.view.Dims.Pods())
	if over == 0 {
		return policy.Permit
	}
	for ; over != 0; over = over.Rest() {
		d := over.First()
		reason := policy.Because(Name, policy.AboveOvercommit, s.view.Jobs.At(j).Queue)
		reason.Dimension, reason.Have, reason.Need, reason.Limit = d, s.inqueue.V[d], minimum.V[d], s.idle.V[d]
		why.Add(reason)
	}
	return policy.Reject
}

// Enqueued adds the minimum of an admitted job, without its gated tasks, to what has to be got.
func (s *state) Enqueued(j model.JobID) {
	if s.view.Jobs.At(j).MinResources.Absent() {
		return
	}
	s.view.Journal.Row(&s.inqueue)
	account.InqueueNeed(s.view, j, &s.scratch)
	s.inqueue.Add(s.scratch)
}

// promise adds what a job that was admitted before the session still has to get: its whole minimum while it is in the queue (where
// proportion and capacity take off what it holds), and what is missing from it once it runs with as many tasks as it needs.
func (s *state) promise(j model.JobID) {
	job, phase := s.view.Jobs.At(j), s.view.Phase(j)
	switch {
	case job.MinResources.Absent():
		return
	case phase == model.PhaseInqueue:
		account.InqueueNeed(s.view, j, &s.scratch)
	case phase == model.PhaseRunning && s.view.Account(j).Holding() >= job.MinAvailable:
		account.InqueueLack(s.view, j, &s.scratch)
	default:
		return
	}
	s.inqueue.Add(s.scratch)
}
