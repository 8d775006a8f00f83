// Package event makes steps of events.
package event

import apportionv1 "github.com/apportion/apportion/gen/apportion/v1"

// Step returns an event as a step.
func Step(e *apportionv1.Event) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Event{Event: e}}
}

// Admit is the step that admits jobs.
func Admit(jobs *apportionv1.Selector) *apportionv1.Step {
	return Step(&apportionv1.Event{Event: &apportionv1.Event_Admit{Admit: &apportionv1.Admission{Jobs: jobs}}})
}

// Place is the step that places tasks on nodes; nil: on none in particular.
func Place(tasks, nodes *apportionv1.Selector) *apportionv1.Step {
	return Step(&apportionv1.Event{Event: &apportionv1.Event_Place{Place: &apportionv1.Placement{Tasks: tasks, Nodes: nodes}}})
}

// Evict is the step that takes tasks off, which then have a status.
func Evict(tasks *apportionv1.Selector, status apportionv1.TaskStatus) *apportionv1.Step {
	return Step(&apportionv1.Event{Event: &apportionv1.Event_Evict{Evict: &apportionv1.Eviction{Tasks: tasks, Status: status}}})
}

// SetStatus is the step that changes the status of tasks alone.
func SetStatus(tasks *apportionv1.Selector, status apportionv1.TaskStatus) *apportionv1.Step {
	return Step(&apportionv1.Event{Event: &apportionv1.Event_Status{Status: &apportionv1.StatusChange{Tasks: tasks, Status: status}}})
}

// Edit is the step that makes edits.
func Edit(edits []*apportionv1.Edit) *apportionv1.Step {
	return Step(&apportionv1.Event{Event: &apportionv1.Event_Edit{Edit: &apportionv1.Edits{Edits: edits}}})
}

// Change is the step that changes the snapshot.
func Change(c *apportionv1.Change) *apportionv1.Step {
	return Step(&apportionv1.Event{Event: &apportionv1.Event_Change{Change: c}})
}
