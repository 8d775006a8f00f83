package extender

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Observer receives sessions: what was asked, in the contract's steps, and what was answered. It must be quick, because the scheduler
// waits.
type Observer interface {
	// Opened receives a session before its first question. It returns the observer of the rest of it; nil: none.
	Opened(ctx context.Context, o *Opening) SessionObserver
}

// SessionObserver receives one session, from one goroutine at a time, in the order of its decisions.
type SessionObserver interface {
	// Asked receives each question that was decided, and each event that was followed.
	Asked(ctx context.Context, q *Question)
	// Closed is called once, when the session is over.
	Closed(ctx context.Context)
}

// Opening is a session that begins. Nothing in it may be changed.
type Opening struct {
	// Path is that of the scheduler, User who sent the push; "" if users are not configured.
	Path, User string
	// Policy decides, as it was when the session began.
	PolicyName string
	Policy     *apportionv1.Policy
	// Model is what is decided about, and may be kept.
	Model *model.Model
	Basis *apportionv1.Basis
	// Ask answers a step that changes nothing, until Opened returns.
	Ask func(*apportionv1.Step) *apportionv1.Answer
	// Began is when the push came, Took how long it took until it could be asked about.
	Began time.Time
	Took  time.Duration
}

// Question is one question or event. It may be kept.
type Question struct {
	Verb, User string
	// Answers are in the order of Steps. The changes that bring the session to what the question says of its job's tasks come first.
	Steps   []*apportionv1.Step
	Answers []*apportionv1.Answer
	// AnswerBytes is about the size of the answers, and never less.
	AnswerBytes int
	// Sent is what the scheduler was answered, victims by their uids alone.
	Sent json.RawMessage
	// Began is when the question came to its turn, Took how long it took.
	Began time.Time
	Took  time.Duration
}

// record is what one session reports to its observer. It is guarded by the session's lock. A nil *record does nothing.
type record struct {
	to   SessionObserver
	wire *wire.Session
	now  Question
}

// begin begins a question.
func (r *record) begin(verb verb, user string) {
	if r != nil {
		r.now = Question{Verb: string(verb), User: user, Began: time.Now()}
	}
}

// asked notes a step that was answered.
func (r *record) asked(step *apportionv1.Step, answer *apportionv1.Answer) {
	if r != nil {
		r.now.Steps, r.now.Answers = append(r.now.Steps, step), append(r.now.Answers, answer)
		r.now.AnswerBytes += r.wire.AnswerBytes()
	}
}

// ask answers a step that changes nothing, and notes it: what was just decided, with all that the contract says of it.
func (r *record) ask(step func() *apportionv1.Step) {
	if r != nil {
		question := step()
		r.asked(question, r.wire.Do(question))
	}
}

// changed notes a step that changes something, which has been done.
func (r *record) changed(step func() *apportionv1.Step) {
	if r != nil {
		r.asked(step(), &apportionv1.Answer{Answer: &apportionv1.Answer_Done{Done: &apportionv1.DoneAnswer{}}})
	}
}

// end reports the question to the observer.
func (r *record) end(ctx context.Context, sent []byte) {
	if r != nil {
		q := r.now
		q.Sent, q.Took = sent, time.Since(q.Began)
		r.to.Asked(ctx, &q)
	}
}

func tasksOf(uids ...string) *apportionv1.Tasks { return &apportionv1.Tasks{Uid: uids} }

func jobsOf(uid string) *apportionv1.Jobs { return &apportionv1.Jobs{Uid: []string{uid}} }

func statusStep(uid string, status model.Status) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_SetStatus{SetStatus: &apportionv1.SetStatusStep{
		Tasks: tasksOf(uid), Status: apportionv1.TaskStatus(status) + 1,
	}}}
}

// booked notes that a task was booked, which was in status from before. An allocate step begins with a task that waits, and ends with it
// allocated; any other status is set before and afterwards.
func (r *record) booked(uid string, from, as model.Status, node model.NodeID) {
	if r == nil {
		return
	}
	if from != model.Pending && from != model.Pipelined && from != model.Releasing {
		r.changed(func() *apportionv1.Step { return statusStep(uid, model.Releasing) })
	}
	r.changed(func() *apportionv1.Step {
		step := &apportionv1.AllocateStep{Tasks: tasksOf(uid)}
		if node != model.None {
			step.Node = []uint32{uint32(node)}
		}
		return &apportionv1.Step{Step: &apportionv1.Step_Allocate{Allocate: step}}
	})
	if as != model.Allocated {
		r.changed(func() *apportionv1.Step { return statusStep(uid, as) })
	}
}

// unbooked notes that a task was taken off, which was in status from before. A deallocate step begins with a task that holds resources.
func (r *record) unbooked(uid string, from, as model.Status) {
	if r == nil {
		return
	}
	if !from.Holds() {
		r.changed(func() *apportionv1.Step { return statusStep(uid, model.Allocated) })
	}
	r.changed(func() *apportionv1.Step {
		return &apportionv1.Step{Step: &apportionv1.Step_Deallocate{Deallocate: &apportionv1.DeallocateStep{
			Tasks: tasksOf(uid), Status: apportionv1.TaskStatus(as) + 1,
		}}}
	})
}
