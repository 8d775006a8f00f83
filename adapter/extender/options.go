package extender

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
)

// Options of a Handler. Schedulers and Policy are needed.
type Options struct {
	// Schedulers by URL path, such as "/volcano": the path of the scheduler's extender.urlPrefix. Each scheduler needs its own path.
	Schedulers map[string]Scheduler
	// Policy returns the policy of a name, or nil. It is called at every push, so that a policy may change from one session to the next.
	Policy func(name string) *apportionv1.Policy
	// Wait limits the time that a question waits for the snapshot of a push. 0: 500 ms.
	Wait time.Duration
	// PushBytes bounds the body of an onSessionOpen, and of every question that is decoded while it arrives. 0: 1 GiB.
	PushBytes int64
	// BufferBytes bounds the bytes of a push that have arrived and are not yet decoded; the scheduler waits beyond it. 0: 16 MiB.
	BufferBytes int64
	// Requests bounds the questions that are decided at a time. Others wait, and are left to Volcano if they cannot begin within Wait.
	// A question takes no place before it has arrived whole. 0: 256.
	Requests int
	// VictimBytes bounds the body of a preemptable or reclaimable, which is kept in memory until it is answered. 0: 64 MiB.
	VictimBytes int64
	// Limits bounds the contents of a push, as those of a snapshot of the contract; 0 is no limit.
	Limits decode.Limits
	// PushMemory bounds the estimated memory of a push, from its arrival to the end of its session. 0: 2 GiB.
	PushMemory int64
	// QuestionMemory bounds the memory of the bodies of concurrent questions, except those that VictimBytes bounds. 0: 256 MiB.
	QuestionMemory int64
	// Authorize reports whether a user with a password may ask. nil: every user may.
	Authorize func(user, password string) bool
	// Observer receives the decisions. nil: there is none.
	Observer Observer
	// Now is the clock for the time of snapshots: a push does not contain a time. nil: time.Now.
	Now func() time.Time
	// Logger receives errors and, at debug level, every decision. nil: nothing is logged.
	Logger *slog.Logger
	// Tracer receives a span for each request and one for each build of a snapshot. nil: nothing is traced.
	Tracer trace.TracerProvider
	// Registerer receives the metrics. nil: they are not exported.
	Registerer prometheus.Registerer
}

// Scheduler is the configuration of one path.
type Scheduler struct {
	// Policy is the name of the policy.
	Policy string
	// Shadow mode computes, logs (at info level) and counts decisions, and leaves every decision to Volcano.
	Shadow bool
}

const (
	defaultPushBytes   = 1 << 30
	defaultVictimBytes = 64 << 20
	defaultRequests    = 256
	defaultPushMemory  = 2 << 30
	defaultKept        = 256 << 20
	// answerBytes bounds the victims in an answer. Volcano reads 10 MiB; the difference is for the enclosing JSON.
	answerBytes = 10<<20 - 1<<10
	// bodiesAtOnce bounds the memory of bodies: so many of VictimBytes each fit into it, or more smaller ones.
	bodiesAtOnce = 4
)

func (o *Options) complete() {
	settings := setting.Default[setting.Extender]()
	if o.Wait <= 0 {
		o.Wait = settings.Wait
	}
	if o.PushBytes <= 0 {
		o.PushBytes = defaultPushBytes
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = int64(settings.BufferBytes)
	}
	if o.VictimBytes <= 0 {
		o.VictimBytes = defaultVictimBytes
	}
	if o.PushMemory <= 0 {
		o.PushMemory = defaultPushMemory
	}
	if o.QuestionMemory <= 0 {
		o.QuestionMemory = defaultKept
	}
	if o.Requests <= 0 {
		o.Requests = defaultRequests
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
