package fair

import (
	"fmt"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
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
}

func (s *State) warnOfGuarantees(p place, add func(policy.Warning)) {
	q := s.tree.queue[p]
	label := "the root"
	if q != model.None {
		label = fmt.Sprintf("%q", s.v.Queues[q].Name)
	}
	for _, d := range s.dims {
		c := &s.division.columns[d]
		if c.guarantee[p] > c.capability[p] {
			add(policy.Warning{
				Code: policy.GuaranteeAboveCapability, Path: fmt.Sprintf("queues[%d].guarantee", q), Queue: q,
				Text: fmt.Sprintf("the guarantee of %s is above the capability, which counts", s.v.Dims.Name(d)),
			})
		}
		if !s.tree.isLeaf(p) && s.problem(c, p).stage == ByGuarantee {
			add(policy.Warning{
				Code: policy.GuaranteesExceedTotal, Path: "queues", Queue: q,
				Text: fmt.Sprintf("guarantees of %s that are in use do not fit below %s: they are cut in proportion",
					s.v.Dims.Name(d), label),
			})
		}
	}
}
