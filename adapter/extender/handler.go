package extender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Handler answers the extender plugins of any number of schedulers.
type Handler struct {
	options    Options
	log        *slog.Logger
	schedulers map[string]*scheduler
	metrics    *metrics
	// victims bounds the questions about victims under way.
	victims chan struct{}
}

// New returns a handler, or what is wrong with the options.
func New(options Options) (*Handler, error) {
	options.complete()
	h := &Handler{
		options: options, log: options.Logger, schedulers: make(map[string]*scheduler, len(options.Schedulers)),
		victims: make(chan struct{}, victimQuestions),
	}
	if len(options.Schedulers) == 0 {
		return nil, errors.New("no scheduler is named")
	}
	for path, given := range options.Schedulers {
		path = strings.TrimRight(path, "/")
		s := &scheduler{path: path, Scheduler: given}
		switch {
		case path != "" && path[0] != '/':
			return nil, fmt.Errorf("the path %q of a scheduler does not begin with /", path)
		case h.schedulers[path] != nil:
			return nil, fmt.Errorf("the path %q is given to two schedulers", path)
		case options.Policy == nil || options.Policy(given.Policy) == nil:
			return nil, fmt.Errorf("%s: no policy %q is configured", path, given.Policy)
		}
		if _, err := s.rule(options.Policy); err != nil {
			return nil, fmt.Errorf("policy %q: %w", given.Policy, err)
		}
		h.schedulers[path] = s
	}
	h.metrics = newMetrics(options.Registerer)
	return h, nil
}

// request is one request on its way to an answer.
type request struct {
	*Handler
	http.ResponseWriter

	in    *http.Request
	from  *scheduler
	verb  verb
	begun time.Time
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
		http.Error(w, "not for you", http.StatusUnauthorized)
		return
	}
	r := &request{Handler: h, ResponseWriter: w, in: in, from: from, verb: name, begun: time.Now()}
	r.serve() //nolint:contextcheck // The context is that of the request.
}

func (h *Handler) authorized(in *http.Request) bool {
	if h.options.Authorize == nil {
		return true
	}
	user, password, ok := in.BasicAuth()
	return ok && h.options.Authorize(user, password)
}

// serve answers whatever happens: a panic in here must neither end this process nor reach Volcano as an error.
func (r *request) serve() {
	defer func() {
		if p := recover(); p != nil {
			r.recovered(p)
			r.abstain(panicked)
		}
		r.metrics.seconds.WithLabelValues(string(r.verb)).Observe(time.Since(r.begun).Seconds())
	}()
	limited := &limitedBody{from: r.in.Body, left: r.options.PushBytes}
	body := io.Reader(limited)
	var err error
	switch r.verb {
	case onSessionOpen:
		err = r.open(limited)
	case onSessionClose:
		r.from.close()
		r.answer("")
	case predicate:
		err = r.predicate(body)
	case prioritize:
		err = r.prioritize(body)
	case preemptable, reclaimable:
		err = r.evict(body)
	case queueOverused:
		err = r.queueOverused(body)
	case jobEnqueueable:
		err = r.jobEnqueueable(body)
	case jobReady:
		err = r.jobReady(body)
	case allocate, deallocate:
		err = r.event(body)
	}
	switch {
	case err == nil:
		r.count(outcomeOK)
	case errors.Is(err, errTooLarge) && r.verb != onSessionOpen:
		r.abstain(tooLarge)
	default:
		r.refuse(err)
	}
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
	r.log.Warn("a request cannot be read", "scheduler", r.from.path, "verb", string(r.verb), "error", err.Error())
	status := http.StatusBadRequest
	if errors.Is(err, errTooLarge) {
		status = http.StatusRequestEntityTooLarge
	}
	http.Error(r.ResponseWriter, err.Error(), status)
}

// answer sends an answer. The bytes that are left of the request are read first, because Volcano sends all of it before it listens.
func (r *request) answer(body string) { r.send([]byte(body)) }

