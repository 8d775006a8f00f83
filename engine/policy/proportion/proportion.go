// Package proportion divides the cluster among queues by weight, within guarantee, request and capability: Volcano's plugin of that name
// (pkg/scheduler/plugins/proportion/proportion.go).
//
// Only queues with at least one job take part. A queue's deserved is found by water-filling (divide.go); its limit at enqueue is the real
// capability:
//
//	real capability = min(capability, ExceededPart(total, guarantees of all queues) + own guarantee)
package proportion

import (
	"fmt"

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
	// asked is what queues request in a model of the future; nil: what their jobs do.
	asked []resource.Row
	// Change with events and permits, and are saved to the journal before.
	changed struct{ allocated, inqueue account.Changing }
	// Scratch of Reclaimable: the queues of the candidates, and what is left of those that lose some. running[q] is valid if stamp[q] is
	// the present epoch.
	losing  []model.QueueID
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
		v: v, takesPart: make([]bool, n), queues: make([]model.QueueID, 0, n),
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
	free := s.free()
	for _, q := range s.queues {
		s.limit(q, free)
	}
	if err := s.division().run(); err != nil {
		return nil, err
	}
	return s, nil
}

// free returns the total without all guarantees.
func (s *State) free() resource.Row {
	free := resource.NewAccount(s.v.Dims.Len())
	free.SetExceeded(s.v.Total, s.totalGuarantee)
	return free
}

