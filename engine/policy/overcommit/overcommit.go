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
	// Factor: jobs may be admitted up to Factor times the cluster's total. Below 1, or not finite, it counts as 1.2.
	Factor float64
}

// Default returns the default settings.
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

// Open returns a policy.Enqueuer that follows the jobs admitted. It costs nothing: nodes and jobs are summed when a job is first asked
// about or admitted, which most questions never do.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	s := &state{view: v, factor: p.Normal().Factor}
	if !v.Fresh() {
		s.sum(v)
	}
	return s, nil
}

type state struct {
	view   *policy.View
	factor float64
	// summed says that the following are known.
	summed bool
	// idle is total * factor - used as the session opened; in a dimension of which too much is used it is negative.
	idle resource.Row
	// inqueue is the sum of the amounts that admitted jobs still lack.
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
	s.opened()
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

// Promisable returns total * factor - used, within which the amounts that admitted jobs lack have to stay: now, not as the session opened.
func (s *state) Promisable() resource.Row { return s.unused(s.view) }

// Enqueued adds the minimum of an admitted job, without its gated tasks, to what has to be got.
func (s *state) Enqueued(j model.JobID) {
	if s.view.Jobs.At(j).MinResources.Absent() {
		return
	}
	s.opened()
	s.view.Journal.Row(&s.inqueue)
	account.InqueueNeed(s.view, j, &s.scratch)
	s.inqueue.Add(s.scratch)
}

// opened sums the tasks at the opening of the session. If something has changed since then, it sums the model, which was the state at the
// opening.
func (s *state) opened() {
	switch {
	case s.summed:
	case s.view.Fresh():
		s.sum(s.view)
	default:
		base := policy.NewView(s.view.Model, s.view.Stop)
		base.Work = s.view.Work
		s.sum(base)
	}
}

// sum sums what the nodes have idle, and what admitted jobs still have to get, in a state of the cluster.
func (s *state) sum(v *policy.View) {
	width := v.Dims.Len()
	s.summed = true
	s.idle, s.inqueue, s.scratch = s.unused(v), resource.NewAccount(width), resource.NewAccount(width)
	for i, j := range v.Present() {
		v.Yield(i)
		s.promise(v, j)
	}
}

// unused returns total * factor - used in a state of the cluster.
func (s *state) unused(v *policy.View) resource.Row {
	idle, used := resource.NewAccount(v.Dims.Len()), resource.NewAccount(v.Dims.Len())
	idle.AddTimes(v.Total, s.factor)
	for i, n := range v.NodeOrder {
		v.Yield(i)
		used.Add(v.Used(n))
	}
	idle.SubWithin(used)
	return idle
}

// promise adds what a job that was admitted before the session still has to get: its whole minimum while it is in the queue (where
// proportion and capacity take off what it holds), and what is missing from it once it runs with as many tasks as it needs.
func (s *state) promise(v *policy.View, j model.JobID) {
	job, phase := v.Jobs.At(j), v.Phase(j)
	switch {
	case job.MinResources.Absent():
		return
	case phase == model.PhaseInqueue:
		account.InqueueNeed(v, j, &s.scratch)
	case phase == model.PhaseRunning && v.Account(j).Holding() >= job.MinAvailable:
		account.InqueueLack(v, j, &s.scratch)
	default:
		return
	}
	s.inqueue.Add(s.scratch)
}
