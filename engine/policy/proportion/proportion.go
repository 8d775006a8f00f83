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
	v *policy.View
	// totalGuarantee sums the guarantees of all queues.
	totalGuarantee resource.Row
	// Fixed once open.
	takesPart                []bool
	queues                   []model.QueueID
	realCapability, deserved resource.Matrix
	// nothing is a row of zeros that names cpu and memory.
	nothing resource.Row
	// Change with events and permits, and are saved to the journal before.
	changed  struct{ allocated, inqueue account.Changing }
	share    []float64
	dominant []int32
	// Scratch of Reclaimable: running[q] is valid if stamp[q] is the present epoch.
	running []resource.Row
	stamp   []uint32
	epoch   uint32
	need    resource.Row
}

// Open accounts for every queue with jobs and divides the cluster among them. A division that costs more than View.Work is a
// *policy.WorkError.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	n, width := len(v.Queues), v.Dims.Len()
	s := &State{
		v: v, takesPart: make([]bool, n), queues: make([]model.QueueID, 0, n), share: make([]float64, n), dominant: make([]int32, n),
		realCapability: resource.NewMatrix(n, width, resource.Base), deserved: resource.NewMatrix(n, width, resource.Base),
		totalGuarantee: resource.NewAccount(width), nothing: resource.NewAccount(width), need: resource.NewAccount(width),
	}
	for i, q := range v.QueueOrder {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		if g := v.Queues[q].Guarantee; !g.Absent() {
			s.totalGuarantee.Add(g)
		}
		if v.QueueSumOf(q).Jobs > 0 {
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

// limit sets the real capability of a queue. free is what all guarantees leave of the total. A capability that names something leaves cpu
// and memory unlimited where they are 0 or not named; a scalar of 0 is 0.
func (s *State) limit(q model.QueueID, free resource.Row) {
	realCapability := s.realCapability.Row(int(q))
	realCapability.CopyFrom(free)
	realCapability.Add(s.guarantee(q))
	if account.ResolveCapability(s.v.Queues[q].Capability, &s.need) {
		realCapability.Min(s.need, resource.Infinity)
	}
	s.realCapability.SetHas(int(q), realCapability.Has)
}

// guarantee returns the guarantee of a queue, with cpu and memory present.
func (s *State) guarantee(q model.QueueID) resource.Row {
	g := s.v.Queues[q].Guarantee
	if g.Absent() {
		return s.nothing
	}
	g.Has |= resource.Base
	return g
}

// capability returns the capability of a queue as ResolveCapability does.
func (s *State) capability(q model.QueueID) resource.Row {
	written := s.v.Queues[q].Capability
	switch {
	case written.Has == 0:
		return s.nothing
	case written.V[resource.CPU] > 0 && written.V[resource.Memory] > 0:
		return written
	}
	row := resource.NewRow(len(written.V))
	account.ResolveCapability(written, &row)
	return row
}

// allocated returns what a queue has allocated, request what it has requested, and elastic what its jobs hold above their minima.
func (s *State) allocated(q model.QueueID) resource.Row {
	return s.changed.allocated.At(q, s.v.QueueSumOf(q).Allocated)
}

func (s *State) request(q model.QueueID) resource.Row { return s.v.QueueSumOf(q).Request }

func (s *State) elastic(q model.QueueID) resource.Row { return s.v.QueueSumOf(q).Elastic }

// inqueue returns what is admitted of a queue's jobs.
func (s *State) inqueue(q model.QueueID) resource.Row {
	return s.changed.inqueue.At(q, s.v.QueueSumOf(q).Inqueue)
}

// updateShare sets share to the largest allocated / deserved over the dimensions with a deserved of Threshold or more: what is used
// without being deserved does not count.
func (s *State) updateShare(q model.QueueID) {
	deserved := s.deserved.Row(int(q))
	share, dominant := resource.DominantShare(s.allocated(q), deserved, deserved.AtLeastThreshold())
	s.share[q], s.dominant[q] = share, int32(dominant)
}

// QueueKey puts the queue of higher priority first, then the one with the smaller share.
func (s *State) QueueKey(q model.QueueID) policy.QueueKey {
	return policy.QueueKey{Class: -int64(s.v.Queues[q].Priority), Share: s.share[q]}
}

// CompareQueues compares the keys of two queues.
func (s *State) CompareQueues(l, r model.QueueID) int { return s.QueueKey(l).Compare(s.QueueKey(r)) }

// Overused reports whether a queue has all it deserves, in every dimension: one dimension below deserved is enough not to be overused.
func (s *State) Overused(q model.QueueID, why *policy.Reasons) bool {
	if !s.takesPart[q] {
		return false
	}
	allocated, deserved := s.allocated(q), s.deserved.Row(int(q))
	if !resource.Covers(allocated, deserved) {
		return false
	}
	if why != nil {
		reason := policy.Because(name, policy.Overused, q)
		if d := int(s.dominant[q]); d >= 0 {
			reason.Dimension, reason.Have, reason.Limit = d, allocated.V[d], deserved.V[d]
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
		Weight: s.v.Queues[q].Weight, Guarantee: s.guarantee(q), Deserved: s.deserved.Row(int(q)), Allocated: s.allocated(q),
		Request: s.request(q), Inqueue: s.inqueue(q), Elastic: s.elastic(q), Capability: s.capability(q),
		RealCapability: s.realCapability.Row(int(q)), Share: s.share[q], Dominant: int(s.dominant[q]),
		Overused: s.Overused(q, nil),
	}, true
}

// Allocate books a task that starts to hold resources. Of the queue's account only allocated and share follow.
func (s *State) Allocate(t model.TaskID) {
	q, allocated := s.touch(t)
	allocated.Add(s.v.Request(t))
	s.updateShare(q)
}

// Deallocate gives a task's resources back.
func (s *State) Deallocate(t model.TaskID) {
	q, allocated := s.touch(t)
	allocated.SubWithin(s.v.Request(t))
	s.updateShare(q)
}

// touch returns a task's queue and what that has allocated, for writing.
func (s *State) touch(t model.TaskID) (model.QueueID, *resource.Row) {
	q := s.v.QueueOf(t)
	s.v.Journal.Float(&s.share[q])
	s.v.Journal.Int(&s.dominant[q])
	return q, s.changed.allocated.Change(s.v, q, s.v.QueueSumOf(q).Allocated)
}
