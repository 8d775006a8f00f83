// Package edit changes single settings of the objects of a model: the weight of a queue, the minimum of a job, copies of a node.
package edit

import "github.com/apportion/apportion/engine/model"

// Kind says what an edit changes. The values are those of the contract's EditKind, which says what each kind means.
type Kind uint8

// The kinds: settings of queues first, then of jobs, then of nodes.
const (
	Capability Kind = iota + 1
	Guarantee
	Deserved
	Weight
	Open
	Close
	Parent
	Priority
	Reclaimable
	Unreclaimable
	Usage
	Budget
	BudgetKind
	Spent
	Nominal
	BorrowingLimit
	LendingLimit
	Flavor
	// Queue moves the job into the queue.
	Queue
	// Minimum is that of the job, or of the role if Group is one.
	Minimum
	MinResources
	// Request is the maximum request of each waiting task of the role.
	Request
	// AllowedNode lets the waiting tasks of the job use the node besides those of their node sets.
	AllowedNode
	// End removes the job.
	End
	// NodesLike is how many nodes are added that are like the node, but empty and schedulable.
	NodesLike
	Remove
	Cordon
	Uncordon
	Allocatable
	Maintenance
	// Forget removes the memory.
	Forget
)

// Edit is one difference between two models.
type Edit struct {
	Kind Kind
	// Queue, Job, Group and Node name the object, or are model.None.
	Queue model.QueueID
	Job   model.JobID
	Group model.GroupID
	Node  model.NodeID
	// Dimension of the amounts in the order of the model's Dims, or -1.
	Dimension int
	// Before is the value now, valid if Given. Amount is the new value, unless None says that an amount is removed. Step is the granularity
	// of a search; 0: the amount follows from other edits.
	Before, Amount, Step float64
	Given, None          bool
	// Text is the new value of kinds whose value is a text. Flavor names that of a quota.
	Text, Flavor string
	// Downtime are the periods of Maintenance; nil for other kinds.
	Downtime *[]model.ReservationSpec
}

// The texts of edits of BudgetKind, and that of Close for a queue that is being closed.
const (
	Hard    = "hard"
	Soft    = "soft"
	Closing = "closing"
)

// Of returns an edit without an object.
func Of(kind Kind) Edit {
	return Edit{Kind: kind, Queue: model.None, Job: model.None, Group: model.None, Node: model.None, Dimension: -1}
}

// Extras makes those parts of edits that are about what a single policy reads of a queue, a job or a node set.
type Extras interface {
	// Queue and Job return what the policy reads after an edit; the same value if it does not concern it.
	Queue(e *Edit, was *model.Extra) *model.Extra
	Job(e *Edit, was *model.Extra) *model.Extra
	// Flavor returns what the policy reads of a node set that is a new flavor.
	Flavor() *model.Extra
}
