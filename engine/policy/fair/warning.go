package fair

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/division"
)

// faults say why a queue is set aside.
var faults = map[hierarchy.Kind]string{
	hierarchy.UnknownParent: "its way up meets a parent that does not exist",
	hierarchy.Cycle:         "its way up is a cycle",
	hierarchy.TooDeep:       fmt.Sprintf("it is more than %d levels below the root", hierarchy.MaxDepth),
}

// Warnings names queues and jobs that are set aside, a parent written on the root, guarantees that do not fit, and guarantees above the
// queue's own capability.
func (s *State) Warnings(add func(policy.Warning)) {
	for _, q := range s.v.QueueOrder {
		if kind := s.tree.refused[q]; kind != 0 {
			add(policy.Warning{
				Code: policy.TreeRefused, Path: fmt.Sprintf("queues[%d].parent", q), Queue: q,
				Text: fmt.Sprintf("the queue %q is set aside: %s", s.v.Queues[q].Name, faults[kind]),
			})
		}
	}
	if root := s.tree.queue[0]; root != model.None && s.v.Queues[root].Parent != "" {
		add(policy.Warning{
			Code: policy.SettingIgnored, Path: fmt.Sprintf("queues[%d].parent", root), Queue: root,
			Text: "the parent of the queue \"root\" is ignored",
		})
	}
	for _, j := range s.v.Present() {
		if q := s.v.Jobs.At(j).Queue; s.leafOf(j) == none {
			why := "its queue is set aside"
			if s.tree.refused[q] == 0 {
				why = "its queue has children"
			}
			add(policy.Warning{
				Code: policy.TreeRefused, Path: fmt.Sprintf("jobs[%d].queue", j), Queue: q,
				Text: fmt.Sprintf("the job %q is set aside: %s", s.v.Jobs.At(j).UID, why),
			})
		}
	}
	s.settle()
	for p := range s.tree.queue {
		s.warnOfGuarantees(place(p), add)
	}
	s.warnOfMemory(add)
}

func (s *State) warnOfGuarantees(p place, add func(policy.Warning)) {
	q := s.tree.queue[p]
	label := "the root"
	if q != model.None {
		label = fmt.Sprintf("%q", s.v.Queues[q].Name)
	}
	for _, d := range s.dims {
		c := &s.division.columns[d]
		if stated := s.statedCapability(p, d); c.Guarantee[p] > stated {
			add(policy.Warning{
				Code: policy.GuaranteeAboveCapability, Path: fmt.Sprintf("queues[%d].guarantee", q), Queue: q,
				Text: fmt.Sprintf("the guarantee of %s is above the capability, which counts", s.v.Dims.Name(d)),
			})
		}
		if !s.tree.isLeaf(p) && s.problem(c, p).Stage == division.ByGuarantee {
			add(policy.Warning{
				Code: policy.GuaranteesExceedTotal, Path: "queues", Queue: q,
				Text: fmt.Sprintf("guarantees of %s that are in use do not fit below %s: they are cut in proportion",
					s.v.Dims.Name(d), label),
			})
		}
	}
}

// statedCapability returns the capability of a place in quanta, as it is without a budget.
func (s *State) statedCapability(p place, d int) int64 {
	if q := s.tree.queue[p]; q != model.None && s.v.Queues[q].Capability.Has.Has(d) {
		if limit := limitOf(s.v.Queues[q].Capability.V[d]); limit != unlimited {
			return limit / s.quantum[d]
		}
	}
	return unlimited
}

// warnOfMemory names usage that is ignored, or was stated for another time, a half-life at which shares swing, and budgets without the
// effect that they look like.
func (s *State) warnOfMemory(add func(policy.Warning)) {
	if s.memory == nil {
		for _, q := range s.v.QueueOrder {
			if s.v.Queues[q].Memory != nil {
				add(policy.Warning{
					Code: policy.MemoryIgnored, Path: "memory", Queue: model.None,
					Text: "usage, budgets and owners of queues are ignored: the snapshot has no memory",
				})
				return
			}
		}
		return
	}
	if n := s.memory.staleness(s.v.AsOf); n != 0 {
		add(policy.Warning{
			Code: policy.MemoryStale, Path: "memory.epoch", Queue: model.None, Epochs: n,
			Text: fmt.Sprintf("usage was stated for epoch %d, which differs from that of as_of by %d", s.memory.Epoch, n),
		})
	}
	if s.plugin.Memory.swings(s.memory.HalfLife) {
		add(policy.Warning{
			Code: policy.MemorySwings, Path: "memory.half_life_epochs", Queue: model.None,
			Text: fmt.Sprintf("a half-life of %d epochs is so short for this gain and power that shares may swing around the weights",
				s.memory.HalfLife),
		})
	}
	for p := range s.tree.queue {
		s.warnOfBudget(place(p), add)
	}
}

// staleness returns how many epochs a time is ahead of that of the usage; 0 if the time is not given.
func (m *memory) staleness(asOf int64) int64 {
	if asOf == 0 {
		return 0
	}
	now := floorDiv(floorDiv(asOf, nanoseconds), m.EpochSeconds)
	return max(now, math.MinInt64+m.Epoch) - m.Epoch
}

// floorDiv returns ⌊x / y⌋ for y > 0.
func floorDiv(x, y int64) int64 {
	q := x / y
	if x%y < 0 {
		q--
	}
	return q
}

func (s *State) warnOfBudget(p place, add func(policy.Warning)) {
	of, q := s.memoryOf(p), s.tree.queue[p]
	if of == nil || of.Budget == nil {
		return
	}
	if of.Budget.Kind == model.SoftBudget {
		if p == 0 || s.weights()[p] == 0 {
			add(policy.Warning{
				Code: policy.BudgetWithoutEffect, Path: fmt.Sprintf("queues[%d].budget", q), Queue: q,
				Text: fmt.Sprintf("the soft budget of %q has no effect: it lowers weights, and the queue competes with none",
					s.v.Queues[q].Name),
			})
		}
		return
	}
	for _, d := range s.dims {
		c := &s.division.columns[d]
		guaranteed := int64(0)
		for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
			guaranteed += c.Guaranteed[k]
		}
		if of.Budget.Amount.Has.Has(d) && max(c.Guarantee[p], guaranteed) > c.Capability[p] {
			add(policy.Warning{
				Code: policy.BudgetCutsGuarantee, Path: fmt.Sprintf("queues[%d].budget", q), Queue: q, Dimension: d,
				Text: fmt.Sprintf("what is left of the budget of %q for %s does not pay for the guarantee", s.v.Queues[q].Name,
					s.v.Dims.Name(d)),
			})
		}
	}
}
