// Package shadow decides a share of the calls a second time, by another policy, and reports differences between the answers. It does not
// affect answers to callers: it runs later, within its own limits, and its failures do not reach callers.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/backlog"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/difference"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
)

// Options of a Shadow.
type Options struct {
	// Policy is the second policy, which Settings names.
	Policy *apportionv1.Policy
	// Settings select the calls that are decided again, and limit their number, memory and time.
	Settings setting.Shadow
	// Logger of differences. nil: they are counted only.
	Logger *slog.Logger
}

// Shadow is an observer of the service.
type Shadow struct {
	options Options
	policy  atomic.Pointer[apportionv1.Policy]
	queue   *backlog.Queue[*job]
	decoder decode.Decoder

	mutex    sync.Mutex
	sessions map[*service.SessionID]*beside

	close           sync.Once
	closing, closed chan struct{}

	decisions *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	panics    prometheus.Counter
}

// beside is a session under the second policy, beside the caller's session.
type beside struct {
	session *wire.Session
	next    uint64
}

// job is a call to decide again.
type job struct {
	decision service.Decision
	data     []byte
	release  func()
	identity string
	span     trace.SpanContext
}

// The results of a step that was decided again.
const (
	same      = "same"
	different = "different"
	failed    = "failed"
)

// Why calls are dropped.
const (
	causeFull     = "full"
	causeOversize = "oversize"
	causeSession  = "session"
)

var errPanicked = errors.New("it panicked")

// New returns a shadow that decides until Close, or an error about its policy.
func New(o Options) (*Shadow, error) {
	setting.Complete(&o.Settings)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Shadow{
		options: o, queue: backlog.New[*job](o.Settings.Waiting, int64(o.Settings.WaitingBytes)),
		sessions: map[*service.SessionID]*beside{},
		closing:  make(chan struct{}), closed: make(chan struct{}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_shadow_decisions_total",
			Help: "Steps that the shadow policy decided too, by kind of question, and whether what it decided is the same.",
		}, []string{"question", "result"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_shadow_dropped_total",
			Help: "Calls, and batches of sessions, that were to be decided by the shadow policy and were not.",
		}, []string{"cause"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_shadow_panics_total", Help: "Calls on which the shadow policy panicked.",
		}),
	}
	if err := s.Use(o.Policy); err != nil {
		return nil, err
	}
	for _, cause := range []string{causeFull, causeOversize, causeSession} {
		s.dropped.WithLabelValues(cause)
	}
	go s.run()
	return s, nil
}

// Use replaces the policy for new calls and sessions, or returns an error about it.
func (s *Shadow) Use(policy *apportionv1.Policy) error {
	if _, err := decode.Policy(policy); err != nil {
		return err
	}
	s.policy.Store(policy)
	return nil
}

// Collectors returns the metrics of the shadow.
func (s *Shadow) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.decisions, s.dropped, s.panics}
}

// Wants reports whether to decide a call again: one of Settings.OneIn at random, if the settings select its policy.
func (s *Shadow) Wants(_ context.Context, _, policyName string) bool {
	c := &s.options.Settings
	of := c.Of == "" || c.Of == policyName
	return of && rand.IntN(c.OneIn) == 0 //nolint:gosec // A caller that predicts it gains nothing.
}

// Observe queues a call. Answers to a caller that may see only its own queues are not compared.
func (s *Shadow) Observe(ctx context.Context, d *service.Decision) {
	if d.Basis == nil || d.Restricted {
		return
	}
	j := &job{decision: *d, release: func() {}, identity: service.IdentityOf(ctx), span: trace.SpanContextFromContext(ctx)}
	size := int64(d.AnswerBytes) + d.QuestionBytes() + 1<<10
	if d.Snapshot.Model == nil {
		j.data, j.release = d.Snapshot.Bytes()
		size += int64(len(j.data))
		if j.data == nil && d.Snapshot.Message != nil {
			size += int64(proto.Size(d.Snapshot.Message))
		}
	}
	switch {
	case !s.queue.Fits(size):
		s.drop(j, causeOversize)
	case !s.queue.Put(j, size):
		s.drop(j, causeFull)
	}
}

func (s *Shadow) drop(j *job, cause string) {
	j.release()
	s.dropped.WithLabelValues(cause).Inc()
	if j.decision.Session != nil {
		// Steps after a gap cannot be decided.
		s.forget(j.decision.Session)
	}
}

func (s *Shadow) forget(id *service.SessionID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sessions, id)
}

// run decides what is queued.
func (s *Shadow) run() {
	defer close(s.closed)
	for {
		j, ok := s.queue.Take()
		if ok {
			s.decide(j)
			j.release()
			continue
		}
		select {
		case <-s.queue.Work():
		case <-s.closing:
			return
		}
	}
}

