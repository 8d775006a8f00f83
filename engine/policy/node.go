package policy

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// Predicater says whether a task may run on a node.
type Predicater interface {
	Fits(t model.TaskID, n model.NodeID, why *Reasons) bool
}

// NodeFilter is the plugin with which Volcano heeds what nodes and pods say about where pods may run. Sessions heed it without the plugin
// too; a cycle that does what Volcano does asks whether it is there.
type NodeFilter interface {
	FiltersNodes()
}

// Absentee stands for a plugin that is not modelled.
type Absentee interface {
	// Votes returns the decisions that the plugin votes on: bit d for the decision d of the contract.
	Votes() uint32
}

// FitClasser is a Predicater to which jobs may differ whose tasks are of one queue, ask for the same and may use the same nodes.
type FitClasser interface {
	// FitClass returns a number that is the same for jobs whose like tasks fit the same nodes.
	FitClass(j model.JobID) int64
}

// NodeBounder is a Predicater that counts what tasks use together: Fits respects the bounds as they are used at present.
type NodeBounder interface {
	// Bounded reports whether a queue has bounds at all.
	Bounded(q model.QueueID) bool
	// NodeBound returns the bound to which a task of a queue counts on a node, the same one for all nodes of a group, and nil if there is
	// none. It changes with the state; callers must not modify it.
	NodeBound(q model.QueueID, n model.NodeID) *NodeBound
}

// NodeBound is what the tasks of a queue use, and may use, of a group of nodes.
type NodeBound struct {
	Group string
	// Used sums the requests of the tasks that hold resources. Limit names the dimensions that are bounded.
	Used, Limit resource.Row
}

// Exceeded returns the first dimension in which a request in addition to what is used would exceed the limit, or -1 (Volcano's
// limitedResourceExceededNames).
func (b *NodeBound) Exceeded(used, request resource.Row) int {
	for m := b.Limit.Has; m != 0; m = m.Rest() {
		if d := m.First(); used.V[d]+request.V[d]-b.Limit.V[d] >= resource.Threshold {
			return d
		}
	}
	return -1
}

// NodeScorer scores nodes for a task: out[i] is the score of nodes[i].
type NodeScorer interface {
	ScoreNodes(t model.TaskID, nodes []model.NodeID, out []float64)
}
