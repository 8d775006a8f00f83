package capacity

import (
	"fmt"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Warnings reports input that Volcano decides in surprising ways: guarantees beyond the cluster or the own capability, idle guarantees,
// scalars guaranteed away, and capabilities of 0.
func (s *State) Warnings(add func(policy.Warning)) {
	for m := s.totalGuarantee.Has; m != 0; m = m.Rest() {
		d := m.First()
		guaranteed, total := s.totalGuarantee.V[d], s.v.Total.V[d]
		if guaranteed > total {
			add(policy.Warning{
				Code: policy.GuaranteesExceedTotal, Path: "queues", Queue: model.None,
				Text:      fmt.Sprintf("guarantees of %s add up to {0}, and the cluster has {1}", s.v.Dims.Name(d)),
				Dimension: d, Amounts: []float64{guaranteed, total},
			})
		}
		if d > resource.Memory && guaranteed >= total && s.v.Total.Has.Has(d) {
			add(policy.Warning{
				Code: policy.ScalarGuaranteedAway, Path: "queues", Queue: model.None,
				Text: fmt.Sprintf("all %s is guaranteed: queues without a guarantee of it get none, regardless of what they deserve",
					s.v.Dims.Name(d)),
			})
		}
	}
	for _, q := range s.v.QueueOrder {
		queue := &s.v.Queues[q]
		if !s.takesPart[q] {
			if !queue.Guarantee.Absent() && queue.Guarantee.Positive() != 0 {
				s.warn(add, policy.IdleGuarantee, q, "guarantee",
					"the queue has no jobs, but its guarantee reduces the real capability of the others")
			}
			continue
		}
		s.warnOfCapability(add, q)
		for zero := zeroCapability(queue); zero != 0; zero = zero.Rest() {
			s.warn(add, policy.ZeroCapabilityIsUnlimited, q, "capability",
				fmt.Sprintf("a capability of 0 %s counts as unlimited", s.v.Dims.Name(zero.First())))
		}
	}
}

// Warnings reports, in addition to those of a flat plugin, the faults of a refused tree, and children that claim more than their parent
// has, which Volcano only logs.
func (s *TreeState) Warnings(add func(policy.Warning)) {
	for _, f := range s.faults {
		s.warnOfFault(add, f)
	}
	if s.tree == nil {
		return
	}
	for _, q := range s.tree.TopDown() {
		if q == s.tree.Root() {
			s.warnOfRoot(add, q)
		} else {
			s.warnOfCapability(add, q)
			s.warnOfParent(add, q, s.tree.Parent(q))
		}
		if !s.tree.IsLeaf(q) {
			s.warnOfChildren(add, q)
		}
	}
}

func (s *TreeState) warnOfFault(add func(policy.Warning), f fault) {
	if f.Kind == hierarchy.MissingRoot {
		add(policy.Warning{
			Code: policy.TreeRefused, Path: "queues", Queue: model.None,
			Text: fmt.Sprintf("no queue is named %q: everything is refused", hierarchy.Root),
		})
		return
	}
	field := "parent"
	var text string
	switch f.Kind {
	case hierarchy.UnknownParent:
		text = fmt.Sprintf("no queue is named %q: everything is refused", s.v.Queues[f.Node].Parent)
	case hierarchy.Cycle:
		text = "the queue is its own ancestor: everything is refused"
	case hierarchy.TooDeep:
		text = fmt.Sprintf("the queue is more than %d levels below the root: everything is refused", hierarchy.MaxDepth)
	default:
		field, text = "name", "the queue has both children and jobs: everything is refused"
	}
	s.warn(add, policy.TreeRefused, f.Node, field, text)
}

func (s *TreeState) warnOfRoot(add func(policy.Warning), root model.QueueID) {
	if s.v.Queues[root].Parent != "" {
		s.warn(add, policy.SettingIgnored, root, "parent", "the root has no parent: the one that it names is ignored")
	}
	for m := resource.Base; m != 0; m = m.Rest() {
		if d := m.First(); s.capability[root].V[d] == 0 {
			s.warn(add, policy.PartialRootCapability, root, "capability",
				fmt.Sprintf("the root names a capability without %s: no job or task that requests it is admitted", s.v.Dims.Name(d)))
		}
	}
}

func (s *TreeState) warnOfParent(add func(policy.Warning), q, parent model.QueueID) {
	if over := resource.Uncovered(s.capability[parent], s.capability[q]); over != 0 {
		d := over.First()
		s.warnAmounts(add, q, "capability", fmt.Sprintf("a capability of {0} %s is above {1}, that of the parent", s.v.Dims.Name(d)),
			d, s.capability[q].V[d], s.capability[parent].V[d])
	}
	if zero := zeroCapability(&s.v.Queues[q]); zero != 0 {
		s.warn(add, policy.ZeroCapabilityIsUnlimited, q, "capability",
			fmt.Sprintf("a capability of 0 %s counts as that of the parent", s.v.Dims.Name(zero.First())))
	}
}

// warnOfChildren compares the sums of the guarantees and deserved amounts of a queue's children with the queue's own; for the root, whose
// own are these sums, it compares the guarantees with the cluster.
func (s *TreeState) warnOfChildren(add func(policy.Warning), q model.QueueID) {
	if q == s.tree.Root() {
		if over := resource.Uncovered(s.v.Total, s.guarantee[q]); over != 0 {
			d := over.First()
			add(policy.Warning{
				Code: policy.GuaranteesExceedTotal, Path: "queues", Queue: model.None,
				Text:      fmt.Sprintf("guarantees of %s add up to {0}, and the cluster has {1}", s.v.Dims.Name(d)),
				Dimension: d, Amounts: []float64{s.guarantee[q].V[d], s.v.Total.V[d]},
			})
		}
		return
	}
	sum := resource.NewAccount(s.v.Dims.Len())
	for _, each := range [...]struct {
		rows  []resource.Row
		field string
	}{{s.guarantee, "guarantee"}, {s.deserved, "deserved"}} {
		sum.Clear(resource.Base)
		for _, c := range s.tree.Children(q) {
			sum.Add(each.rows[c])
		}
		if over := resource.Uncovered(each.rows[q], sum); over != 0 {
			d := over.First()
			s.warnAmounts(add, q, each.field,
				fmt.Sprintf("the %s of %s of the children adds up to {0}, above {1} of the queue", each.field, s.v.Dims.Name(d)),
				d, sum.V[d], each.rows[q].V[d])
		}
	}
}

func (s *State) warnOfCapability(add func(policy.Warning), q model.QueueID) {
	if over := resource.Uncovered(s.capability[q], s.guarantee[q]) & s.v.Queues[q].Capability.Has; over != 0 {
		s.warn(add, policy.GuaranteeAboveCapability, q, "guarantee",
			fmt.Sprintf("the guarantee of %s is above the capability: deserved is raised to it", s.v.Dims.Name(over.First())))
	}
}

// warnAmounts warns that amounts of a child, or of all children, exceed the parent's.
func (s *State) warnAmounts(add func(policy.Warning), q model.QueueID, field, text string, dimension int, amounts ...float64) {
	add(policy.Warning{
		Code: policy.ChildExceedsParent, Path: fmt.Sprintf("queues[%d].%s", q, field), Text: text, Queue: q,
		Dimension: dimension, Amounts: amounts,
	})
}

func (s *State) warn(add func(policy.Warning), code policy.WarningCode, q model.QueueID, field, text string) {
	add(policy.Warning{Code: code, Path: fmt.Sprintf("queues[%d].%s", q, field), Text: text, Queue: q})
}

// zeroCapability returns which of cpu and memory a capability names as 0.
func zeroCapability(queue *model.Queue) resource.Mask {
	if queue.Capability.Absent() {
		return 0
	}
	return queue.Capability.Has & resource.Base &^ queue.Capability.Positive()
}
