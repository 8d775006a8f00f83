package engine

import (
	"errors"

	"github.com/apportion/apportion/engine/model"
)

// ErrWrongStatus is returned for an event that a task's status does not permit. Volcano would book twice, or panic.
var ErrWrongStatus = errors.New("the task is not in a status that this event can start from")

// ErrNotBooked is returned for releasing a task that holds resources only because of its status: it was set by SetStatus, no plugin has
// booked it, and the accounts of its queue would become negative.
var ErrNotBooked = errors.New("the task was never booked: its status was set without an account")

// Allocate places a task that holds nothing: it becomes Allocated, on the node if one is given, and every plugin books it.
func (s *Session) Allocate(t model.TaskID, n model.NodeID) error {
	switch s.view.Status(t) {
	case model.Pending, model.Pipelined, model.Releasing:
	default:
		return ErrWrongStatus
	}
	s.book(t, model.Allocated, n)
	return nil
}

// book is Host.Book.
func (s *Session) book(t model.TaskID, as model.Status, n model.NodeID) {
	s.note(t, as, true)
	s.move(t, as, n)
	for _, e := range s.by.events {
		e.Allocate(t)
	}
}

// Deallocate releases a task that holds resources: it gets the given status, which holds none, and every plugin releases its resources. It
// fails for a task that the plugins have not booked.
func (s *Session) Deallocate(t model.TaskID, to model.Status) error {
	if !s.view.Status(t).Holds() || to.Holds() {
		return ErrWrongStatus
	}
	if !s.booked(t) && len(s.by.events) > 0 {
		return ErrNotBooked
	}
	s.unbook(t, to)
	return nil
}

// booked reports whether the plugins have booked a task. When a session opens, the tasks that hold resources are booked.
func (s *Session) booked(t model.TaskID) bool { return s.view.Status(t).Holds() != s.diverged[t] }

// note records, before a task gets a status, whether the task is booked if the status does not imply it.
func (s *Session) note(t model.TaskID, to model.Status, booked bool) {
	diverged, was := booked != to.Holds(), s.diverged[t]
	if diverged == was {
		return
	}
	st := s.state
	s.view.Journal.Undo(func() { st.diverge(t, was) })
	st.diverge(t, diverged)
}

// diverge records whether a task's status contradicts its booking.
func (s *state) diverge(t model.TaskID, diverged bool) {
	if !diverged {
		delete(s.diverged, t)
		return
	}
	if s.diverged == nil {
		s.diverged = map[model.TaskID]bool{}
	}
	s.diverged[t] = true
}

// unbook is Host.Unbook.
func (s *Session) unbook(t model.TaskID, as model.Status) {
	s.note(t, as, false)
	s.move(t, as, model.None)
	for _, e := range s.by.events {
		e.Deallocate(t)
	}
}

// SetStatus changes the status of a task without notifying the plugins, so the accounts of queues stay unchanged, except those of plugins
// whose accounts follow statuses.
func (s *Session) SetStatus(t model.TaskID, to model.Status) {
	s.note(t, to, s.booked(t))
	s.move(t, to, model.None)
}

// move changes the status of a task, and its node unless that is model.None.
func (s *Session) move(t model.TaskID, to model.Status, n model.NodeID) {
	from, was := s.view.Status(t), s.view.NodeOf(t)
	s.view.SetStatus(t, to, n)
	for _, p := range s.by.statuses {
		p.Moved(t, from, was)
	}
}
