package wire

import (
	"errors"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
		return failed(AsFault(err))
	}
	return answer
}

// DoAll answers steps in order; the paths of an error begin with the step (steps[3].reclaim.claimant). A *Fault is returned instead of
// answers only if the answers together are too large, or are no longer needed; some of the steps have then been executed.
func (s *Session) DoAll(steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	s.begin()
	defer s.end()
	answers := many(&s.out, &s.out.memory().answers, len(steps))[:0]
	for i, step := range steps {
		if s.stopped(i) {
			return nil, AsFault(policy.ErrStopped)
		}
		before := s.out.left
		answer, fault := s.do(step)
		if fault != nil {
			if fault.Reason == apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED {
				return nil, fault
			}
			answer = failed(fault.within("steps[" + strconv.Itoa(i) + "]."))
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

// begin makes as much available for answers and work as one question may take.
func (s *Session) begin() {
	s.follow()
	s.out.begin(s.model.Dims, s.maximum)
	s.work.Renew()
}

// end lets go of what only the question just answered needed.
func (s *Session) end() { s.named = nil }

func failed(fault *Fault) *apportionv1.Answer {
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Error{Error: Status(fault)}}
}

// do answers a step, or returns a fault whose paths begin with the kind of step.
func (s *Session) do(step *apportionv1.Step) (*apportionv1.Answer, *Fault) {
	fault := s.permit(step)
	if fault == nil {
		answer, err := s.bounded(step)
		s.follow()
		if err == nil {
			return answer, nil
		}
		if fault = AsFault(err); s.audience != nil {
			return nil, fault.Silenced()
		}
		if violations, ok := errors.AsType[*model.Error](err); ok {
			fault = Invalid(apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP, violations)
		}
	}
	if kind := step.ProtoReflect().WhichOneof(stepKinds); kind != nil {
		fault = fault.within(string(kind.Name()) + ".")
	}
	return nil, fault
}

var stepKinds = (*apportionv1.Step)(nil).ProtoReflect().Descriptor().Oneofs().ByName("step")

// bounded is derived, but holds a step to the work that is left.
func (s *Session) bounded(step *apportionv1.Step) (*apportionv1.Answer, error) {
	if err := s.spend(step); err != nil {
		return nil, err
	}
	answer, err := s.derived(step)
	if exceeded := s.work.Exceeded(); exceeded != nil {
		return nil, exceeded
	}
	return answer, err
}

// derived is answer, but holds a step that asks for derivations to what these may take.
func (s *Session) derived(step *apportionv1.Step) (*apportionv1.Answer, error) {
	if !explains(step) {
		return s.answer(step)
	}
	end := s.out.within(s.explain, "explain_bytes")
	defer end()
	answer, err := s.answer(step)
	if err == nil {
		err = s.out.check("explain")
	}
	return answer, err
}

// explains reports whether a step asks for derivations.
func explains(step *apportionv1.Step) bool {
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		return q.Shares.GetExplain() != nil
	case *apportionv1.Step_Allocatable:
		return q.Allocatable.GetExplain()
	case *apportionv1.Step_Preemptive:
		return q.Preemptive.GetExplain()
	case *apportionv1.Step_Reclaim:
		return q.Reclaim.GetExplain()
	case *apportionv1.Step_Preempt:
		return q.Preempt.GetExplain()
	case *apportionv1.Step_Nodes:
		return q.Nodes.GetExplain()
	}
	return false
}

// answer answers a step. An error is a *model.Error or a *Fault with paths relative to the step's field, or one of the engine's.
func (s *Session) answer(step *apportionv1.Step) (*apportionv1.Answer, error) {
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		return s.shares(q.Shares)
	case *apportionv1.Step_Jobs:
		return s.jobs(q.Jobs)
	case *apportionv1.Step_Allocatable:
		return s.allocatable(q.Allocatable)
	case *apportionv1.Step_Preemptive:
		return s.preemptive(q.Preemptive)
	case *apportionv1.Step_Reclaim:
		return s.reclaim(q.Reclaim)
	case *apportionv1.Step_Preempt:
		return s.preempt(q.Preempt)
	case *apportionv1.Step_Order:
		return s.order(q.Order)
	case *apportionv1.Step_Nodes:
		return s.nodes(q.Nodes)
	case *apportionv1.Step_Inspect:
		return s.inspect(q.Inspect)
	case *apportionv1.Step_Explain:
		return s.explainJobs(q.Explain)
	case *apportionv1.Step_Plan:
		return s.planFor(q.Plan)
	case *apportionv1.Step_Remedies:
		return s.remedies(q.Remedies)
	case *apportionv1.Step_Rollback:
		return s.rollback(q.Rollback)
	}
	return s.change(step)
}

// change carries out a step that changes something.
func (s *Session) change(step *apportionv1.Step) (*apportionv1.Answer, error) {
	if err := s.mayChange(); err != nil {
		return nil, err
	}
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Enqueue:
		return s.enqueue(q.Enqueue)
	case *apportionv1.Step_SetStatus:
		return s.setStatus(q.SetStatus)
	case *apportionv1.Step_Allocate:
		return s.allocate(q.Allocate)
	case *apportionv1.Step_Deallocate:
		return s.deallocate(q.Deallocate)
	case *apportionv1.Step_Change:
		return s.changeSnapshot(q.Change)
	case *apportionv1.Step_AddJob:
		return s.addJob(q.AddJob)
	case *apportionv1.Step_RemoveJob:
		return s.removeJob(q.RemoveJob)
	case *apportionv1.Step_Mark:
		return s.mark()
	}
	return nil, &Fault{
		Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP,
		Text: "no step is given that this version knows",
	}
}
