package extender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/apportion/apportion/internal/decode"
)

// Handler answers the extender plugins of any number of schedulers.
type Handler struct {
	options    Options
	log        *slog.Logger
	schedulers map[string]*scheduler
	metrics    *metrics
	tracer     trace.Tracer
	// room bounds the questions that are decided at the same time, kept bounds the memory of their bodies, and bodies the memory of bodies
	// that are read as a whole.
	room         chan struct{}
	kept, bodies allowance
}

func (h *Handler) bound() bound { return bound{Limits: h.options.Limits, memory: h.options.PushMemory} }

// New returns a handler, or what is wrong with the options.
func New(options Options) (*Handler, error) {
	options.complete()
	h := &Handler{
		options: options, log: options.Logger, schedulers: make(map[string]*scheduler, len(options.Schedulers)),
		tracer: options.Tracer.Tracer("github.com/apportion/apportion/adapter/extender"),
		room:   make(chan struct{}, options.Requests),
		kept:   allowance{all: options.QuestionMemory}, bodies: allowance{all: bodiesAtOnce * options.VictimBytes},
	}
	if len(options.Schedulers) == 0 {
		return nil, errors.New("no scheduler is configured")
	}
	for path, given := range options.Schedulers {
		path = strings.TrimRight(path, "/")
		s := &scheduler{path: path, Scheduler: given}
		switch {
		case path != "" && path[0] != '/':
			return nil, fmt.Errorf("the path %q of a scheduler does not begin with /", path)
		case h.schedulers[path] != nil:
			return nil, fmt.Errorf("two schedulers have the path %q", path)
		case options.Policy == nil || s.policy(options.Policy) == nil:
			return nil, fmt.Errorf("%s: no policy %q is configured", path, given.Policy)
		}
		if _, err := decode.Policy(s.last); err != nil {
			return nil, fmt.Errorf("policy %q: %w", given.Policy, err)
		}
		h.schedulers[path] = s
	}
	h.metrics = newMetrics(options.Registerer)
	for path := range h.schedulers {
		h.metrics.cut.WithLabelValues(path)
	}
	return h, nil
}

// request is one request on its way to an answer.
type request struct {
	*Handler
	http.ResponseWriter

	in   *http.Request
	from *scheduler
	verb verb
	// user is the user that authenticated, if users are configured.
	user  string
	begun time.Time
	kept  share
}

// errTooLarge says that a body exceeds its limit.
var errTooLarge = errors.New("the body is too large")

// ServeHTTP answers POST PATH/VERB.
func (h *Handler) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	cut := strings.LastIndexByte(in.URL.Path, '/')
	from := h.schedulers[in.URL.Path[:max(cut, 0)]]
	name := verb(in.URL.Path[cut+1:])
	_, known := noOpinion[name]
	switch {
	case from == nil || !known:
		http.Error(w, "no scheduler or no verb of this name", http.StatusNotFound)
		return
	case in.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST is answered", http.StatusMethodNotAllowed)
		return
	case !h.authorized(in):
		h.metrics.requests.WithLabelValues(from.path, string(name), "unauthorized").Inc()
		w.Header().Set("WWW-Authenticate", `Basic realm="apportion"`)
		http.Error(w, "permission denied", http.StatusUnauthorized)
		return
	}
	ctx, span := h.tracer.Start(in.Context(), "extender/"+string(name), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("apportion.scheduler", from.path), attribute.String("apportion.policy.name", from.Policy)))
	defer span.End()
	r := &request{
		Handler: h, ResponseWriter: w, in: in.WithContext(ctx), from: from, verb: name, begun: time.Now(), kept: share{of: &h.kept},
	}
	if h.options.Authorize != nil {
		r.user, _, _ = in.BasicAuth()
	}
	r.serve() //nolint:contextcheck // The context is that of the request.
}

func (h *Handler) authorized(in *http.Request) bool {
	if h.options.Authorize == nil {
		return true
	}
	user, password, ok := in.BasicAuth()
	return ok && h.options.Authorize(user, password)
}

