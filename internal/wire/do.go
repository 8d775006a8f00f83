package wire

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

// Ask answers one step, or returns a *Fault whose paths begin with the kind of step (reclaim.claimant). A step that fails changes
// nothing.
func (s *Session) Ask(step *apportionv1.Step) (*apportionv1.Answer, error) {
	s.begin()
	defer s.end()
	answer, fault := s.do(step)
	if fault != nil {
		return nil, fault
	}
	return answer, nil
}

// Do is Ask, but returns a fault as an answer.
func (s *Session) Do(step *apportionv1.Step) *apportionv1.Answer {
	answer, err := s.Ask(step)
	if err != nil {
		return failed(decode.AsFault(err))
	}
	return answer
}

// DoAll answers steps in order; the paths of an error begin with the step (steps[3].reclaim.claimant). A *Fault is returned instead of
// answers only if the answers together are too large, or are no longer needed; some of the steps have been executed by then.
func (s *Session) DoAll(steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	s.begin()
	defer s.end()
	answers := many(&s.out, &s.out.memory().answers, len(steps))[:0]
	for i, step := range steps {
		if s.stopped(i) {
			return nil, decode.AsFault(policy.ErrStopped)
		}
		before := s.out.left
		answer, fault := s.do(step)
		if fault != nil {
			if fault.Reason == apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED {
				return nil, fault
			}
			answer = failed(fault.Within("steps[" + strconv.Itoa(i) + "]."))
			s.out.left = before - proto.Size(answer)
		}
		s.out.left -= messageBytes
		if s.out.left < 0 {
			return nil, s.out.tooLarge("steps")
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// begin sets the budgets of answers and work to those of one question.
func (s *Session) begin() {
	s.follow()
	s.out.begin(s.model.Dims, s.maximum)
	s.work.Renew()
}

// end lets go of what only the question just answered needed.
func (s *Session) end() { s.named = nil }

func failed(fault *decode.Fault) *apportionv1.Answer {
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Error{Error: decode.Status(fault)}}
}

// do answers a step, or returns a fault whose paths begin with the kind of step.
func (s *Session) do(step *apportionv1.Step) (*apportionv1.Answer, *decode.Fault) {
	q := QuestionOf(step)
	answer, fault := s.attempt(q, step)
	if fault != nil && q != nil {
		fault = fault.Within(q.Name + ".")
	}
	return answer, fault
}

// attempt answers a step of a kind, or returns a fault whose paths begin in the step's field.
func (s *Session) attempt(q *Question, step *apportionv1.Step) (*apportionv1.Answer, *decode.Fault) {
	fault := s.permit(q, step)
	if fault == nil && q != nil {
		fault = s.complete(q, step)
	}
	switch {
	case fault != nil:
	case q == nil:
		fault = &decode.Fault{
			Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP,
			Text: "the step has no kind that this version supports",
		}
	default:
		answer, err := s.bounded(q, step)
		s.follow()
		if err == nil {
			answer.Changed = q.Changes
			return answer, nil
		}
		if violations, ok := errors.AsType[*model.Error](err); ok {
			fault = decode.Invalid(apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP, violations)
		} else {
			fault = decode.AsFault(err)
		}
		if s.audience != nil {
			return nil, fault.Silenced()
		}
	}
	return nil, fault
}

// bounded is derived, but holds a step to the work that is left.
func (s *Session) bounded(q *Question, step *apportionv1.Step) (*apportionv1.Answer, error) {
	if q.work != nil {
		if err := q.work(s, step); err != nil {
			return nil, err
		}
	}
	if q.Changes && !q.Undoes {
		if err := s.mayChange(); err != nil {
			return nil, err
		}
	}
	answer, err := s.derived(q, step)
	if exceeded := s.work.Exceeded(); exceeded != nil {
		return nil, exceeded
	}
	return answer, err
}

// derived answers a step, and limits a step with derivations to the memory for these.
func (s *Session) derived(q *Question, step *apportionv1.Step) (*apportionv1.Answer, error) {
	if q.explains == nil || !q.explains(step) {
		return q.answer(s, step)
	}
	end := s.out.within(s.explain, "explain_bytes")
	defer end()
	answer, err := q.answer(s, step)
	if err == nil {
		err = s.out.check("explain")
	}
	return answer, err
}

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
