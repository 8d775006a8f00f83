package wire

import (
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

// need is which kinds of objects an answer depends on.
type need uint8

const (
	// exceptNodes is that of questions that answer for a cluster without nodes that nothing is judged by them. Most questions need every
	// kind, which is 0.
	exceptNodes need = iota + 1
	// noKind is that of steps that only change the session.
	noKind
)

// nodeKind and classKind are the kinds of nodes and of priority classes in LeftOut.
const nodeKind, classKind = "Node", "PriorityClass"

// complete returns a fault if the answer to a question depends on kinds of objects that were not read: a number without them would be
// false. Nodes matter only to the total that is divided, which may be given, and priority classes only to questions that rank jobs.
func (s *Session) complete(q *Question, step *apportionv1.Step) *decode.Fault {
	if q.need == noKind || len(s.unread) == 0 {
		return nil
	}
	v := s.engine.View()
	var missing []*apportionv1.LeftOut
	var kinds []string
	for _, i := range s.unread {
		l := &v.LeftOut[i]
		if l.Kind == nodeKind && (q.need == exceptNodes || v.Total.Positive() != 0) {
			continue
		}
		if l.Kind == classKind && q.unranked != nil && q.unranked(s, step) {
			continue
		}
		message := decode.WireLeftOut(l)
		if s.audience != nil {
			// It may name what the reader may not see.
			message.Detail = ""
		}
		missing, kinds = append(missing, message), append(kinds, l.Kind)
	}
	if len(missing) == 0 {
		return nil
	}
	return &decode.Fault{
		Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_INCOMPLETE, Text: text.Unread(missing),
		Metadata: map[string]string{"kinds": strings.Join(kinds, ",")},
	}
}

// isUnread reports whether something left out is a kind that was not read.
func isUnread(l *model.LeftOut) bool {
	return apportionv1.LeftOutCause(l.Cause) == apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD
}

// findUnread lists the kinds that were not read.
func (s *Session) findUnread() {
	s.unread = nil
	for i := range s.model.LeftOut {
		if isUnread(&s.model.LeftOut[i]) {
			s.unread = append(s.unread, i)
		}
	}
}