// serve always answers: a panic must neither end the process nor reach Volcano as an error.
func (r *request) serve() {
	defer func() {
		if p := recover(); p != nil {
			r.recovered(p)
			r.abstain(panicked)
		}
		r.metrics.seconds.WithLabelValues(string(r.verb)).Observe(time.Since(r.begun).Seconds())
	}()
	limited := &limitedBody{from: r.in.Body, left: r.options.PushBytes}
	defer r.kept.giveBack()
	err := r.read(limited)
	switch {
	case err == nil:
		r.count(outcomeOK)
	case errors.Is(err, errTooLarge) && r.verb != onSessionOpen:
		// Volcano reads the answer only after it has sent the whole request.
		_ = drain(limited)
		r.abstain(tooLarge)
	case errors.Is(err, errBusy):
		_ = drain(limited)
		r.abstain(busy)
	default:
		r.refuse(err)
	}
}

// read reads a request and answers it.
func (r *request) read(body *limitedBody) error {
	// Sessions must begin and end, or later questions would refer to the wrong one.
	if r.verb != onSessionOpen && r.verb != onSessionClose {
		if err := r.kept.take(readingBytes); err != nil {
			return err
		}
	}
	switch r.verb {
	case onSessionOpen:
		return r.open(body)
	case onSessionClose:
		r.from.close(r.in.Context())
		r.answer("")
		return nil
	case predicate:
		return r.predicate(body)
	case prioritize:
		return r.prioritize(body)
	case preemptable, reclaimable:
		return r.evict(body)
	case queueOverused:
		return r.queueOverused(body)
	case jobEnqueueable:
		return r.jobEnqueueable(body)
	case jobEnqueued:
		return r.jobEnqueued(body)
	case jobReady:
		return r.jobReady(body)
	case allocate, deallocate:
		return r.event(body)
	}
	return nil
}