// Close ends the shadow after the running decisions, or when ctx ends; queued calls are dropped.
func (s *Shadow) Close(ctx context.Context) error {
	s.close.Do(func() { close(s.closing) })
	select {
	case <-s.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decide decides one call again, and reports the differences.
func (s *Shadow) decide(j *job) {
	d := &j.decision
	if d.Last {
		s.forget(d.Session)
		return
	}
	session, err := s.session(j)
	if session == nil && err == nil {
		s.dropped.WithLabelValues(causeSession).Inc()
		return
	}
	var answers []*apportionv1.Answer
	if err == nil {
		answers, err = s.ask(session, d)
	}
	s.compare(j, answers, err)
}

// ask answers steps by the shadow policy. A panic is an error like others.
func (s *Shadow) ask(session *wire.Session, d *service.Decision) (answers []*apportionv1.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(p)
		}
	}()
	end := time.Now().Add(s.options.Settings.Time)
	session.Stop(func() bool { return time.Now().After(end) })
	return method.Ask(session, d.Method, d.Steps)
}

// panicked counts and logs a panic.
func (s *Shadow) panicked(p any) error {
	s.panics.Inc()
	s.options.Logger.Error("the shadow policy panicked", slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	return errPanicked
}

// session returns the session that decides a call; neither session nor error: there is none for this batch.
func (s *Shadow) session(j *job) (*wire.Session, error) {
	d := &j.decision
	if d.Session == nil {
		return s.open(j)
	}
	s.mutex.Lock()
	known, count := s.sessions[d.Session], len(s.sessions)
	if known != nil && known.next != d.Batch {
		delete(s.sessions, d.Session)
		known = nil
	}
	s.mutex.Unlock()
	if known != nil {
		known.next++
		return known.session, nil
	}
	if d.Batch > 0 || count >= s.options.Settings.Sessions {
		return nil, nil //nolint:nilnil // As documented.
	}
	session, err := s.open(j)
	if err == nil {
		s.mutex.Lock()
		s.sessions[d.Session] = &beside{session: session, next: 1}
		s.mutex.Unlock()
	}
	return session, err
}

func (s *Shadow) open(j *job) (session *wire.Session, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(p)
		}
	}()
	end := time.Now().Add(s.options.Settings.Time)
	m := j.decision.Snapshot.Model
	if m == nil {
		if m, err = s.compile(j); err != nil {
			return nil, err
		}
	}
	session, err = wire.Open(m, s.policy.Load(), wire.Options{Stop: func() bool { return time.Now().After(end) }})
	if err == nil {
		err = session.Continue(j.decision.Events, 0, j.decision.Edits, "input.")
	}
	return session, err
}

func (s *Shadow) compile(j *job) (*model.Model, error) {
	switch {
	case j.data == nil:
		return decode.Compile(j.decision.Snapshot.Message)
	case j.decision.Session == nil:
		return s.decoder.Compile(j.data)
	default:
		return decode.CompileBytes(j.data)
	}
}

// compare counts and logs what differs.
func (s *Shadow) compare(j *job, answers []*apportionv1.Answer, err error) {
	d := &j.decision
	if (err != nil) != (d.Err != nil) || errors.Is(err, errPanicked) {
		s.fail(j, err)
		return
	}
	const most = 5
	var found []difference.Difference
	results := make([]string, len(d.Steps))
	for i := range d.Steps {
		results[i] = same
		if i < len(d.Answers) && i < len(answers) {
			if apart := difference.Between(difference.Bare(d.Answers[i]), difference.Bare(answers[i]), most); len(apart) > 0 {
				results[i] = different
				found = append(found, apart[:min(len(apart), most-min(most, len(found)))]...)
			}
		}
	}
	if len(found) > 0 {
		texts := make([]string, len(found))
		for i, f := range found {
			texts[i] = f.String()
		}
		s.log(j, slog.LevelInfo, "the shadow policy decides otherwise", slog.Any("differences", texts))
	}
	// What is counted is in the log already.
	for i, step := range d.Steps {
		s.decisions.WithLabelValues(service.QuestionOf(step), results[i]).Inc()
	}
}

// fail counts the steps of a call that one policy answered and the other did not.
func (s *Shadow) fail(j *job, err error) {
	text := "it answers what was refused"
	if err != nil {
		text = err.Error()
	}
	s.log(j, slog.LevelWarn, "the shadow policy could not decide the same", slog.String("error", text))
	for _, step := range j.decision.Steps {
		s.decisions.WithLabelValues(service.QuestionOf(step), failed).Inc()
	}
}

func (s *Shadow) log(j *job, level slog.Level, text string, attrs ...slog.Attr) {
	d := &j.decision
	attrs = append(attrs,
		slog.String("method", d.Method), slog.String("identity", j.identity), slog.String("policy", d.PolicyName),
		slog.String("policy_digest", d.Basis.GetPolicyDigest()), slog.String("shadow", s.options.Settings.Policy),
		slog.String("shadow_digest", decode.PolicyDigest(s.policy.Load())), slog.String("snapshot_digest", d.Snapshot.Digest))
	ctx := trace.ContextWithSpanContext(context.Background(), j.span)
	s.options.Logger.LogAttrs(ctx, level, text, attrs...) //nolint:sloglint // The texts are those of the callers above.
}
