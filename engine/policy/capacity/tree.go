package capacity

import (
	"math"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// TreeState is the hierarchical plugin in a session.
type TreeState struct {
	*State

	near     nearness
	branches branching
}

type fault = hierarchy.Fault[model.QueueID]

// openTree computes the accounts along the tree, or the faults of the tree.
func (s *State) openTree(jobs []int32, level int) *TreeState {
	s.level = level
	tree, faults := hierarchy.New(len(s.v.Queues), s.v.QueueOrder,
		func(q model.QueueID) string { return s.v.Queues[q].Parent }, s.v.Queue)
	if tree != nil {
		for _, q := range s.v.QueueOrder {
			if jobs[q] > 0 && !tree.IsLeaf(q) {
				faults = append(faults, fault{Kind: hierarchy.NotLeaf, Node: q})
			}
		}
	}
	if s.faults = faults; len(faults) > 0 {
		return &TreeState{State: s}
	}
	s.tree = tree
	down := tree.TopDown()
	for _, q := range down {
		if !tree.IsLeaf(q) {
			s.request[q], s.elastic[q] = s.request[q].Clone(), s.elastic[q].Clone()
		}
	}
	for i := len(down) - 1; i > 0; i-- {
		s.raise(down[i], tree.Parent(down[i]))
	}
	s.setRoot(tree.Root())
	free := resource.NewAccount(s.v.Dims.Len())
	for _, q := range down {
		s.takesPart[q] = true
		s.settle(q)
		s.limitChildren(q, free)
	}
	return &TreeState{State: s, near: newNearness(len(s.v.Queues))}
}

// raise adds the sums of a queue to its parent.
func (s *State) raise(q, parent model.QueueID) {
	s.allocated[parent].Add(s.allocated[q])
	s.request[parent].Add(s.request[q])
	s.inqueue[parent].Add(s.inqueue[q])
	s.elastic[parent].Add(s.elastic[q])
	s.deserved[q].Max(s.guarantee[q])
}

// setRoot gives the root what its children guarantee and deserve in sum, and the limits of its capability. Without a capability the root is
// unlimited, in the scalars that the cluster has; otherwise dimensions that the capability does not name are 0.
func (s *State) setRoot(root model.QueueID) {
	s.guarantee[root].Clear(resource.Base)
	s.deserved[root].Clear(resource.Base)
	for _, c := range s.tree.Children(root) {
		s.guarantee[root].Add(s.guarantee[c])
		s.deserved[root].Add(s.deserved[c])
	}
	capability := &s.capability[root]
	if written := s.v.Queues[root].Capability; !written.Absent() && !written.IsEmpty(s.v.Dims.Pods()) {
		capability.Add(written)
	} else {
		for m := s.v.Total.Has; m != 0; m = m.Rest() {
			capability.Set(m.First(), math.Inf(1))
		}
	}
	s.realCapability[root].CopyFrom(*capability)
}

// limitChildren resolves the capabilities of a queue's children, which inherit what they do not name, and their real capabilities. free is
// scratch.
func (s *State) limitChildren(q model.QueueID, free resource.Row) {
	children := s.tree.Children(q)
	if len(children) == 0 {
		return
	}
	free.Clear(resource.Base)
	for _, c := range children {
		free.Add(s.guarantee[c])
	}
	free.SetExceeded(s.realCapability[q], free)
	for _, c := range children {
		s.inherit(c, s.capability[q])
		s.limit(c, free, true)
	}
}

// inherit sets a queue's capability to what is written, with cpu and memory of 0 and scalars that are not named from its parent's.
func (s *State) inherit(q model.QueueID, parent resource.Row) {
	capability := &s.capability[q]
	capability.Add(s.v.Queues[q].Capability)
	for m := parent.Has; m != 0; m = m.Rest() {
		d := m.First()
		if d <= resource.Memory && capability.V[d] <= 0 || !capability.Has.Has(d) {
			capability.Set(d, parent.V[d])
		}
	}
}

// Accepted reports whether the queues form a tree whose inner nodes have no jobs.
func (s *TreeState) Accepted(why *policy.Reasons) bool {
	for _, f := range s.faults {
		why.Add(refusal(f))
	}
	return len(s.faults) == 0
}

// refusal returns the reason for a fault.
func refusal(f fault) policy.Reason {
	reason := policy.Because(name, policy.HierarchyRefused, f.Node)
	reason.Fault = uint8(f.Kind)
	return reason
}

// refused reports whether the tree is refused, so that nothing can be decided, and adds the first fault as the reason.
func (s *State) refused(why *policy.Reasons, checks *policy.Checks) bool {
	return len(s.faults) > 0 && !policy.Refuse(why, checks, refusal(s.faults[0]))
}
