package engine

import "slices"

// The actions of Volcano's session (pkg/scheduler/actions/factory.go, init).
const (
	ActionEnqueue     = "enqueue"
	ActionAllocate    = "allocate"
	ActionBackfill    = "backfill"
	ActionPreempt     = "preempt"
	ActionReclaim     = "reclaim"
	ActionGangPreempt = "gangpreempt"
	ActionGangReclaim = "gangreclaim"
	ActionShuffle     = "shuffle"
)

// Actions returns all actions, in the order in which Volcano's documentation names them.
func Actions() []string {
	return []string{
		ActionEnqueue, ActionAllocate, ActionBackfill, ActionPreempt, ActionReclaim, ActionGangPreempt, ActionGangReclaim, ActionShuffle,
	}
}

// Acts reports whether a cycle has one of some actions. A policy that says nothing about actions has all of them.
func (p *Policy) Acts(actions ...string) bool {
	return p.Actions == nil || slices.ContainsFunc(actions, func(a string) bool { return slices.Contains(p.Actions, a) })
}
