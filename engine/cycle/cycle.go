// Package cycle has the state of tasks and nodes, and one cycle of a scheduler on it: who enters, is placed and is evicted, in order, until
// nothing more can be done. Every decision is an answer of the session; a cycle only asks, in order, and carries out.
//
// Before a cycle the state is that of a session: each task has a status and perhaps a node, each job a phase, and what holds resources is
// booked. While it runs,
//
//   - each decision is kept whole or not at all: an attempt that fails leaves every answer as it was, bit for bit;
//   - a decision counts for every question after it, and is told once it is kept, before the next question;
//   - a refusal is remembered only until a decision could change it, so that remembering changes no decision.
//
// After it, the state is the one before with the decisions that were told carried out in their order. Each action has served what waits,
// the first first, and what it refused it refuses still, or has not asked again: without plans an action goes through the jobs once, as
// Volcano's do; under a policy that reclaims by plans the cycle ends when no job can be placed and no plan is made.
//
// A Cycle decides on a State, and has what a scheduler keeps beside it, such as nominations or its own workloads; it may use every
// operation of the session, not only its questions. Actions are that of this engine's policies, and Kueue is that of Kueue. A program that
// decides on a server has no State: the Loop of its actions asks the server step by step (package client/round). It is the one place that
// changes when servers answer the question for a whole cycle.
package cycle

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
)

// Cycle is how a scheduler decides. It ends when nothing more can be done, or with the first error.
type Cycle interface {
	Run(s *State) error
}

// Action is a part of a cycle, as Volcano names it.
type Action string

// The actions. A Loop has the first four, package volcano all.
const (
	Enqueue     Action = engine.ActionEnqueue
	Allocate    Action = engine.ActionAllocate
	Preempt     Action = engine.ActionPreempt
	Reclaim     Action = engine.ActionReclaim
	Backfill    Action = engine.ActionBackfill
	GangPreempt Action = engine.ActionGangPreempt
	GangReclaim Action = engine.ActionGangReclaim
	Shuffle     Action = engine.ActionShuffle
)

// Actions are a cycle of actions in order.
type Actions []Action

// All returns the actions of a Loop in the order in which Volcano's documentation names them.
func All() Actions { return Actions{Enqueue, Allocate, Preempt, Reclaim} }

// Run carries the actions out on a state.
func (a Actions) Run(s *State) error { return (&Loop{Scheduler: s}).Run(a...) }

// Decision is a step of a cycle.
type Decision struct {
	// Action is the one that decided. Job enters its queue (Enqueue), or is given what it lacks.
	Action Action
	Job    model.JobID
	// Victims leave, in this order, and are pending again.
	Victims []Victim
	// Tasks of Job are placed on Nodes; nil: on no particular nodes.
	Tasks []model.TaskID
	Nodes []model.NodeID
	// Promised are tasks of Job that start on Rooms once what is being released there is gone.
	Promised []model.TaskID
	Rooms    []model.NodeID
}

// Victim is a task that leaves.
type Victim struct {
	Task model.TaskID
	// Own: it belongs to the queue of the job that it leaves for. Gang: its own gang lost another task and cannot run without it.
	Own, Gang bool
}
