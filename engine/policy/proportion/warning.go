package proportion

import (
	"fmt"

	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

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
