package engine

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Host is a session for a program that opens it to others, such as a server or an adapter of another scheduler: such a program bounds the
// work, reuses the session, and books what happened elsewhere. Packages that answer further questions about a session find in it what they
// share. A scheduler itself needs Session only.
type Host struct{ *Session }

// Host returns the session for a program that opens it to others.
func (s *Session) Host() Host { return Host{s} }

// OpenHost is Open for a session that spends work: if opening costs more than is left, the error is a *policy.WorkError. The session
// continues to spend from it whenever it is opened again.
func OpenHost(m *model.Model, p Policy, stop func() bool, work *policy.Work) (Host, error) {
	s, err := openWithin(m, p, stop, work)
	return Host{s}, err
}

// Stop replaces the function by which long work checks whether to stop.
func (h Host) Stop(stop func() bool) {
	v := h.view
	v.Stop = stop
}

// Keep makes the current state the one that Restore returns to; earlier marks are removed.
func (h Host) Keep() {
	s := h.Session
	for range s.marks {
		s.view.Journal.Release()
	}
	s.marks = nil
	s.kept = mark{s.view.Journal.Mark(), s.state}
}

// Restore undoes everything since Keep, including marks, so that a session can be reused for the next caller.
func (h Host) Restore() {
	s := h.Session
	journal := s.view.Journal
	journal.Rollback(s.kept.at)
	for range s.marks {
		journal.Release()
	}
	journal.Shrink()
	s.marks = nil
	s.state = s.kept.state
	const few = 1024
	if cap(s.spared) > few {
		s.spared = nil
	}
}

// Scratch returns the number of checks for which memory is kept from one question about victims to the next. Restore releases large memory.
func (h Host) Scratch() int { return cap(h.spared) }

// ChangeIf is Change with a feed that may fail, and with a check of the result before a session is opened on it. It returns their errors,
// which change nothing. accept may be nil.
func (h Host) ChangeIf(dimensions []string, feed func(*model.ChangeBuilder) error, accept func(*model.Model) error) error {
	if err := h.view.Work.Spend(h.view.Jobs.Len()+h.view.Tasks.Len(), 1); err != nil {
		return err
	}
	v, err := h.view.Changed(dimensions, feed)
	if err != nil {
		return err
	}
	if accept != nil {
		if err := accept(v.Model); err != nil {
			return err
		}
	}
	return h.reopen(v)
}

// Book sets the status of a task that no plugin has booked, on the node if one is given, and every plugin books it. Volcano's allocation
// handlers also run for a task that is pipelined, which holds nothing yet, and for a task whose eviction is undone, which runs again. The
// caller tracks which tasks are booked.
func (h Host) Book(t model.TaskID, as model.Status, n model.NodeID) { h.book(t, as, n) }

// Unbook sets the status of a booked task, and every plugin releases its resources; see Book.
func (h Host) Unbook(t model.TaskID, as model.Status) { h.unbook(t, as) }
