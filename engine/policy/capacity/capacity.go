// Package capacity gives every queue its specified deserved amount, and lets queues borrow from each other up to a real capability:
// Volcano's plugin of that name (pkg/scheduler/plugins/capacity/capacity.go), flat or along a tree of queues.
//
// Flat, a queue with jobs has
//
//	real capability = min(capability, ExceededPart(total, guarantees of all queues) + own guarantee)
//	deserved        = max(min(written deserved, real capability), guarantee)
//
// and in a tree every queue has, with the parent's real capability in place of the total and the siblings' guarantees in place of all,
//
//	capability      = as written; cpu and memory of 0 and scalars that are not named are the parent's
//	real capability = min(capability, ExceededPart(parent's, guarantees of siblings and own) + own guarantee)
//	deserved        = max(written deserved, guarantee)
//
// where the root is unlimited unless it has a capability, and its guarantee and deserved are the sums over its children. A queue that
// deserves nothing (but `pods`) is best effort.
package capacity

import (
	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
)

const name = "capacity"

// Plugin is the policy with its settings.
type Plugin struct {
	// Hierarchical: queues form a tree by their parents, and only its leaves may have jobs.
	Hierarchical bool
	// AncestorReclaimLevel is the number of ancestors that decide whether one queue may take from another; below 0 counts as 0. It is
	// ignored if flat.
	AncestorReclaimLevel int
}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return name }

// Normal returns equivalent settings with the effective AncestorReclaimLevel.
func (p Plugin) Normal() Plugin {
	if p.AncestorReclaimLevel = max(p.AncestorReclaimLevel, 0); !p.Hierarchical {
		p.AncestorReclaimLevel = 0
	}
	return p
}

// State is the plugin in a session. Rows are indexed by queue; those of queues that take no part are not used.
type State struct {
	v *policy.View
	// Fixed once open. tree is nil if flat, and if the tree is refused.
	tree                  *hierarchy.Tree[model.QueueID]
	faults                []fault
	level                 int
	takesPart             []bool
	guarantee, capability []resource.Row
	realCapability        []resource.Row
	deserved              []resource.Row
	request, elastic      []resource.Row
	// relevant are the dimensions in which a queue can exceed its deserved; some are the dimensions of which it deserves a part.
	relevant, some []resource.Mask
	// totalGuarantee is the sum over all queues, kept if flat.
	totalGuarantee resource.Row
	// Change with events and permits, and are saved to the journal before.
	allocated, inqueue []resource.Row
	share              []float64
	dominant           []int32
	reclaim            trial
	need               resource.Row
}

// Open computes the accounts of all queues that take part: the queues with jobs if flat, all queues in a tree.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	accounts, err := account.Open(v)
	if err != nil {
		return nil, err
	}
	n, width := len(v.Queues), v.Dims.Len()
	rows := resource.NewAccounts(4*n, width)
	s := &State{
		v: v, takesPart: make([]bool, n), share: make([]float64, n), dominant: make([]int32, n),
		allocated: accounts.Allocated, request: accounts.Request, inqueue: accounts.Inqueue, elastic: accounts.Elastic,
		guarantee: rows[:n:n], capability: rows[n : 2*n : 2*n], realCapability: rows[2*n : 3*n : 3*n], deserved: rows[3*n:],
		relevant: make([]resource.Mask, n), some: make([]resource.Mask, n),
		totalGuarantee: resource.NewAccount(width), need: resource.NewAccount(width),
		reclaim: newTrial(n, width),
	}
	for q := range v.Queues {
		queue := &v.Queues[q]
		s.guarantee[q].Add(queue.Guarantee)
		s.deserved[q].Add(queue.Deserved)
	}
	if p.Hierarchical {
		return s.openTree(accounts.Jobs, p.Normal().AncestorReclaimLevel), nil
	}
	s.openFlat(accounts.Jobs)
	return s, nil
}

