package wire

import (
	"errors"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

var markQuestion = question[*apportionv1.MarkStep]{
	of: (*apportionv1.Step).GetMark, changes: true, need: noKind, answer: (*Session).mark,
	memory: func(a *asking, _ *apportionv1.MarkStep) (answer, work int64) {
		a.marked = true
		a.undo += markBytes
		return 0, 0
	},
}

var rollbackQuestion = question[*apportionv1.RollbackStep]{
	of: (*apportionv1.Step).GetRollback, changes: true, need: noKind, undoes: true, answer: (*Session).rollback,
}

func (s *Session) mark(*apportionv1.MarkStep) (*apportionv1.Answer, error) {
	mark := s.engine.Mark()
	s.undo.mark()
	return marked(uint32(mark)), nil
}

func marked(mark uint32) *apportionv1.Answer {
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Mark{Mark: &apportionv1.MarkAnswer{Mark: mark}}}
}

func (s *Session) rollback(q *apportionv1.RollbackStep) (*apportionv1.Answer, error) {
	err := s.engine.Rollback(int(q.GetMark()))
	if errors.Is(err, engine.ErrNoMark) {
		return nil, &decode.Fault{
			Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_MARK_NOT_FOUND, Field: "mark",
			Text: "mark " + strconv.FormatUint(uint64(q.GetMark()), 10) + " was never set, or was undone",
		}
	}
	if err != nil {
		return nil, err
	}
	s.undo.rollback(int(q.GetMark()))
	return marked(q.GetMark()), nil
}
