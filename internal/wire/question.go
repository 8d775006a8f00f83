package wire

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/field"
)

// Question is a kind of step, with what differs between the kinds.
type Question struct {
	// Name is the name of its field in Step.
	Name string
	// Changes reports whether a step of this kind changes the session, so that another session needs it to reach the same state.
	Changes bool
	// Undoes is true for rollback, which takes back every change since a mark.
	Undoes bool
	// Visible holds, by message, the fields of the answer that an audience may see; after a colon, what a field is the position of: aQueue,
	// aJob or aTask. It is nil if an audience may not ask the question.
	Visible map[string]string

	// The other fields are those of question, for any step.
	sums     catalogue.Sums
	decision decision
	read     func([]byte) *apportionv1.Step
	answer   func(*Session, *apportionv1.Step) (*apportionv1.Answer, error)
	work     func(*Session, *apportionv1.Step) error
	memory   func(*asking, *apportionv1.Step) (answer, work int64)
	explains func(*apportionv1.Step) bool
	permit   func(*Session, *apportionv1.Step) *decode.Fault
	unranked func(*Session, *apportionv1.Step) bool
	need     need

	number protoreflect.FieldNumber
}

// question is a Question whose steps hold a message Q. Fields that are nil or false do not apply.
type question[Q proto.Message] struct {
	// of returns the message of a step.
	of func(*apportionv1.Step) Q
	// answer answers it. An error is a *model.Error or a *Fault with paths relative to the step's field, or one of the engine's.
	answer func(*Session, Q) (*apportionv1.Answer, error)
	// work spends what the answer costs, before anything is done. What only a division finds out on its way is spent there.
	work func(*Session, Q) error
	// memory returns what the answer takes, and what working on it takes beside that. It records what must be undone.
	memory func(*asking, Q) (answer, work int64)
	// explains reports whether the answer holds derivations.
	explains func(Q) bool
	// permit returns a fault if the audience may not ask it; nil: no audience may. visible is Question.Visible.
	permit  func(*Session, Q) *decode.Fault
	visible map[string]string
	// decision returns the decisions in an answer; nil: a question that is answered, or a change, is one.
	decision decision
	// changes and undoes are Question.Changes and Undoes.
	changes, undoes bool
	// need is which kinds of objects must have been read.
	need need
	// unranked reports whether the answer depends on no priority of a job; nil: it does.
	unranked func(*Session, Q) bool
	// sums is the set of decisions that a policy must make from sums of tasks, so that the question does not need single tasks.
	sums catalogue.Sums
	// read decodes the message of a step as the protobuf library does, or returns nil to leave it to that.
	read func([]byte) *apportionv1.Step
}

func (q *question[Q]) row() *Question {
	of := q.of
	field := fieldOf[Q]()
	row := &Question{
		Name: string(field.Name()), number: field.Number(), Changes: q.changes, Undoes: q.undoes, Visible: q.visible,
		sums: q.sums, decision: q.decision, read: q.read, need: q.need,
		answer: func(s *Session, step *apportionv1.Step) (*apportionv1.Answer, error) { return q.answer(s, of(step)) },
	}
	if q.work != nil {
		row.work = func(s *Session, step *apportionv1.Step) error { return q.work(s, of(step)) }
	}
	if q.memory != nil {
		row.memory = func(a *asking, step *apportionv1.Step) (answer, work int64) { return q.memory(a, of(step)) }
	}
	if q.explains != nil {
		row.explains = func(step *apportionv1.Step) bool { return q.explains(of(step)) }
	}
	if q.permit != nil {
		row.permit = func(s *Session, step *apportionv1.Step) *decode.Fault { return q.permit(s, of(step)) }
	}
	if q.unranked != nil {
		row.unranked = func(s *Session, step *apportionv1.Step) bool { return q.unranked(s, of(step)) }
	}
	return row
}

// stepFieldsOf are the fields of Step, one for each kind.
var stepFieldsOf = (*apportionv1.Step)(nil).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()

