package extender

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Options of a Handler. Schedulers and Policy are needed.
type Options struct {
	// Schedulers by URL path, such as "/volcano": what extender.urlPrefix of each scheduler ends in. A path is for one scheduler alone.
	Schedulers map[string]Scheduler
	// Policy returns the policy of a name, or nil. It is asked at every push, so that a policy may change from one session to the next.
	Policy func(name string) *apportionv1.Policy
	// Wait is how long a question waits for the snapshot of a push to be built. 0: 500 ms.
	Wait time.Duration
	// PushBytes bounds the body of an onSessionOpen, and of every question that is read as it arrives. 0: 1 GiB.
	PushBytes int64
	// BufferBytes is how much of a push may have arrived that is not read yet; beyond it the scheduler waits. 0: 16 MiB.
	BufferBytes int64
	// Requests bounds those under way at a time; more wait for their turn, and are left to Volcano if it does not come within Wait. 0: 256.
	Requests int
	// VictimBytes bounds the body of a preemptable or reclaimable, which is kept in memory until it is answered. 0: 64 MiB.
	VictimBytes int64
	// Limits bounds what a push may hold, as it bounds a snapshot of the contract; 0 is no bound.
	Limits wire.Limits
	// PushMemory bounds what a push is estimated to take in memory, from when it is read until its session is over. 0: 2 GiB.
	PushMemory int64
	// QuestionMemory bounds what all questions under way keep of their bodies, beside those that VictimBytes bounds. 0: 256 MiB.
	QuestionMemory int64
	// Authorize reports whether a user with a password may ask. nil: every user may.
	Authorize func(user, password string) bool
	// Observer receives what is decided. nil: there is none.
	Observer Observer
	// Now is the clock that snapshots are dated by: a push has no time of its own. nil: time.Now.
	Now func() time.Time
	// Logger of faults, and, at the debug level, of every decision. nil: nothing is logged.
	Logger *slog.Logger
	// Tracer receives a span for each request, and one for what becomes of a push. nil: nothing is traced.
	Tracer trace.TracerProvider
	// Registerer receives the metrics. nil: they are not exported.
	Registerer prometheus.Registerer
}

// Scheduler is who asks at a path.
type Scheduler struct {
	// Policy is the name of the policy that decides.
	Policy string
	// Shadow decides, logs at the info level and counts, and leaves every decision to Volcano.
	Shadow bool
}

const (
	defaultWait        = 500 * time.Millisecond
	defaultPushBytes   = 1 << 30
	defaultBufferBytes = 16 << 20
	defaultVictimBytes = 64 << 20
	defaultRequests    = 256
	defaultPushMemory  = 2 << 30
	defaultKept        = 256 << 20
	// answerBytes is what Volcano reads of an answer: 10 MiB, of which some are left for what is around the victims.
	answerBytes = 10<<20 - 1<<10
	// victimQuestions bounds how many bodies of VictimBytes are in memory at once.
	victimQuestions = 4
)

func (o *Options) complete() {
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.PushBytes <= 0 {
		o.PushBytes = defaultPushBytes
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = defaultBufferBytes
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
