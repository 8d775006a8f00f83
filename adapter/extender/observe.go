package extender

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/wire"
)

// Observer receives sessions: the questions as steps of the contract, and their answers. It must be fast, because the scheduler waits.
type Observer interface {
	// Opened receives a session before its first question. It returns the observer of that session, or nil if there is none.
	Opened(ctx context.Context, o *Opening) SessionObserver
}

// SessionObserver receives one session, from one goroutine at a time, in the order of its decisions.
type SessionObserver interface {
	// Asked receives each question that was decided, and each event that was followed.
	Asked(ctx context.Context, q *Question)
	// Closed is called once, when the session is over.
	Closed(ctx context.Context)
}

// Opening describes a session that begins. It must not be modified.
type Opening struct {
	// Path is the scheduler's path. User sent the push; it is "" if users are not configured.
	Path, User string
	// Policy is the policy of the session, as it was when the session began.
	PolicyName string
	Policy     *apportionv1.Policy
	// Model is the session's model. The observer may keep it.
	Model *model.Model
	Basis *apportionv1.Basis
	// Ask answers a step that changes nothing, until Opened returns.
	Ask func(*apportionv1.Step) *apportionv1.Answer
	// Began is the time at which the push arrived, Took the time until its snapshot was built.
	Began time.Time
	Took  time.Duration
}

// Question is one question or event. The observer may keep it.
type Question struct {
	Verb, User string
	// Answers are in the order of Steps. First come the changes that give the job's tasks the statuses that the question states.
	Steps   []*apportionv1.Step
	Answers []*apportionv1.Answer
	// AnswerBytes is an upper estimate of the size of the answers.
	AnswerBytes int
	// Sent is the answer to the scheduler, with only the uids of victims.
	Sent json.RawMessage
	// Began is the time at which processing began, Took its duration.
	Began time.Time
	Took  time.Duration
}

// record is the report of one session to its observer. It is guarded by the session's lock. A nil *record does nothing.
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

// asked records a step and its answer, which says whether the step changed the session, as a server's answer does.
func (r *record) asked(step *apportionv1.Step, answer *apportionv1.Answer) {
	if r != nil {
		answer.Changed = answer.GetError() == nil && wire.QuestionOf(step).Changes
		r.now.Steps, r.now.Answers = append(r.now.Steps, step), append(r.now.Answers, answer)
		r.now.AnswerBytes += r.wire.AnswerBytes()
	}
}

// ask answers a read-only step and records it: the decision just made, with all details that the contract has.
func (r *record) ask(step func() *apportionv1.Step) {
	if r != nil {
		question := step()
		r.asked(question, r.wire.Do(question))
	}
}

// changed records a completed step that changes the session.
func (r *record) changed(step func() *apportionv1.Step) {
	if r != nil {
		r.asked(step(), &apportionv1.Answer{Answer: &apportionv1.Answer_Event{Event: &apportionv1.EventAnswer{}}})
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

func tasksOf(uids ...string) *apportionv1.Selector { return &apportionv1.Selector{Names: uids} }

func jobsOf(uid string) *apportionv1.Selector { return &apportionv1.Selector{Names: []string{uid}} }

func statusStep(uid string, status model.Status) *apportionv1.Step {
	return event.SetStatus(tasksOf(uid), apportionv1.TaskStatus(status)+1)
}

// booked records that a task was booked; from is its previous status. An allocate step begins with a task that waits, and ends with it
// allocated; any other status is set before and afterwards.
func (r *record) booked(uid string, from, as model.Status, node model.NodeID) {
	if r == nil {
		return
	}
	if from != model.Pending && from != model.Pipelined && from != model.Releasing {
		r.changed(func() *apportionv1.Step { return statusStep(uid, model.Releasing) })
	}
	r.changed(func() *apportionv1.Step {
		var nodes *apportionv1.Selector
		if node != model.None {
			nodes = &apportionv1.Selector{Indices: []uint32{uint32(node)}}
		}
		return event.Place(tasksOf(uid), nodes)
	})
	if as != model.Allocated {
		r.changed(func() *apportionv1.Step { return statusStep(uid, as) })
	}
}

// unbooked records that a task's booking was removed; from is its previous status. A deallocate step begins with a task that holds
// resources.
func (r *record) unbooked(uid string, from, as model.Status) {
	if r == nil {
		return
	}
	if !from.Holds() {
		r.changed(func() *apportionv1.Step { return statusStep(uid, model.Allocated) })
	}
	r.changed(func() *apportionv1.Step {
		return event.Evict(tasksOf(uid), apportionv1.TaskStatus(as)+1)
	})
}
