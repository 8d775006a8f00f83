package engine

import (
	"errors"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
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

// ErrNoMark is returned for a mark that was never set, or was undone.
var ErrNoMark = errors.New("no such mark")

type mark struct {
	at    policy.Position
	state *state
}

// Mark marks the current state and returns a number for Rollback.
func (s *Session) Mark() int {
	s.marks = append(s.marks, mark{s.view.Journal.Mark(), s.state})
	return len(s.marks) - 1
}

// Rollback undoes everything since a mark: afterwards every answer is bit-for-bit the same as at the mark. The mark stays valid; later
// marks are removed.
func (s *Session) Rollback(number int) error {
	if number < 0 || number >= len(s.marks) {
		return ErrNoMark
	}
	m := s.marks[number]
	journal := s.view.Journal
	journal.Rollback(m.at)
	for range s.marks[number+1:] {
		journal.Release()
	}
	clear(s.marks[number+1:])
	s.marks = s.marks[:number+1]
	s.state = m.state
	return nil
}

// Try executes a change that may fail; if it fails, it restores the previous state.
func (s *Session) Try(change func() error) error {
	before, at := s.state, s.view.Journal.Mark()
	journal := s.view.Journal
	defer journal.Release()
	err := change()
	if err != nil {
		journal.Rollback(at)
		s.state = before
	}
	return err
}

// Change applies a change to the current state, as if a new scheduling session were opened on the result: sums and shares are computed
// again, jobs admitted before count as Inqueue, tasks count by their current status. Every answer is bit-for-bit that of a session opened
// on a snapshot of the result. feed makes the change; its violations are a *model.Error, a result that costs more than is left is a
// *policy.WorkError, and either changes nothing. See model.Model.Change for the numbers of jobs and tasks afterwards.
func (s *Session) Change(dimensions []string, feed func(*model.ChangeBuilder)) error {
	return s.Host().ChangeIf(dimensions, func(b *model.ChangeBuilder) error {
		feed(b)
		return nil
	}, nil)
}

func (s *Session) reopen(v *policy.View) error {
	st, err := open(v, s.policy)
	if err != nil {
		return err
	}
	s.state = st
	return nil
}

// errUndone ends a change that was only tried.
var errUndone = errors.New("undone")

// Tried carries out a change and undoes it.
func (h Host) Tried(change func() error) error {
	err := h.Try(func() error {
		if err := change(); err != nil {
			return err
		}
		return errUndone
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// Afresh calls ask in a state in which nothing differs from the model, and nothing is booked, as after every change of the cluster. What
// ask changes is undone. booked says that something is booked which the session does not know of.
func (h Host) Afresh(booked bool, ask func() error) error {
	return h.Tried(func() error {
		if !h.view.Fresh() || h.permitted || booked {
			if err := h.Change(nil, func(*model.ChangeBuilder) {}); err != nil {
				return err
			}
		}
		return ask()
	})
}