// fieldOf returns the field of Step that holds a message Q. Each kind has a message of its own.
func fieldOf[Q proto.Message]() protoreflect.FieldDescriptor {
	var message Q
	name := message.ProtoReflect().Descriptor().FullName()
	i := 0
	for stepFieldsOf.Get(i).Message().FullName() != name {
		i++
	}
	return stepFieldsOf.Get(i)
}

// member is a question with the address of the type of its steps, which identifies the type.
type member struct {
	address  uintptr
	question *Question
}

// typeOf returns the address of the type of a step's member, which must not be nil.
func typeOf(step *apportionv1.Step) uintptr {
	return reflect.ValueOf(reflect.TypeOf(step.GetStep())).Pointer()
}

// Label returns the name of the kind in metrics. Steps that decide nothing and change the session are counted together.
func (q *Question) Label() string {
	switch {
	case q == nil:
		return "other"
	case q.Changes && !q.Decides():
		return "change"
	}
	return q.Name
}

// decision is the method Decision of a question that decides something.
type decision func(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Cause, ok bool)

// Decides reports whether answers hold decisions: any number of them. The answer to a question that decides nothing is one answer.
func (q *Question) Decides() bool { return q != nil && q.decision != nil }

// Decision returns the i-th decision in an answer that is not an error, with the reason that is named first; ok is false if there are
// fewer.
func (q *Question) Decision(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Cause, ok bool) {
	if !q.Decides() {
		return 0, nil, false
	}
	return q.decision(answer, i)
}

// verdicts returns the decisions of an answer that is a list of verdicts.
func verdicts[A any, V interface{ GetVerdict() *apportionv1.Verdict }](of func(*apportionv1.Answer) A, list func(A) []V) decision {
	return func(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Cause, ok bool) {
		all := list(of(answer))
		if i >= len(all) {
			return 0, nil, false
		}
		verdict := all[i].GetVerdict()
		if reasons := verdict.GetCauses(); len(reasons) > 0 {
			why = reasons[0]
		}
		return verdict.GetVote(), why, true
	}
}

