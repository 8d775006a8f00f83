package service

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
)

// Observer receives decisions after the answer is computed and before it is sent. It must be fast, because the caller waits; it may keep
// the messages of a Decision but must not modify them.
type Observer interface {
	// Wants reports whether to observe a unary call, or a session that is about to open. The policy's name is "" if the request contains a
	// policy.
	Wants(ctx context.Context, method, policyName string) bool
	// Observe is called for each observed call, and for each batch of each observed session, including its opening.
	Observe(ctx context.Context, d *Decision)
}

// Receiver is an Observer that also receives uploaded snapshots.
type Receiver interface {
	// Received may keep the bytes but must not modify them.
	Received(ctx context.Context, r Received)
}

// Received is an uploaded snapshot.
type Received struct {
	Digest string
	// Base is the digest of the snapshot that Data changes; "" if Data is the whole snapshot.
	Base string
	Data []byte
}

// received passes a snapshot to the observers.
func (s *Server) received(ctx context.Context, what Received) {
	for _, o := range s.options.Observers {
		if r, ok := o.(Receiver); ok {
			r.Received(ctx, what)
		}
	}
}

// Decision contains the questions and answers of one unary call, or of one batch of a session.
type Decision struct {
	// Method is its name without the name of the service.
	Method string
	// Session is nil for a unary call.
	Session *SessionID
	// Scheduler is the path of Volcano's extender plugin, and Sent the response in the plugin's format. Method is then the verb of the
	// plugin.
	Scheduler string
	Sent      []byte
	// Batch counts the batches of a session from 1; 0 is its opening. Last means that the session ended, without a question.
	Batch uint64
	Last  bool
	// PolicyName is "" if the request contains the policy.
	PolicyName string
	Policy     *apportionv1.Policy
	Snapshot   Snapshot
	// Texts is true if the reasons in the answers have texts, OmitNames if what has a position has no name.
	Texts, OmitNames bool
	// Restricted is true if the caller may see only its own queues, those named by Owned and what is below them, in a snapshot of others.
	// The answers contain what it was sent.
	Restricted bool
	Owned      []string
	// Basis is nil if the call failed before it was known.
	Basis *apportionv1.Basis
	// Events happened since Snapshot, then Edits were made, before the first step.
	Events []*apportionv1.Event
	Edits  []*apportionv1.Edit
	// Answers are in the order of Steps; there are fewer if Err ended the call.
	Steps   []*apportionv1.Step
	Answers []*apportionv1.Answer
	// Err is the status that was sent instead of an answer.
	Err error
	// Began is the time when execution of the steps began, Took its duration.
	Began time.Time
	Took  time.Duration
	// AnswerBytes is an upper estimate of the size of the answers.
	AnswerBytes int
}

// QuestionBytes returns the encoded size of what was asked: of the events, the edits and the steps.
func (d *Decision) QuestionBytes() int64 {
	return sizeOf(d.Events) + sizeOf(d.Edits) + sizeOf(d.Steps)
}

func sizeOf[M proto.Message](list []M) (bytes int64) {
	for _, m := range list {
		bytes += int64(proto.Size(m))
	}
	return bytes
}

// QuestionOf returns the name of the kind of a step as used in metrics.
func QuestionOf(step *apportionv1.Step) string { return wire.QuestionOf(step).Label() }

// SessionID identifies a session while it exists: equal pointers mean the same session.
type SessionID struct{ Number uint64 }

// NewSessionID returns an ID for a session that is not run by the service.
func (s *Server) NewSessionID() *SessionID { return &SessionID{Number: s.numbered.Add(1)} }

// SessionMethod is the method with which Observer.Wants is called for a session.
const SessionMethod = sessionMethod

// Snapshot is the input of a decision, in any form.
type Snapshot struct {
	// Digest of the encoded bytes; "" if it was not computed.
	Digest string
	// Model is set if the observer may keep it.
	Model *model.Model
	// Message is set if the snapshot was received as a message.
	Message *apportionv1.Snapshot
	// Base is the digest of the snapshot that the bytes change; "" if they are the whole snapshot.
	Base string
	// Named is the cluster's name if it is known independently of the snapshot.
	Named string

	data   []byte
	buffer mem.Buffer
}

// Cluster is the name of the cluster; "" if the snapshot names none.
func (s *Snapshot) Cluster() string {
	switch {
	case s.Named != "":
		return s.Named
	case s.data != nil:
		return decode.ClusterOf(s.data)
	default:
		return s.Message.GetCluster()
	}
}

// Size is the number of encoded bytes; 0 if they are not available.
func (s *Snapshot) Size() int { return len(s.data) }

// Bytes returns the encoded bytes, if they are available. They are valid until the returned function is called, which must be called once.
func (s *Snapshot) Bytes() ([]byte, func()) {
	if s.buffer == nil {
		return s.data, func() {}
	}
	s.buffer.Ref()
	return s.data, s.buffer.Free
}

// record collects the questions and answers of a call, for the metrics and for the observers that want them.
type record struct {
	Decision

	server    *Server
	observers []Observer
	// outer is the span of the call, and span the span of its steps.
	outer, span trace.Span
}

// watch begins to record a call. policyName is the one that the request names.
func (s *Server) watch(ctx context.Context, method, policyName string) *record {
	r := &record{server: s, outer: trace.SpanFromContext(ctx), span: noSpan, Decision: Decision{Method: method, PolicyName: policyName}}
	for _, o := range s.options.Observers {
		if o.Wants(ctx, method, policyName) {
			r.observers = append(r.observers, o)
		}
	}
	return r
}

