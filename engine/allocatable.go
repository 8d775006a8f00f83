package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Allocatable reports whether every plugin permits the tasks' queue to use their requests. The tasks belong to one queue; several are
// tested as their sum. A plugin may give reasons for a permit; a rejection has only the reasons of the plugin that rejects.
func (s *Session) Allocatable(tasks []model.TaskID, mode policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	q, r := s.request(tasks)
	before := why.Len()
	for _, p := range s.by.allocatable {
		permits := why.Len()
		if !p.Allocatable(q, r, mode, why, checks) {
			why.Drop(before, permits)
			return false
		}
	}
	return true
}

// Preemptive reports whether every plugin permits the tasks' queue to take their requests from others.
func (s *Session) Preemptive(tasks []model.TaskID, why *policy.Reasons, checks *policy.Checks) bool {
	q, r := s.request(tasks)
	for _, p := range s.by.preemptive {
		if !p.Preemptive(q, r, why, checks) {
			return false
		}
	}
	return true
}

// request sums what tasks ask for; the row is valid until the next question.
func (s *Session) request(tasks []model.TaskID) (model.QueueID, policy.Request) {
	v := s.view
	q := v.QueueOf(tasks[0])
	row := v.Request(tasks[0])
	if len(tasks) > 1 {
		sum := &s.scratch
		sum.Clear(row.Has)
		for _, t := range tasks {
			sum.Add(v.Request(t))
		}
		row = *sum
	}
	return q, policy.Request{Row: row, BestEffort: v.BestEffort(row), Tasks: tasks}
}

// IsOverused reports whether a queue is overused according to some plugin.
func (s *Session) IsOverused(q model.QueueID, why *policy.Reasons) bool {
	for _, p := range s.by.overused {
		if p.Overused(q, why) {
			return true
		}
	}
	return false
}

// IsPassedOver is IsOverused for a scheduler that asks this before it takes from others too, as Volcano does: a queue is not passed over
// that may take what it is entitled to.
func (s *Session) IsPassedOver(q model.QueueID, why *policy.Reasons) bool {
	plans := s.Reclaim().Plans()
	for _, p := range s.by.overused {
		if !p.Overused(q, why) {
			continue
		}
		if planner, ok := p.(policy.Planner); !ok || !plans || !planner.Entitles(q) {
			return true
		}
	}
	return false
}

// reclaimPassesOver reports whether reclaim passes a queue over. Volcano's action takes nothing for an overused queue, because such a queue
// has all that it deserves. A policy that plans decides by what the claimant is entitled to: its queue may be at a limit, and the place of
// another below that limit be what it is entitled to.
func (s *Session) reclaimPassesOver(q model.QueueID) bool {
	plans := s.Reclaim().Plans()
	return slices.ContainsFunc(s.by.overused, func(o policy.Overuser) bool {
		_, planner := o.(policy.Planner)
		return !(plans && planner) && o.Overused(q, nil)
	})
}

// Sum adds up what tasks ask for.
func (h Host) Sum(tasks []model.TaskID) resource.Row {
	sum := resource.NewRow(h.view.Dims.Len())
	for _, t := range tasks {
		sum.Add(h.view.Request(t))
	}
	return sum
}
