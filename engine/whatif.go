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

// Mark remembers the present state and returns a number for Rollback.
func (s *Session) Mark() int {
	s.marks = append(s.marks, mark{s.view.Journal.Mark(), s.state})
	return len(s.marks) - 1
}

// Rollback undoes everything since a mark: afterwards every answer is bit for bit what it was. The mark stays; later ones are gone.
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

// Keep makes the present state the one that Restore returns to; marks set before are gone.
func (s *Session) Keep() {
	for range s.marks {
		s.view.Journal.Release()
	}
	s.marks = nil
	s.kept = mark{s.view.Journal.Mark(), s.state}
}

// Restore undoes everything since Keep, marks included: a session that answered one caller is as new for the next.
func (s *Session) Restore() {
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

// Scratch returns for how many checks there is memory that one question about victims leaves to the next. Restore lets go of large memory.
func (s *Session) Scratch() int { return cap(s.spared) }

// Try carries out a change that may fail half way; if it fails, everything is as before.
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

// Change goes on from what a change makes of the state reached so far, as if a new scheduling session were opened on the result: sums are
// formed and shares divided anew, jobs admitted before count as Inqueue, tasks count by their present status. Every answer is, to the last
// bit, that of a session opened on a snapshot of that result. feed says what changes; its faults are an *model.Error, a result that costs
// more than is left is a *policy.WorkError, and either changes nothing.
// See model.Model.Change for what the numbers of jobs and tasks are afterwards.
func (s *Session) Change(dimensions []string, feed func(*model.Builder)) error {
	if err := s.view.Work.Spend(s.view.Jobs.Len()+s.view.Tasks.Len(), 1); err != nil {
		return err
	}
	v, err := s.view.Changed(dimensions, feed)
	if err != nil {
		return err
	}
	return s.reopen(v)
}

// Remove withdraws jobs, as if a new scheduling session were opened without them.
func (s *Session) Remove(jobs []model.JobID) error {
	return s.Change(nil, func(b *model.Builder) {
		for i, j := range jobs {
			b.RemoveJobAt(i, j)
		}
	})
}

func (s *Session) reopen(v *policy.View) error {
	st, err := open(v, s.policy)
	if err != nil {
		return err
	}
	s.state = st
	return nil
}
