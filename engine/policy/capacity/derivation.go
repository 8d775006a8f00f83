package capacity

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// Level is the derivation of one queue's limits. Rows without a value are absent.
type Level struct {
	Queue model.QueueID
	// Parent is model.None for the root, and if flat.
	Parent model.QueueID
	// Depth below the root; 0 if flat.
	Depth int
	// Capability as written, and with what was inherited.
	Capability, ResolvedCapability resource.Row
	// ParentRealCapability (flat: the cluster's total), the guarantees of the queue and its siblings (flat: of all queues), and what this
	// leaves for the queue. The root has neither of the former.
	ParentRealCapability, SiblingGuarantee, RealCapability resource.Row
	// WrittenDeserved as written, and Deserved as used.
	WrittenDeserved, Deserved resource.Row
}

// Derivation returns the levels of those of the given queues that take part, parents first, then by name; nil stands for all queues.
func (s *State) Derivation(queues []model.QueueID) []Level {
	order := s.v.QueueOrder
	if s.tree != nil {
		order = s.tree.TopDown()
	}
	wanted := make([]bool, len(s.v.Queues))
	for _, q := range queues {
		wanted[q] = true
	}
	levels := []Level{}
	guarantees := make(map[model.QueueID]resource.Row)
	for _, q := range order {
		if s.takesPart[q] && (queues == nil || wanted[q]) {
			levels = append(levels, s.derive(q, guarantees))
		}
	}
	return levels
}

// derive returns the level of one queue. guarantees caches the sums of the siblings' guarantees, by parent.
func (s *State) derive(q model.QueueID, guarantees map[model.QueueID]resource.Row) Level {
	queue := &s.v.Queues[q]
	level := Level{
		Queue: q, Parent: s.above(q),
		Capability: queue.Capability, ResolvedCapability: s.capability[q], RealCapability: s.realCapability[q],
		WrittenDeserved: queue.Deserved, Deserved: s.deserved[q],
	}
	switch {
	case s.tree == nil:
		level.ParentRealCapability, level.SiblingGuarantee = s.v.Total, s.totalGuarantee
	case level.Parent != model.None:
		level.Depth = s.tree.Depth(q)
		level.ParentRealCapability = s.realCapability[level.Parent]
		sum, known := guarantees[level.Parent]
		if !known {
			sum = resource.NewAccount(s.v.Dims.Len())
			for _, c := range s.tree.Children(level.Parent) {
				sum.Add(s.guarantee[c])
			}
			guarantees[level.Parent] = sum
		}
		level.SiblingGuarantee = sum
	}
	return level
}
