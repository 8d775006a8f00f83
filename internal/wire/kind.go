package wire

import (
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/field"
)

// Questions are the kinds of steps that this program answers, in the order of their fields in Step. Each is defined in the file that
// answers it.
var Questions = []*Question{
	sharesQuestion.row(), jobsQuestion.row(), enqueueQuestion.row(), allocatableQuestion.row(), preemptiveQuestion.row(),
	reclaimQuestion.row(), preemptQuestion.row(), orderQuestion.row(), nodesQuestion.row(), inspectQuestion.row(),
	setStatusQuestion.row(), allocateQuestion.row(), deallocateQuestion.row(), addJobQuestion.row(), removeJobQuestion.row(),
	markQuestion.row(), rollbackQuestion.row(), changeQuestion.row(), explainQuestion.row(), planQuestion.row(), remediesQuestion.row(),
	evictableQuestion.row(),
	forecastQuestion.row(),
}

// byMember finds a question by the type of the member of the oneof, byNumber by the number of its field.
var byMember, byNumber = indexQuestions(Questions)

func indexQuestions(list []*Question) (members []member, numbers []*Question) {
	for _, q := range list {
		step := &apportionv1.Step{}
		field := stepFieldsOf.ByNumber(q.number)
		step.ProtoReflect().Set(field, step.ProtoReflect().NewField(field))
		members = append(members, member{typeOf(step), q})
		for len(numbers) <= int(q.number) {
			numbers = append(numbers, nil)
		}
		numbers[q.number] = q
	}
	return members, numbers
}

// QuestionOf returns the kind of a step, or nil if this version has no such kind.
func QuestionOf(step *apportionv1.Step) *Question {
	if step.GetStep() == nil {
		return nil
	}
	address := typeOf(step)
	for i := range byMember {
		if byMember[i].address == address {
			return byMember[i].question
		}
	}
	return nil
}

// numbered returns the kind of step whose field has a number, or nil.
func numbered(number int32) *Question {
	if number < 0 || int(number) >= len(byNumber) {
		return nil
	}
	return byNumber[number]
}

// StepMemory estimates, in advance, the memory for answering steps: all answers, plus the work on the most expensive step. Answers are
// limited by AnswerBytes and ExplainBytes, and the memory for rollbacks by UndoBytes. It also returns the extent after the steps.
func StepMemory(steps []*apportionv1.Step, e decode.Extent, o Options) (int64, decode.Extent) {
	o.complete()
	a := asking{Extent: e, explain: explainFactor * int64(o.ExplainBytes)}
	var answers, work int64
	for _, step := range steps {
		if q := QuestionOf(step); q != nil && q.memory != nil {
			answer, working := q.memory(&a, step)
			answers, work = answers+answer, max(work, working)
		}
	}
	bytes := stepBytes*int64(len(steps)) + min(answers, answerFactor*int64(o.AnswerBytes)) + work + a.added
	if a.reopened {
		bytes += a.session()
	}
	if a.marked {
		bytes += min(a.undo, o.UndoBytes)
	}
	return bytes, a.Extent
}

// Extent returns the extent of the session's model under its policy.
func (s *Session) Extent() decode.Extent { return decode.ExtentOf(s.engine.View().Model, s.policy()) }

// StepMemory estimates, in advance, the memory for answering steps in this session, when its model has this extent. It also returns the
// extent after the steps.
func (s *Session) StepMemory(steps []*apportionv1.Step, e decode.Extent) (int64, decode.Extent) {
	return StepMemory(steps, e, Options{AnswerBytes: s.maximum, ExplainBytes: s.explain, UndoBytes: s.undo.maximum})
}

// MeasureSteps counts the steps in the field with this number of an encoded message, and the contents of the jobs that they add, without
// decoding them.
func MeasureSteps(data []byte, number int32) (steps int64, added decode.Size) {
	field.Each(data, uint32(number)<<3|field.Delimited, func(step []byte) bool {
		steps++
		addStep(&added, step)
		return true
	})
	return steps, added
}

// addStep adds to a size the objects that a step adds, which are in field 1 of its message.
func addStep(z *decode.Size, data []byte) {
	for i := 0; i < len(data); {
		tag, _, from, to := field.At(data, i)
		if to < 0 {
			return
		}
		if q := numbered(int32(tag >> 3)); tag&7 == field.Delimited && q != nil && q.added != nil {
			field.Each(data[from:to], 1<<3|field.Delimited, func(added []byte) bool {
				q.added(z, added)
				return true
			})
		}
		i = to
	}
}

// OnlySums reports whether all steps request shares or ask who may be enqueued, under a policy that needs only sums of tasks for that.
func OnlySums(p *apportionv1.Policy, steps []*apportionv1.Step) bool {
	sums := catalogue.SumsOf(p)
	return !slices.ContainsFunc(steps, func(s *apportionv1.Step) bool {
		q := QuestionOf(s)
		return q == nil || q.sums == catalogue.SumsNever || sums < q.sums
	})
}