// enter waits for a free place in the room, and reports whether it got one in time.
func (r *request) enter() bool {
	select {
	case r.room <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(r.options.Wait)
	defer timer.Stop()
	select {
	case r.room <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.in.Context().Done():
	}
	return false
}

func (h *Handler) recovered(p any) {
	h.metrics.panics.Inc()
	h.log.Error("a request panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

func (r *request) count(outcome string) {
	r.metrics.requests.WithLabelValues(r.from.path, string(r.verb), outcome).Inc()
}

// refuse answers a request that is not one of Volcano's.
func (r *request) refuse(err error) {
	r.count(outcomeBad)
	r.log.Warn("cannot read a request", "scheduler", r.from.path, "verb", string(r.verb), "error", err.Error())
	status := http.StatusBadRequest
	if fault := (*decode.Fault)(nil); errors.Is(err, errTooLarge) || errors.Is(err, errLong) || errors.As(err, &fault) {
		status = http.StatusRequestEntityTooLarge
	}
	http.Error(r.ResponseWriter, err.Error(), status)
}

// answer sends an answer. It first reads the rest of the request, because Volcano sends all of it before it reads the answer.
func (r *request) answer(body string) { r.send([]byte(body)) }

func (r *request) send(body []byte) {
	if len(body) > 0 {
		r.Header().Set("Content-Type", "application/json")
	}
	r.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := r.Write(body); err != nil {
		r.log.Debug("cannot send an answer", "scheduler", r.from.path, "verb", string(r.verb), "error", err.Error())
	}
}

// abstain leaves a question to Volcano's other plugins.
func (r *request) abstain(reason string) {
	r.metrics.abstentions.WithLabelValues(r.from.path, string(r.verb), reason).Inc()
	r.log.Debug("abstained", "scheduler", r.from.path, "verb", string(r.verb), "reason", reason)
	r.answer(noOpinion[r.verb])
}

// decided counts and logs a decision. An event has no word and is not counted.
func (r *request) decided(d *decision) {
	if d.word == "" {
		return
	}
	r.metrics.decisions.WithLabelValues(r.from.path, string(r.verb), d.word, strconv.FormatBool(r.from.Shadow)).Inc()
	level := slog.LevelDebug
	if r.from.Shadow {
		level = slog.LevelInfo
	}
	d.attrs = append(d.attrs,
		slog.String("decision", d.word), slog.String("scheduler", r.from.path), slog.String("verb", string(r.verb)))
	r.log.LogAttrs(r.in.Context(), level, "decided", d.attrs...)
}

// ask waits for a place and the snapshot, runs question under the snapshot's lock, and sends the answer. Without a place, a snapshot or an
// answer, and in shadow mode, it sends the answer that leaves the decision to Volcano. The body was read before, so that a slow client
// holds no place.
func (r *request) ask(question func(s *snapshot) (d decision, known bool)) {
	d, reason := r.decide(question)
	if reason != "" {
		r.abstain(reason)
		return
	}
	r.decided(&d)
	r.send(d.body)
}

// decide returns a decision, or why there is none.
func (r *request) decide(question func(s *snapshot) (d decision, known bool)) (d decision, reason string) {
	if !r.enter() {
		return d, busy
	}
	defer func() { <-r.room }()
	s, reason := r.from.wait(r.in.Context(), r.options.Wait)
	if s == nil {
		return d, reason
	}
	if !s.locked(func(s *snapshot) (known bool) {
		s.record.begin(r.verb, r.user)
		if d, known = question(s); !known {
			return false
		}
		if r.from.Shadow {
			d.body, d.sent = []byte(noOpinion[r.verb]), nil
		}
		if d.sent == nil {
			d.sent = d.body
		}
		s.record.end(r.in.Context(), d.sent)
		return true
	}) {
		return d, unknown
	}
	return d, ""
}

// locked runs a question under the snapshot's lock, which is released even if the question panics.
func (s *snapshot) locked(ask func(s *snapshot) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ask(s)
}

// open answers a push as soon as it has arrived, and builds its snapshot after the answer.
func (r *request) open(body *limitedBody) error {
	t := r.from.begin(r.in.Context())
	asOf := r.options.Now().UnixNano()
	push, err := r.receive(t, body)
	switch {
	case err == nil:
		size := r.options.PushBytes - body.left
		r.metrics.pushBytes.WithLabelValues(r.from.path).Set(float64(size))
		r.metrics.pushSeconds.WithLabelValues(r.from.path).Observe(time.Since(r.begun).Seconds())
		go r.build(t, push, asOf)
	case errors.Is(err, errPanicked):
		t.end(nil)
		r.abstain(panicked)
		return nil
	case !errors.Is(err, errOver):
		t.end(nil)
		return err
	}
	r.answer("")
	return nil
}

// build builds the snapshot of a push that has arrived.
func (r *request) build(t *turn, push *received, asOf int64) {
	begun, path := time.Now(), r.from.path
	_, span := r.tracer.Start(t.ctx, "build")
	defer span.End()
	var s *snapshot
	err := r.guarded(func() (err error) {
		s, err = r.snapshot(t, push, asOf)
		return err
	})
	if err != nil {
		s = nil
		if !errors.Is(context.Cause(t.ctx), errOver) {
			r.log.WarnContext(t.ctx, "cannot build the snapshot of a push; every question of its session is left to Volcano",
				"scheduler", path, "error", err.Error())
		}
	}
	switch taken := t.end(s); {
	case s == nil:
	case !taken:
		s.closed(t.ctx)
	default:
		r.metrics.build.WithLabelValues(path).Observe(time.Since(begun).Seconds())
		r.metrics.tasks.WithLabelValues(path).Set(float64(len(s.booked)))
		r.metrics.taken.WithLabelValues(path).Set(float64(asOf) / float64(time.Second))
	}
}

func (r *request) snapshot(t *turn, push *received, asOf int64) (*snapshot, error) {
	<-push.done
	if push.err != nil {
		return nil, push.err
	}
	m, err := push.read.build(asOf)
	if err == nil {
		most := r.bound()
		err = most.held(m, push.read.read)
	}
	if err != nil {
		return nil, err
	}
	policy := r.from.policy(r.options.Policy)
	s, err := newSnapshot(m, policy, func() bool { return t.ctx.Err() != nil })
	if err != nil || r.options.Observer == nil {
		return s, err
	}
	to := r.options.Observer.Opened(t.ctx, &Opening{
		Path: r.from.path, User: r.user, PolicyName: r.from.Policy, Policy: policy, Model: m, Basis: s.wire.Basis(), Ask: s.wire.Do,
		Began: r.begun, Took: time.Since(r.begun),
	})
	if to != nil {
		s.record = &record{to: to, wire: s.wire}
	}
	return s, nil
}

// Paths lists the paths that are answered, sorted.
func (h *Handler) Paths() []string {
	paths := make([]string, 0, len(h.schedulers))
	for path := range h.schedulers {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}