func (s *State) openFlat(jobs []int32) {
	for _, q := range s.v.QueueOrder {
		s.totalGuarantee.Add(s.guarantee[q])
	}
	free := resource.NewAccount(s.v.Dims.Len())
	free.SetExceeded(s.v.Total, s.totalGuarantee)
	for q := range s.takesPart {
		if jobs[q] == 0 {
			continue
		}
		s.takesPart[q] = true
		limited := account.ResolveCapability(s.v.Queues[q].Capability, &s.capability[q])
		s.limit(model.QueueID(q), free, limited)
		s.deserved[q].Min(s.realCapability[q], resource.Infinity)
		s.deserved[q].Max(s.guarantee[q])
		s.settle(model.QueueID(q))
	}
}

// limit sets the real capability of a queue. free is the parent's real capability (flat: the total) less the guarantees.
func (s *State) limit(q model.QueueID, free resource.Row, limited bool) {
	realCapability := &s.realCapability[q]
	realCapability.CopyFrom(free)
	realCapability.Add(s.guarantee[q])
	if limited {
		realCapability.Min(s.capability[q], resource.Infinity)
	}
}

// settle computes the values that depend on deserved, which is final, and on allocated.
func (s *State) settle(q model.QueueID) {
	s.some[q] = s.deserved[q].AtLeastThreshold()
	s.relevant[q] = (s.some[q]&resource.Base | s.deserved[q].Has&^resource.Base) &^ s.v.Dims.Pods()
	s.updateShare(q)
}

// updateShare sets share to the largest allocated / deserved over the dimensions of which the queue deserves any, or to 1 if there is none
// but `pods`: best effort is served last.
func (s *State) updateShare(q model.QueueID) {
	share, dominant := 1.0, -1
	if !s.bestEffort(q) {
		share, dominant = resource.DominantShare(s.allocated[q], s.deserved[q], s.some[q])
	}
	s.share[q], s.dominant[q] = share, int32(dominant)
}

// bestEffort reports whether a queue deserves nothing but `pods`.
func (s *State) bestEffort(q model.QueueID) bool { return s.some[q]&^s.v.Dims.Pods() == 0 }

// above returns the parent of a queue, or model.None: the next account that changes with the queue's.
func (s *State) above(q model.QueueID) model.QueueID {
	if s.tree == nil {
		return model.None
	}
	return s.tree.Parent(q)
}

// Share returns a queue's account; false if it takes no part.
func (s *State) Share(q model.QueueID) (policy.Share, bool) {
	if !s.takesPart[q] {
		return policy.Share{}, false
	}
	share := policy.Share{
		Guarantee: s.guarantee[q], Deserved: s.deserved[q], Allocated: s.allocated[q], Request: s.request[q],
		Inqueue: s.inqueue[q], Elastic: s.elastic[q], Capability: s.capability[q], RealCapability: s.realCapability[q],
		Admits: s.realCapability[q], Share: s.share[q], Dominant: int(s.dominant[q]),
	}
	if s.tree != nil {
		share.Ancestors = s.tree.Ancestors(q, make([]model.QueueID, 0, s.tree.Depth(q)))
		share.Children = s.tree.Children(q)
	}
	return share, true
}

// Allocate books a task that starts to hold resources, on its queue and all ancestors. It updates only the queue's own share: ancestors
// keep the share from when the session opened, which orders the queues.
func (s *State) Allocate(t model.TaskID) {
	s.book(t, (*resource.Row).Add)
}

// Deallocate undoes Allocate.
func (s *State) Deallocate(t model.TaskID) {
	s.book(t, (*resource.Row).SubWithin)
}

func (s *State) book(t model.TaskID, change func(*resource.Row, resource.Row)) {
	q, request := s.v.QueueOf(t), s.v.Request(t)
	if !s.takesPart[q] {
		return
	}
	for at := q; at != model.None; at = s.above(at) {
		s.v.Journal.Row(&s.allocated[at])
		change(&s.allocated[at], request)
	}
	s.v.Journal.Float(&s.share[q])
	s.v.Journal.Int(&s.dominant[q])
	s.updateShare(q)
}