// limit sets the real capability of a queue. free is the total without all guarantees. In a capability that names anything, cpu and memory
// are unlimited if they are 0 or not named; a scalar of 0 is 0.
func (s *State) limit(q model.QueueID, free resource.Row) {
	queue, limit := &s.v.Queues[q], s.realCapability.Row(int(q))
	limit.CopyFrom(free)
	if !queue.Guarantee.Absent() {
		limit.Add(queue.Guarantee)
	}
	s.realCapability.SetHas(int(q), limit.Has)
	for m := queue.Capability.Has & limit.Has; m != 0; m = m.Rest() {
		d := m.First()
		if most := queue.Capability.V[d]; most < limit.V[d] && (most > 0 || d > resource.Memory) {
			limit.V[d] = most
		}
	}
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

func (s *State) request(q model.QueueID) resource.Row {
	if s.asked != nil {
		return s.asked[q]
	}
	return s.v.QueueSumOf(q).Request
}

func (s *State) elastic(q model.QueueID) resource.Row { return s.v.QueueSumOf(q).Elastic }

// inqueue returns what is admitted of a queue's jobs.
func (s *State) inqueue(q model.QueueID) resource.Row {
	return s.changed.inqueue.At(q, s.v.QueueSumOf(q).Inqueue)
}

// share returns the largest allocated / deserved over the dimensions with a deserved of Threshold or more, and its dimension, or -1:
// amounts of dimensions that the queue does not deserve do not count. It is computed when it is asked for, because most sessions ask it of
// few queues.
func (s *State) share(q model.QueueID) (float64, int) {
	deserved := s.deserved.Row(int(q))
	return resource.DominantShare(s.allocated(q), deserved, deserved.AtLeastThreshold())
}

// CompareQueues puts the queue of higher priority first, then the one with the smaller share.
func (s *State) CompareQueues(l, r model.QueueID) int { return s.placeOf(l).Compare(s.placeOf(r)) }

// PlaceQueues is policy.QueueOrderer.PlaceQueues.
func (s *State) PlaceQueues(queues []model.QueueID, places []policy.QueuePlace) bool {
	for i, q := range queues {
		places[i] = s.placeOf(q)
	}
	return true
}

func (s *State) placeOf(q model.QueueID) policy.QueuePlace {
	share, _ := s.share(q)
	return policy.PlaceOf(s.v.Queues[q].Priority, share)
}

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
		if _, d := s.share(q); d >= 0 {
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
	share, dominant := s.share(q)
	return policy.Share{
		Weight: s.v.Queues[q].Weight, Guarantee: s.guarantee(q), Deserved: s.deserved.Row(int(q)), Allocated: s.allocated(q),
		Request: s.request(q), Inqueue: s.inqueue(q), Elastic: s.elastic(q), Capability: s.capability(q),
		RealCapability: s.realCapability.Row(int(q)), Admits: s.realCapability.Row(int(q)), Share: share, Dominant: dominant,
		Overused: s.Overused(q, nil),
	}, true
}

// Allocate books a task that starts to hold resources. Of the queue's account only allocated follows, and with it the share.
func (s *State) Allocate(t model.TaskID) { s.allocatedOf(t).Add(s.v.Request(t)) }

// Deallocate gives a task's resources back.
func (s *State) Deallocate(t model.TaskID) { s.allocatedOf(t).SubWithin(s.v.Request(t)) }

// allocatedOf returns what a task's queue has allocated, for writing.
func (s *State) allocatedOf(t model.TaskID) *resource.Row {
	q := s.v.QueueOf(t)
	return s.changed.allocated.Change(s.v, q, s.v.QueueSumOf(q).Allocated)
}

// Warnings reports input that Volcano decides in surprising ways: guarantees beyond the cluster or the own capability, idle guarantees that
// are given away, scalars guaranteed away entirely, and weights that are all 0.
func (s *State) Warnings(add func(policy.Warning)) {
	weight := int64(0)
	for _, q := range s.queues {
		weight += int64(s.v.Queues[q].Weight)
	}
	if len(s.queues) > 0 && weight == 0 {
		add(policy.Warning{
			Code: policy.AllWeightsZero, Path: "queues", Queue: -1,
			Text: "every queue with jobs has weight 0: nothing is divided, not even guarantees",
		})
	}
	s.warnOfTotal(add)
	for _, q := range s.v.QueueOrder {
		queue := &s.v.Queues[q]
		if !s.takesPart[q] && !queue.Guarantee.Absent() && queue.Guarantee.Positive() != 0 {
			add(policy.Warning{
				Code: policy.IdleGuarantee, Path: fmt.Sprintf("queues[%d].guarantee", q), Queue: q,
				Text: "the queue has no jobs: its guarantee is taken off the others' real capability, but divided among them all the same",
			})
		}
		for zero := zeroBase(queue.Capability); s.takesPart[q] && zero != 0; zero = zero.Rest() {
			add(policy.Warning{
				Code: policy.ZeroCapabilityIsUnlimited, Path: fmt.Sprintf("queues[%d].capability", q), Queue: q,
				Text: fmt.Sprintf("a capability of 0 %s counts as unlimited", s.v.Dims.Name(zero.First())),
			})
		}
		if !s.takesPart[q] || queue.Capability.Has == 0 {
			continue
		}
		if over := resource.Uncovered(s.capability(q), s.guarantee(q)) & queue.Capability.Has; over != 0 {
			add(policy.Warning{
				Code: policy.GuaranteeAboveCapability, Path: fmt.Sprintf("queues[%d].guarantee", q), Queue: q,
				Text: fmt.Sprintf("the guarantee of %s is above the capability: deserved is raised to it", s.v.Dims.Name(over.First())),
			})
		}
	}
}

func (s *State) warnOfTotal(add func(policy.Warning)) {
	for m := s.totalGuarantee.Has; m != 0; m = m.Rest() {
		d := m.First()
		guaranteed, total := s.totalGuarantee.V[d], s.v.Total.V[d]
		if guaranteed > total {
			add(policy.Warning{
				Code: policy.GuaranteesExceedTotal, Path: "queues", Queue: -1,
				Text: fmt.Sprintf("guarantees of %s add up to {0}, and the cluster has {1}: deserved may exceed the cluster",
					s.v.Dims.Name(d)),
				Dimension: d, Amounts: []float64{guaranteed, total},
			})
		}
		if d > resource.Memory && guaranteed >= total && s.v.Total.Has.Has(d) {
			add(policy.Warning{
				Code: policy.ScalarGuaranteedAway, Path: "queues", Queue: -1,
				Text: fmt.Sprintf("all %s is guaranteed: for the other queues it is unlimited where shares are divided, and 0 at enqueue",
					s.v.Dims.Name(d)),
			})
		}
	}
}

// zeroBase returns which of cpu and memory a capability names with 0.
func zeroBase(capability resource.Row) resource.Mask {
	return capability.Has & resource.Base &^ capability.Positive()
}
