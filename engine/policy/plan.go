package policy

import (
	"math/big"

	"github.com/apportion/apportion/engine/model"
)

// Room limits the nodes on which a claimant may be placed.
type Room struct {
	Kind RoomKind
	// Node means something only with OneNode.
	Node model.NodeID
	// Nodes are those of the claimant's tasks, in their order; they mean something only with GivenNodes.
	Nodes []model.NodeID
}

// RoomKind says how much of the cluster a room is.
type RoomKind uint8

// The kinds of room.
const (
	// WholeCluster counts the cluster as one room; no task is given a node.
	WholeCluster RoomKind = iota
	// OneNode is one node, for all tasks together.
	OneNode
	// AnyNodes gives every task a node: task by task the first that has room, or else the first on which enough can be evicted.
	AnyNodes
	// GivenNodes puts every task on the node that the claim names for it.
	GivenNodes
)

// Claim is a question for a plan.
type Claim struct {
	// Tasks are those of one block: one task, or the rest of a gang. All belong to one job.
	Tasks []model.TaskID
	// Candidates may be evicted, those first in the list first. Each occurs once.
	Candidates []model.TaskID
	Room       Room
}

// Plan is whole or not at all: the victims are evicted and every task of the claimant gets its place once they are gone.
type Plan struct {
	Made bool
	// Stopped: View.Stop requested a stop; the other fields are not set.
	Stopped bool
	// Refusal is the reason why there is no plan.
	Refusal Reason
	// Victims in the order in which they were chosen; no victims if there is room, or if room is being made.
	Victims []model.TaskID
	// Nodes are those of the claimant's tasks, in their order; empty with WholeCluster.
	Nodes []model.NodeID
	// Line is the line under which the plan was made: 0, guarantee; 1, fair share; 2, entitlement.
	Line int
	// Considered counts the candidates that were considered.
	Considered int
	// Potential returns by how much the plan lowers the potential of the claimant and raises the potential of the victims, line by line;
	// nil without a plan.
	Potential func() (fall, rise [3]*big.Rat)
}

// Planner chooses victims as a plan. It is asked after the other plugins of its tier, about the candidates that all of them let go. It
// orders queues too, any two of them, so that lists of candidates need not be put together for each claim.
type Planner interface {
	QueueOrderer
	// Plan makes a plan; g records why candidates are spared.
	Plan(c *Claim, g *Grounds) Plan
	// PlanBriefly returns what Plan returns for the candidates of the lists, one list after the other, without saying why candidates are
	// spared. Candidates of the claim are not considered.
	PlanBriefly(c *Claim, lists []QueueTasks) Plan
	// Entitles reports whether a queue is entitled to something that waits in it: it may take the place of others, even where nothing may
	// be placed beside them.
	Entitles(q model.QueueID) bool
	// Potential returns, line by line and compared from the left, what no sequence of plans raises.
	Potential() [3]*big.Rat
}

// QueueTasks are tasks of one queue.
type QueueTasks struct {
	Queue model.QueueID
	Tasks []model.TaskID
}
