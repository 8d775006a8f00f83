package place

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// NodeCount is a number of nodes that do not take a task for the same reason.
type NodeCount struct {
	// N is the number of nodes.
	N int
	// Code is the rule; 0: further reasons, which are not listed one by one.
	Code policy.Code
	// Dimensions are those of which too little is left (policy.InsufficientResource) or offered (policy.NodeTooSmall).
	Dimensions resource.Mask
	// Detail is a short description of the rule, or empty.
	Detail string
	// Free is how many of them have enough left for the task, so that the rule alone excludes them. Nodes with a role of their own in the
	// cluster, such as those of the control plane, do not count.
	Free int
	// From and Until are those of the reservation (policy.NodeReserved). Holder is the uid of the job that holds it, of HolderQueue if the
	// snapshot has the job.
	From, Until int64
	Holder      string
	HolderQueue model.QueueID
}

// Distance says how far nodes that a rule excludes are from taking a task: those that only lack room are closest, and those that take no
// new tasks are farthest.
func Distance(code policy.Code) int {
	switch code { //nolint:exhaustive // The others are constraints of the task or its queue.
	case policy.InsufficientResource, policy.NoNodeHasAll, policy.Fragmented, policy.NotPreemptable:
		return 0
	case policy.NodeTooSmall, policy.LargerThanAnyNode:
		return 1
	case policy.NodeNotInSet:
		return 3
	case policy.NodeUnschedulable:
		return 4
	case 0:
		return 5
	}
	return 2
}

// NodeCounts counts nodes by the reason why they do not take a task, each once. Of nodes that take no new tasks it keeps the detail if it
// is the same for all of one cause.
type NodeCounts struct {
	n, Free map[NodeCount]int
	details map[string]string
}

// Add counts a node.
func (c *NodeCounts) Add(key NodeCount) {
	if c.n == nil {
		c.n, c.Free, c.details = make(map[NodeCount]int), make(map[NodeCount]int), make(map[string]string)
	}
	c.n[key]++
}

// Lacking counts a node that admits a task but has no room for it.
func (c *NodeCounts) Lacking(left, offered, request resource.Row) {
	if small := resource.Uncovered(offered, request); small != 0 {
		c.Add(NodeCount{Code: policy.NodeTooSmall, Dimensions: small})
		return
	}
	c.Add(NodeCount{Code: policy.InsufficientResource, Dimensions: resource.Uncovered(left, request)})
}

// Refused counts a node that a rule excludes for a task; free: the node has enough left for it.
func (c *NodeCounts) Refused(v *policy.View, t model.TaskID, n model.NodeID, why []policy.Reason, free bool) {
	key := NodeCount{}
	if len(why) > 0 {
		key = NodeCount{Code: why[0].Code, Detail: why[0].Detail}
	}
	if key.Code == policy.Reserved {
		// It names a job, which not every reader may know.
		key.Detail = ""
	}
	if key.Code == policy.NodeReserved {
		if kept := v.Reservations().Against(t, n, resource.Row{}); kept != nil {
			key.From, key.Until, key.Holder, key.HolderQueue = kept.From, kept.Until, kept.Holder, model.None
			if j, known := v.Job(kept.Holder); known && kept.Holder != "" {
				key.HolderQueue = v.Jobs.At(j).Queue
			}
		}
	}
	u := v.Nodes[n].Unschedulable
	closed := key.Code == policy.NodeUnschedulable && u != nil
	if closed {
		key.Detail = u.Short()
	}
	if c.Add(key); free {
		c.Free[key]++
	}
	if !closed {
		return
	}
	if full, known := c.details[key.Detail]; !known {
		c.details[key.Detail] = u.String()
	} else if full != u.String() {
		c.details[key.Detail] = key.Detail
	}
}

// List returns the counts: those with nodes that have enough left first, then those of nodes that are closest to taking the task. Beyond
// maxReasons the last is of all others.
func (c *NodeCounts) List() []NodeCount {
	list := make([]NodeCount, 0, len(c.n))
	for key, n := range c.n {
		key.N, key.Free = n, c.Free[key]
		if key.Code == policy.NodeUnschedulable {
			key.Detail = cmp.Or(c.details[key.Detail], key.Detail)
		}
		list = append(list, key)
	}
	slices.SortFunc(list, func(l, r NodeCount) int {
		return cmp.Or(cmp.Compare(r.Free, l.Free), cmp.Compare(Distance(l.Code), Distance(r.Code)), cmp.Compare(r.N, l.N),
			cmp.Compare(l.Code, r.Code), cmp.Compare(l.Dimensions, r.Dimensions), cmp.Compare(l.Detail, r.Detail),
			cmp.Compare(l.From, r.From), cmp.Compare(l.Until, r.Until), cmp.Compare(l.Holder, r.Holder))
	})
	if len(list) > MaxReasons {
		rest := NodeCount{}
		for _, other := range list[MaxReasons-1:] {
			rest.N, rest.Free = rest.N+other.N, rest.Free+other.Free
		}
		list = append(list[:MaxReasons-1], rest)
	}
	return list
}

// MaxReasons bounds the reasons of one finding.
const MaxReasons = 16
