// Package proportion divides the cluster among queues by weight, within guarantee, request and capability: Volcano's plugin of that name
// (pkg/scheduler/plugins/proportion/proportion.go).
//
// Only queues with at least one job take part. A queue's deserved is found by water-filling (divide.go); what it may use at enqueue is
// its real capability:
//
//	real capability = min(capability, ExceededPart(total, guarantees of all queues) + own guarantee)
package proportion

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
)

const name = "proportion"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return name }

// State is the plugin in a session. Rows are indexed by queue; those of queues that take no part are not used.
type State struct {
	v              *policy.View
	totalGuarantee resource.Row
	// Fixed once open.
	takesPart             []bool
	queues                []model.QueueID
	guarantee, capability []resource.Row
	realCapability        []resource.Row
	deserved              []resource.Row
	request, elastic      []resource.Row
	// Change with events and permits, and are saved to the journal before.
	allocated, inqueue []resource.Row
	share              []float64
	dominant           []int32
	// Scratch of Reclaimable: running[q] is valid if stamp[q] is the present epoch.
	running []resource.Row
	stamp   []uint32
	epoch   uint32
	need    resource.Row
}

// Open accounts for every queue with jobs and divides the cluster among them. A division that costs more than View.Work is a
// *policy.WorkError.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	accounts, err := account.Open(v)
	if err != nil {
		return nil, err
	}
	n, width := len(v.Queues), v.Dims.Len()
	s := &State{
		v: v, takesPart: make([]bool, n), share: make([]float64, n), dominant: make([]int32, n),
		allocated: accounts.Allocated, request: accounts.Request, inqueue: accounts.Inqueue, elastic: accounts.Elastic,
		guarantee: resource.NewAccounts(n, width), capability: resource.NewAccounts(n, width),
		realCapability: resource.NewAccounts(n, width), deserved: resource.NewAccounts(n, width),
		totalGuarantee: resource.NewAccount(width), need: resource.NewAccount(width),
	}
	for _, q := range v.QueueOrder {
		if g := v.Queues[q].Guarantee; !g.Absent() {
			s.totalGuarantee.Add(g)
			s.guarantee[q].Add(g)
		}
		if accounts.Jobs[q] > 0 {
			s.takesPart[q] = true
			s.queues = append(s.queues, q)
		}
	}
	free := resource.NewAccount(width)
	free.SetExceeded(v.Total, s.totalGuarantee)
	for _, q := range s.queues {
		s.limit(q, free)
	}
	if err := s.division().run(); err != nil {
		return nil, err
	}
	for _, q := range s.queues {
		s.updateShare(q)
	}
	return s, nil
}

// limit sets capability and real capability of a queue. free is what all guarantees leave of the total. A capability that names something
// leaves cpu and memory unlimited where they are 0 or not named; a scalar of 0 is 0.
func (s *State) limit(q model.QueueID, free resource.Row) {
	realCapability := &s.realCapability[q]
	realCapability.CopyFrom(free)
	realCapability.Add(s.guarantee[q])
	if account.ResolveCapability(s.v.Queues[q].Capability, &s.capability[q]) {
		realCapability.Min(s.capability[q], resource.Infinity)
	}
}

// updateShare sets share to the largest allocated / deserved over the dimensions with a deserved of Threshold or more: what is used
// without being deserved does not count.
func (s *State) updateShare(q model.QueueID) {
	share, dominant := resource.DominantShare(s.allocated[q], s.deserved[q], s.deserved[q].AtLeastThreshold())
	s.share[q], s.dominant[q] = share, int32(dominant)
}

// CompareQueues puts the queue of higher priority first, then the one with the smaller share.
func (s *State) CompareQueues(l, r model.QueueID) int {
	if lp, rp := s.v.Queues[l].Priority, s.v.Queues[r].Priority; lp != rp {
		if lp > rp {
			return -1
		}
		return 1
	}
	switch {
	case s.share[l] < s.share[r]:
		return -1
	case s.share[l] > s.share[r]:
		return 1
	}
	return 0
}

// Overused reports whether a queue has all it deserves, in every dimension: one dimension below deserved is enough not to be overused.
func (s *State) Overused(q model.QueueID, why *policy.Reasons) bool {
	if !s.takesPart[q] || !resource.Covers(s.allocated[q], s.deserved[q]) {
		return false
	}
	if why != nil {
		reason := policy.Because(name, policy.Overused, q)
		if d := int(s.dominant[q]); d >= 0 {
			reason.Dimension, reason.Have, reason.Limit = d, s.allocated[q].V[d], s.deserved[q].V[d]
		}
		why.Add(reason)
	}
	return true
}

// Share returns a queue's account; false if it has no jobs.
func (s *State) Share(q model.QueueID) (policy.Share, bool) {
	if !s.takesPart[q] {
		return policy.Share{}, false
	}
	return policy.Share{
		Weight: s.v.Queues[q].Weight, Guarantee: s.guarantee[q], Deserved: s.deserved[q], Allocated: s.allocated[q],
		Request: s.request[q], Inqueue: s.inqueue[q], Elastic: s.elastic[q], Capability: s.capability[q],
		RealCapability: s.realCapability[q], Share: s.share[q], Dominant: int(s.dominant[q]),
		Overused: s.Overused(q, nil),
	}, true
}

// Allocate books a task that starts to hold resources. Of the queue's account only allocated and share follow.
func (s *State) Allocate(t model.TaskID) {
	q := s.touch(t)
	s.allocated[q].Add(s.v.Request(t))
	s.updateShare(q)
}

// Deallocate gives a task's resources back.
func (s *State) Deallocate(t model.TaskID) {
	q := s.touch(t)
	s.allocated[q].SubWithin(s.v.Request(t))
	s.updateShare(q)
}

func (s *State) touch(t model.TaskID) model.QueueID {
	q := s.v.QueueOf(t)
	s.v.Journal.Row(&s.allocated[q])
	s.v.Journal.Float(&s.share[q])
	s.v.Journal.Int(&s.dominant[q])
	return q
}