// Questions are the kinds of steps that this program answers, in the order of their fields in Step. Each is defined in the file that
// answers it.
var Questions = []*Question{
	sharesQuestion.row(), jobsQuestion.row(), enqueueQuestion.row(), allocatableQuestion.row(), preemptiveQuestion.row(),
	reclaimQuestion.row(), preemptQuestion.row(), orderQuestion.row(), nodesQuestion.row(), inspectQuestion.row(),
	eventQuestion.row(), markQuestion.row(), rollbackQuestion.row(), explainQuestion.row(), planQuestion.row(), remediesQuestion.row(),
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

// Spent returns the units of work that the last question has cost.
func (s *Session) Spent() int64 { return s.work.Spent() }

// Extent returns the extent of the session's model under its policy.
func (s *Session) Extent() decode.Extent { return decode.ExtentOf(s.engine.View().Model, s.policy()) }

// StepMemory estimates, in advance, the memory for answering steps in this session, when its model has this extent. It also returns the
// extent after the steps.
func (s *Session) StepMemory(steps []*apportionv1.Step, e decode.Extent) (int64, decode.Extent) {
	return StepMemory(steps, e, Options{AnswerBytes: s.maximum, ExplainBytes: s.explain, UndoBytes: s.undo.maximum})
}

// MeasureSteps counts the steps in the field with this number of an encoded message, and what their changes add, without decoding them.
func MeasureSteps(data []byte, number int32) (steps int64, added decode.Size) {
	field.Each(data, uint32(number)<<3|field.Delimited, func(step []byte) bool {
		steps++
		field.Each(step, uint32(eventKind().number)<<3|field.Delimited, func(event []byte) bool {
			addEvent(&added, event)
			return true
		})
		return true
	})
	return steps, added
}

// MeasureEvents counts the events in the field with this number of an encoded message, and what their changes add, without decoding them.
func MeasureEvents(data []byte, number int32) (events int64, added decode.Size) {
	field.Each(data, uint32(number)<<3|field.Delimited, func(event []byte) bool {
		events++
		addEvent(&added, event)
		return true
	})
	return events, added
}

// addEvent adds to a size the objects that the changes in an event add.
func addEvent(z *decode.Size, event []byte) {
	field.Each(event, tagChange, func(change []byte) bool {
		size := decode.MeasureChange(change)
		z.Add(&size, 0)
		return true
	})
}

// OnlySums reports whether all steps request shares or ask who may be enqueued, under a policy that needs only sums of tasks for that.
func OnlySums(p *apportionv1.Policy, steps []*apportionv1.Step) bool {
	sums := catalogue.SumsOf(p)
	return !slices.ContainsFunc(steps, func(s *apportionv1.Step) bool {
		q := QuestionOf(s)
		return q == nil || q.sums == catalogue.SumsNever || sums < q.sums
	})
}

const (
	// answerFactor is the maximum memory of an answer for each byte of its estimated size: messages of a few numbers need most.
	answerFactor = 6
	// explainFactor is the same factor for derivations, which are lists of numbers.
	explainFactor = 4
	// stepBytes is the memory of the smallest answer to a step.
	stepBytes = 256
	// explainedJob is the memory of the explanation of a job, and of the search for it; each task takes explainedTask in addition.
	// explainedWorkload is that of a job by the policy kueue, without its nomination.
	explainedJob, explainedTask, explainedWorkload = 4 << 10, 96, 2 << 10
)

// asking estimates what steps take.
type asking struct {
	decode.Extent

	// explain bounds what derivations take.
	explain int64
	// named are the dimensions that changes name.
	named map[string]bool
	// undo is the memory for rollbacks of the steps, added the memory that they add to the model.
	undo, added int64
	// marked: a step sets a mark, without which nothing is left to be undone. reopened: a step opens the session anew.
	marked, reopened bool
}

// reopen notes that a step adds so much to the model, and opens the session on the result.
func (a *asking) reopen(size decode.Size) {
	a.reopened = true
	a.Extent = a.With(&size)
	a.added += size.Memory()
	a.undo += a.session() + size.Memory()
}

func (a *asking) resource() int64 {
	return decode.BytesOf[apportionv1.Resource](1) + 8 + 16*a.Dimensions
}

func (a *asking) reason() int64 { return decode.BytesOf[apportionv1.Cause](1) + 32 }

// verdict returns the memory of a verdict with two reasons.
func (a *asking) verdict() int64 { return decode.BytesOf[apportionv1.Verdict](1) + 8 + 2*a.reason() }

// session returns the memory for opening a session again on a changed model.
func (a *asking) session() int64 {
	row := decode.RowBytes(int(a.Dimensions))
	return (40*a.Queues+10*a.Jobs+2*a.Nodes)*row + decode.BytesOf[model.Queue](int(a.Queues)) + decode.BytesOf[model.Node](int(a.Nodes)) +
		(decode.BytesOf[model.Job](1)+decode.BytesOf[model.Account](1)+256)*a.Jobs + 16*a.Tasks
}

// jobs returns the number of jobs in a selection, which are all if it is absent or empty.
func (a *asking) jobs(selection *apportionv1.Selector) int64 {
	if n := selected(selection, 0); n > 0 {
		return int64(n)
	}
	return a.Jobs
}

// nomination returns the memory of what the policy kueue finds out about one job: an attempt, and what it lacks, for each flavor that may
// be tried for each request. What answers say of it is booked when it is known.
func (a *asking) nomination() int64 {
	return a.Flavors * a.Asked * (decode.BytesOf[kueue.Attempt](1) + decode.BytesOf[kueue.Lack](1))
}

func (a *asking) moved(n int64) int64 {
	return n*(128+4*decode.RowBytes(int(a.Dimensions))) + 16*a.Jobs
}