func (r *request) send(body []byte) {
	if len(body) > 0 {
		r.Header().Set("Content-Type", "application/json")
	}
	r.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := r.Write(body); err != nil {
		r.log.Debug("an answer was not taken", "scheduler", r.from.path, "verb", string(r.verb), "error", err.Error())
	}
}

// abstain leaves a question to Volcano's other plugins.
func (r *request) abstain(reason string) {
	r.metrics.abstentions.WithLabelValues(r.from.path, string(r.verb), reason).Inc()
	r.log.Debug("abstained", "scheduler", r.from.path, "verb", string(r.verb), "reason", reason)
	r.answer(noOpinion[r.verb])
}

// decided counts and logs a decision, and sends it, unless the scheduler is only watched.
func (r *request) decided(body []byte, decision string, attrs ...slog.Attr) {
	r.metrics.decisions.WithLabelValues(r.from.path, string(r.verb), decision, strconv.FormatBool(r.from.Shadow)).Inc()
	level := slog.LevelDebug
	if r.from.Shadow {
		level = slog.LevelInfo
		body = []byte(noOpinion[r.verb])
	}
	attrs = append(attrs, slog.String("decision", decision), slog.String("scheduler", r.from.path), slog.String("verb", string(r.verb)))
	r.log.LogAttrs(r.in.Context(), level, "decided", attrs...)
	r.send(body)
}

// ask waits for the snapshot and asks it under its lock. It answers by itself where there is no snapshot, or ask knows no answer.
func (r *request) ask(ask func(s *snapshot) (known bool)) (answered bool) {
	s, reason := r.from.wait(r.in.Context(), r.options.Wait)
	if s == nil {
		r.abstain(reason)
		return false
	}
	if !s.locked(ask) {
		r.abstain(unknown)
		return false
	}
	return true
}

// locked runs a question under the lock of the snapshot, which is free afterwards even if it panics.
func (s *snapshot) locked(ask func(s *snapshot) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ask(s)
}

// open answers a push as soon as it has arrived, and makes its snapshot behind the answer.
func (r *request) open(body *limitedBody) error {
	t := r.from.begin(r.in.Context())
	asOf := r.options.Now().UnixNano()
	push, err := r.receive(t, body)
	switch {
	case err == nil:
		size := r.options.PushBytes - body.left
		r.metrics.pushBytes.WithLabelValues(r.from.path).Set(float64(size))
		r.metrics.pushSeconds.WithLabelValues(r.from.path).Observe(time.Since(r.begun).Seconds())
		go r.build(r.from, t, push, asOf)
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

// build makes the snapshot of a push that has arrived.
func (h *Handler) build(from *scheduler, t *turn, push *received, asOf int64) {
	begun := time.Now()
	var s *snapshot
	err := h.guarded(func() (err error) {
		s, err = h.snapshot(from, t, push, asOf)
		return err
	})
	if err != nil {
		s = nil
		if t.ctx.Err() == nil || !errors.Is(context.Cause(t.ctx), errOver) {
			h.log.Warn("a push cannot be decided about; every question of its session is left to Volcano",
				"scheduler", from.path, "error", err.Error())
		}
	}
	t.end(s)
	if s != nil {
		h.metrics.build.WithLabelValues(from.path).Observe(time.Since(begun).Seconds())
	}
}

func (h *Handler) snapshot(from *scheduler, t *turn, push *received, asOf int64) (*snapshot, error) {
	<-push.done
	if push.err != nil {
		return nil, push.err
	}
	m, err := push.read.build(asOf)
	if err != nil {
		return nil, err
	}
	rule, err := from.rule(h.options.Policy)
	if err != nil {
		return nil, err
	}
	s, err := newSnapshot(m, rule, func() bool { return t.ctx.Err() != nil })
	if err != nil {
		return nil, err
	}
	h.metrics.tasks.WithLabelValues(from.path).Set(float64(len(m.Tasks)))
	h.metrics.taken.WithLabelValues(from.path).Set(float64(asOf) / float64(time.Second))
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
