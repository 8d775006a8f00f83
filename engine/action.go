package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

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

// Missing returns the reason that a cycle lacks the action that would do something.
func Missing(action string) policy.Reason {
	reason := policy.Because("", policy.NoAction, model.None)
	reason.Detail = action
	return reason
}

// Starts returns the action that gives tasks their nodes: those that ask for nothing wait for another one than all others.
func (h Host) Starts(t model.TaskID) string {
	if h.view.BestEffort(h.view.Request(t)) {
		return ActionBackfill
	}
	return ActionAllocate
}

// Runs reports whether a cycle has the action that evicts so, alone or for whole gangs.
func (a Victims) Runs(why *policy.Reasons) bool {
	alone, whole := ActionReclaim, ActionGangReclaim
	if a.preempt {
		alone, whole = ActionPreempt, ActionGangPreempt
	}
	if a.s.policy.Acts(alone, whole) {
		return true
	}
	why.Add(Missing(alone))
	return false
}

// Acts reports whether a cycle has one of some actions. A policy that says nothing about actions has all of them.
func (p *Policy) Acts(actions ...string) bool {
	return p.Actions == nil || slices.ContainsFunc(actions, func(a string) bool { return slices.Contains(p.Actions, a) })
}
