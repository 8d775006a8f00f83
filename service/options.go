package service

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/wire"
)

// Options of a Server. The zero value is usable: what is zero has the value of DefaultOptions, but for the times of which zero means none
// or never, as their comments say.
type Options struct {
	// Policies that requests may name.
	Policies map[string]*apportionv1.Policy
	// Permit returns an error, a *wire.Fault to be told, if the caller of a context may not name a cluster. nil: everybody may name any.
	Permit func(ctx context.Context, cluster string) error
	// PermitSnapshot returns an error, a *wire.Fault to be told, if the caller of a context may not ask about a kept snapshot of a name.
	// nil: every caller may.
	PermitSnapshot func(ctx context.Context, name string) error
	// Own returns whether the caller of a context owns a queue: of snapshots that the server holds for others it then sees its queues, those
	// below them, and the sums of all other queues. The function that is returned is nil for a caller who may see everything. nil: every
	// caller may.
	Own func(ctx context.Context) func(queue string) bool
	// Observers are told what was decided. They are not told of answers that show a caller its own queues alone.
	Observers []Observer

	// AnswerBytes bounds one answer.
	AnswerBytes int
	// ExplainBytes bounds the answer to one step that asks for derivations.
	ExplainBytes int
	// Work bounds what opening a session, and then one call or batch, may cost, in the units of policy.Work.
	Work int64
	// UndoBytes bounds what a call or session remembers for rollbacks.
	UndoBytes int64
	// CallTime bounds a unary call, and each batch of a session, whatever deadline its caller sets. Below 0: nothing.
	CallTime time.Duration
	// SnapshotBytes bounds a snapshot sent in chunks, ReceivingBytes all that are being received at a time.
	SnapshotBytes, ReceivingBytes int64
	// UploadTime bounds how long a snapshot may take to come in chunks. Below 0: any time.
	UploadTime time.Duration
	// CacheBytes bounds the snapshots held, IdentityBytes those of one identity, as compiled. IdentityBytes is half of a
	// CacheBytes that is given without it.
	CacheBytes, IdentityBytes int64

	// Sessions bounds the sessions open at a time.
	Sessions int
	// IdentitySessions bounds the sessions of one identity. It is half of Sessions where these are given without it.
	IdentitySessions int
	// SessionBytes bounds what open sessions take: what is compiled for them, and what they change.
	SessionBytes int64
	// SessionTime ends a session after this long, SessionIdle one whose client has said nothing for this long.
	// Below 0: never.
	SessionTime, SessionIdle time.Duration
	// PendingBatches is how many batches of a session may be unanswered.
	PendingBatches int

	// Limits of what a request may hold.
	Limits Limits
	// Overload says how work is admitted.
	Overload admission.Options

	// RequestBytes bounds one message received, decompressed.
	RequestBytes int
	// HeaderBytes bounds the headers of one call.
	HeaderBytes uint32
	// MessageTime bounds how long the message of a unary call may take to come.
	MessageTime time.Duration
	// AnswerTime bounds how long a client may take to read an answer. Its connection is closed then.
	AnswerTime time.Duration
	// HandshakeTime bounds how long a new connection may take to become one, TLS included.
	HandshakeTime time.Duration
	// ConnectionStreams bounds the calls on one connection at a time.
	ConnectionStreams uint32
	// ConnectionResets is how many calls of a connection may be reset by the client, or refused by their headers, each second on average.
	// A connection with more is closed.
	ConnectionResets int
	// HealthWatches bounds the streams of health and reflection at a time.
	HealthWatches int
	// ConnectionAge makes clients connect anew after this long, so that new replicas get their part. 0: never.
	ConnectionAge time.Duration
	// ConnectionGrace is how long calls under way on a connection of that age may go on. 0: until they end.
	ConnectionGrace time.Duration
	// ConnectionIdle closes connections without calls after this long. 0: never.
	ConnectionIdle time.Duration
	// ConnectionPing is how long a client may say nothing before it is asked whether it still lives.
	ConnectionPing time.Duration
	// DrainDelay is how long the server still takes calls after its health says NOT_SERVING. 0: not at all.
	DrainDelay time.Duration
	// DrainTime is how long calls under way may then take to end by themselves.
	DrainTime time.Duration
	// NoReflection leaves gRPC reflection out.
	NoReflection bool

	// Logger of calls and of faults of the server itself. nil: nothing is logged.
	Logger *slog.Logger
	// Registry receives the metrics. nil: a new one.
	Registry *prometheus.Registry
	// Meter receives gRPC's own metrics. nil: they go to Registry.
	Meter metric.MeterProvider
	// Tracer receives a span for each call, and Propagator reads whose part it is. nil: nothing is traced.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
	// Tap is asked, in order, when the headers of a call have come and before any message is read; health is exempt. Each returns the
	// context of the call, or an error that refuses it. They must be quick: a connection waits for them.
	Tap []tap.ServerInHandle
	// Unary and Stream are interceptors within those of the server: who calls, and what he may.
	Unary  []grpc.UnaryServerInterceptor
	Stream []grpc.StreamServerInterceptor
	// Transport are further options, such as credentials.
	Transport []grpc.ServerOption
}

