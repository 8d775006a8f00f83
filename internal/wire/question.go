package wire

import (
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
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
	added    func(*decode.Size, []byte)
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
	// added counts what a step adds to the model, whose encoding field 1 of its message holds.
	added func(*decode.Size, []byte)
	// read decodes the message of a step as the protobuf library does, or returns nil to leave it to that.
	read func([]byte) *apportionv1.Step
}

func (q *question[Q]) row() *Question {
	of := q.of
	field := fieldOf[Q]()
	row := &Question{
		Name: string(field.Name()), number: field.Number(), Changes: q.changes, Undoes: q.undoes, Visible: q.visible,
		sums: q.sums, decision: q.decision, added: q.added, read: q.read, need: q.need,
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
type decision func(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Reason, ok bool)

// Decides reports whether answers hold decisions: any number of them. The answer to a question that decides nothing is one answer.
func (q *Question) Decides() bool { return q != nil && q.decision != nil }

// Decision returns the i-th decision in an answer that is not an error, with the reason that is named first; ok is false if there are
// fewer.
func (q *Question) Decision(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Reason, ok bool) {
	if !q.Decides() {
		return 0, nil, false
	}
	return q.decision(answer, i)
}

// verdicts returns the decisions of an answer that is a list of verdicts.
func verdicts[A any, V interface{ GetVerdict() *apportionv1.Verdict }](of func(*apportionv1.Answer) A, list func(A) []V) decision {
	return func(answer *apportionv1.Answer, i int) (vote apportionv1.Vote, why *apportionv1.Reason, ok bool) {
		all := list(of(answer))
		if i >= len(all) {
			return 0, nil, false
		}
		verdict := all[i].GetVerdict()
		if reasons := verdict.GetReasons(); len(reasons) > 0 {
			why = reasons[0]
		}
		return verdict.GetVote(), why, true
	}
}
