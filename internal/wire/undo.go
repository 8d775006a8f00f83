package wire

import (
	"strconv"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// markBytes is about what a mark takes.
const markBytes = 1 << 10

// undo keeps account of the memory that is held so that changes can be undone: a client could otherwise mark, and then change for ever.
type undo struct {
	maximum int64
	// held is the memory of former states, and at[i] its value at mark i.
	held int64
	at   []int64
}

func (u *undo) mark() {
	u.held += markBytes
	u.at = append(u.at, u.held)
}

func (u *undo) rollback(mark int) {
	u.held = u.at[mark]
	u.at = u.at[:mark+1]
}

func (u *undo) clear() { u.held, u.at = 0, nil }

// mayChange returns a *Fault if no more changes can be remembered. Without a mark, no step needs to be undone.
func (s *Session) mayChange() error {
	journal := s.engine.View().Journal
	if !journal.Recording() || s.undo.held+int64(journal.Bytes()) <= s.undo.maximum {
		return nil
	}
	maximum := strconv.FormatInt(s.undo.maximum, 10)
	return &decode.Fault{
		Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED,
		Text:     "more changes than " + maximum + " bytes can remember were made since the first mark; roll back first",
		Metadata: map[string]string{"limit": "undo_bytes", "maximum": maximum},
	}
}

// leave books the present state as left behind, if some mark may return to it.
func (s *Session) leave() {
	if s.engine.View().Journal.Recording() {
		s.undo.held += s.Bytes() + decode.ModelBytes(s.engine.View().Model)
	}
}

// Keep makes the current state the one that Restore returns to.
func (s *Session) Keep() {
	s.engine.Keep()
	s.undo.clear()
}

// Restore undoes everything since Keep, so that a session can be reused for the next caller.
func (s *Session) Restore() {
	s.engine.Restore()
	s.follow()
	s.undo.clear()
}