// sessionMethod is the method of sessions.
const sessionMethod = "RunSession"

// watchSession begins to record a session.
func (s *Server) watchSession(ctx context.Context, policyName string, by rule) *record {
	r := s.watch(ctx, sessionMethod, policyName)
	r.Policy = by.policy
	if len(r.observers) > 0 {
		r.Session = s.NewSessionID()
	}
	return r
}

// nextBatch begins the next batch of a session.
func (r *record) nextBatch(ctx context.Context, now time.Time) {
	r.Batch, r.Events = r.Batch+1, nil
	r.beginAt(ctx, r.Basis, now)
}

// ended returns when the steps of the last batch were answered.
func (r *record) ended() time.Time { return r.Began.Add(r.Took) }

// close ends a session.
func (r *record) close(ctx context.Context) {
	if len(r.observers) == 0 {
		return
	}
	r.Steps, r.Answers, r.AnswerBytes, r.Took = nil, nil, 0, 0
	r.Batch, r.Last = r.Batch+1, true
	r.end(ctx, nil)
}

// begin records that execution of the steps begins.
func (r *record) begin(ctx context.Context, basis *apportionv1.Basis) {
	r.beginAt(ctx, basis, time.Now())
}

// beginAt is begin at a time.
func (r *record) beginAt(ctx context.Context, basis *apportionv1.Basis, now time.Time) {
	r.Basis, r.Began = basis, now
	if r.outer.IsRecording() {
		//nolint:spancheck // It ends with done.
		_, r.span = r.outer.TracerProvider().Tracer(scope).Start(ctx, "decide", trace.WithAttributes(
			attribute.String("apportion.policy.digest", basis.GetPolicyDigest()),
			attribute.String("apportion.snapshot.digest", basis.GetSnapshotDigest()),
		))
	}
}

// ask answers the steps of a unary call: all of them, or up to the first that fails if the method ends there.
//
// bytes is an upper estimate of the size of the answers.
func (r *record) ask(
	session *wire.Session, steps []*apportionv1.Step,
) (answers []*apportionv1.Answer, bytes int, err error) {
	if !method.OneByOne(r.Method) {
		answers, err = session.DoAll(steps)
		r.askedAll(session, steps, answers, err)
		return answers, session.AnswerBytes(), err
	}
	answers = make([]*apportionv1.Answer, 0, len(steps))
	for _, step := range steps {
		answer, err := session.Ask(step)
		r.asked(session, step, answer, err)
		if err != nil {
			return answers, bytes, err
		}
		answers = append(answers, answer)
		bytes += session.AnswerBytes()
	}
	return answers, bytes, nil
}

// asked records a step with its answer.
func (r *record) asked(session *wire.Session, step *apportionv1.Step, answer *apportionv1.Answer, err error) {
	t := tally{into: r.server.metrics.decisions}
	if err != nil {
		t.failure(step, err)
	} else {
		t.answer(step, answer)
	}
	t.flush()
	if len(r.observers) == 0 {
		return
	}
	r.Steps = append(r.Steps, step)
	if err == nil {
		r.Answers = append(r.Answers, answer)
		r.AnswerBytes += session.AnswerBytes()
	}
}

// askedAll records a list of steps with their answers, or the error of all of them.
func (r *record) askedAll(session *wire.Session, steps []*apportionv1.Step, answers []*apportionv1.Answer, err error) {
	t := tally{into: r.server.metrics.decisions}
	if err != nil {
		t.failure(nil, err)
	} else {
		for i, answer := range answers {
			t.answer(steps[i], answer)
		}
	}
	t.flush()
	r.Steps, r.Answers, r.AnswerBytes = steps, answers, session.AnswerBytes()
}

// done records that the steps were answered, or failed.
func (r *record) done() {
	r.Took = time.Since(r.Began)
	r.server.metrics.deciding[r.Method].Observe(r.Took.Seconds())
	if r.span != noSpan {
		r.span.SetAttributes(attribute.Int("apportion.steps", len(r.Steps)))
		r.span.End()
		r.span = noSpan
	}
}

// refused records that a call failed before its steps were executed.
func (r *record) refused(err error) {
	t := tally{into: r.server.metrics.decisions}
	t.failure(nil, err)
	t.flush()
}

// end calls the observers. err is the sent status.
func (r *record) end(ctx context.Context, err error) {
	if len(r.observers) > 0 {
		d := r.Decision
		d.Err = err
		for _, o := range r.observers {
			r.server.observe(ctx, o, &d)
		}
		// Observers receive a session's snapshot once, with its opening.
		r.Snapshot = Snapshot{Digest: r.Snapshot.Digest, Named: r.Snapshot.Cluster()}
	}
}

// observe calls one observer. Its panic does not affect the caller.
func (s *Server) observe(ctx context.Context, o Observer, d *Decision) {
	defer func() {
		if p := recover(); p != nil {
			s.log.LogAttrs(ctx, slog.LevelError, "an observer panicked",
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		}
	}()
	o.Observe(ctx, d)
}

// scope names this package in traces.
const scope = "github.com/apportion/apportion/service"

var noSpan = trace.SpanFromContext(context.Background())

// phase begins a span for a part of a call, if the call is traced; the returned function ends it.
func phase(ctx context.Context, name string) func() {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return func() {}
	}
	_, part := span.TracerProvider().Tracer(scope).Start(ctx, name)
	return func() { part.End() }
}
