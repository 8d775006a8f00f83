package engine

import (
	"errors"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

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