// DefaultOptions returns the limits and times of a server where nothing else is said. Configuration shows these.
func DefaultOptions() Options {
	return Options{
		AnswerBytes: wire.DefaultAnswerBytes, ExplainBytes: wire.DefaultExplainBytes, UndoBytes: wire.DefaultUndoBytes,
		Work:          wire.DefaultWork,
		CallTime:      time.Minute,
		SnapshotBytes: 1 << 30, ReceivingBytes: 4 << 30, UploadTime: 5 * time.Minute,
		CacheBytes: 4 << 30, IdentityBytes: 2 << 30,
		Sessions: 1000, IdentitySessions: 500, SessionBytes: 2 << 30,
		SessionTime: 24 * time.Hour, SessionIdle: 15 * time.Minute, PendingBatches: 64,
		Limits: Limits{
			Limits: wire.Limits{
				Dimensions: 64, Nodes: 1_000_000, NodeSets: 100_000, Queues: 100_000, QueueDepth: 1000, Jobs: 2_000_000, Groups: 4_000_000,
				Tasks: 10_000_000, TextBytes: 4 << 10,
			},
			Steps: 100_000, QuestionBytes: 2 << 20, PolicyBytes: 64 << 10, Chunks: 100_000,
		},
		Overload:     admission.DefaultOptions(),
		RequestBytes: 16 << 20, HeaderBytes: 64 << 10, MessageTime: 30 * time.Second, AnswerTime: time.Minute,
		HandshakeTime:     10 * time.Second,
		ConnectionStreams: 1000, ConnectionResets: 200, HealthWatches: 4000,
		ConnectionAge: 30 * time.Minute, ConnectionIdle: 15 * time.Minute, ConnectionPing: time.Minute,
		DrainDelay: 5 * time.Second, DrainTime: 25 * time.Second,
	}
}

// complete replaces what is not given by its default, except where zero means none.
func (o *Options) complete() {
	if o.IdentityBytes <= 0 && o.CacheBytes > 0 {
		o.IdentityBytes = o.CacheBytes / 2
	}
	if o.IdentitySessions <= 0 && o.Sessions > 0 {
		o.IdentitySessions = max(o.Sessions/2, 1)
	}
	for _, d := range []*time.Duration{&o.MessageTime, &o.AnswerTime, &o.HandshakeTime, &o.ConnectionPing, &o.DrainTime} {
		*d = max(*d, 0)
	}
	defaults := DefaultOptions()
	defaults.ConnectionAge, defaults.ConnectionIdle, defaults.DrainDelay = 0, 0, 0
	complete(reflect.ValueOf(o).Elem(), reflect.ValueOf(defaults))
	o.Overload.Complete()
	o.Policies = maps.Clone(o.Policies)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
}

// complete replaces numbers that are not above zero, and times that are zero. A time below zero means never.
func complete(v, defaults reflect.Value) {
	for i := range v.NumField() {
		switch f, otherwise := v.Field(i), defaults.Field(i); {
		case f.Kind() == reflect.Struct:
			complete(f, otherwise)
		case f.CanInt() && f.Int() == 0, f.CanInt() && f.Int() < 0 && f.Type() != reflect.TypeFor[time.Duration](),
			f.CanUint() && f.Uint() == 0:
			f.Set(otherwise)
		}
	}
}

// Limits bounds what one request, or one batch of a session, may hold. Each is known by its field's name in snake case, which an error
// tells with the value and the maximum.
type Limits struct {
	// Dimensions, Nodes, Queues, Jobs, Groups and Tasks bound a snapshot, and what a batch of steps adds to it; QueueDepth how deep queues
	// are nested, TextBytes each name and uid, NodeSets the node sets.
	wire.Limits

	// Steps of one call or batch.
	Steps int64
	// QuestionBytes is all of a message but its snapshot: questions, steps, the policy.
	QuestionBytes int64
	// PolicyBytes bounds a policy.
	PolicyBytes int64
	// Chunks of one snapshot.
	Chunks int64
}
