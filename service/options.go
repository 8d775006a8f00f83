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

// Options of a Server. The zero value is usable: a zero field has the value of DefaultOptions, except times for which the comment defines
// zero as none or never.
type Options struct {
	// Policies by name, for requests.
	Policies map[string]*apportionv1.Policy
	// Permit returns an error, a *wire.Fault to be sent, if the caller of a context may not use a cluster. nil: all callers may use all
	// clusters.
	Permit func(ctx context.Context, cluster string) error
	// PermitSnapshot returns an error, a *wire.Fault to be sent, if the caller of a context may not use a maintained snapshot. nil: all
	// callers may.
	PermitSnapshot func(ctx context.Context, name string) error
	// Own returns a function that reports whether the caller of a context owns a queue: in snapshots that the server maintains, such a
	// caller sees its queues, those below them, and the sums of all other queues. The returned function is nil for a caller that may see
	// everything. nil: all callers may.
	Own func(ctx context.Context) func(queue string) bool
	// Observers receive decisions, except answers that are restricted to the caller's own queues.
	Observers []Observer

	// AnswerBytes limits the size of one answer.
	AnswerBytes int
	// ExplainBytes limits the size of the answer to one step with derivations.
	ExplainBytes int
	// Work limits the cost of opening a session, and then of one call or batch, in the units of policy.Work.
	Work int64
	// UndoBytes limits the memory of a call or session for rollbacks.
	UndoBytes int64
	// CallTime limits the duration of a unary call, and of each batch of a session, regardless of the caller's deadline. Below 0: no limit.
	CallTime time.Duration
	// SnapshotBytes limits the size of a snapshot sent in chunks, ReceivingBytes the total size of all snapshots being received.
	SnapshotBytes, ReceivingBytes int64
	// UploadTime limits the duration of an upload. Below 0: no limit.
	UploadTime time.Duration
	// CacheBytes limits the compiled size of all stored snapshots, IdentityBytes that of one identity. IdentityBytes defaults to half of a
	// given CacheBytes.
	CacheBytes, IdentityBytes int64

	// Sessions limits the number of open sessions.
	Sessions int
	// IdentitySessions limits the open sessions of one identity. It defaults to half of a given Sessions.
	IdentitySessions int
	// SessionBytes limits the memory of open sessions: compiled models and changes.
	SessionBytes int64
	// SessionTime is the maximum duration of a session, SessionIdle the maximum time without a message from its client. Below 0: no limit.
	SessionTime, SessionIdle time.Duration
	// PendingBatches is the maximum number of unanswered batches of a session.
	PendingBatches int

	// Limits of the contents of a request.
	Limits Limits
	// Overload configures how work is admitted.
	Overload admission.Options

	// RequestBytes limits the decompressed size of one received message.
	RequestBytes int
	// HeaderBytes limits the size of the headers of one call.
	HeaderBytes uint32
	// MessageTime limits the time for the message of a unary call to arrive.
	MessageTime time.Duration
	// AnswerTime limits the time for a client to read an answer. After it the connection is closed.
	AnswerTime time.Duration
	// HandshakeTime limits the time to establish a connection, including TLS.
	HandshakeTime time.Duration
	// ConnectionStreams limits the number of concurrent calls on one connection.
	ConnectionStreams uint32
	// ConnectionResets is the number of calls of a connection that may be reset by the client, or refused because of their headers, per
	// second on average. A connection with more is closed.
	ConnectionResets int
	// HealthWatches limits the number of concurrent streams of health and reflection.
	HealthWatches int
	// ConnectionAge is the age at which clients must reconnect, so that new replicas get their share. 0: no limit.
	ConnectionAge time.Duration
	// ConnectionGrace is the time for running calls on a connection of that age to complete. 0: no limit.
	ConnectionGrace time.Duration
	// ConnectionIdle is the time after which a connection without calls is closed. 0: never.
	ConnectionIdle time.Duration
	// ConnectionPing is the time without data from a client after which the server sends a keepalive ping.
	ConnectionPing time.Duration
	// DrainDelay is the time for which the server still accepts calls after its health returns NOT_SERVING. 0: none.
	DrainDelay time.Duration
	// DrainTime is the time for running calls to complete after that.
	DrainTime time.Duration
	// NoReflection disables gRPC reflection.
	NoReflection bool

	// Logger of calls and of internal errors. nil: no log.
	Logger *slog.Logger
	// Registry of the metrics. nil: a new one.
	Registry *prometheus.Registry
	// Meter of gRPC's own metrics. nil: they go to Registry.
	Meter metric.MeterProvider
	// Tracer of a span for each call; Propagator extracts its parent. nil: no traces.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
	// Tap functions are called, in order, when the headers of a call have arrived and before any message is read, except for health. Each
	// returns the context of the call, or an error that refuses it. They must be fast, because they block the connection.
	Tap []tap.ServerInHandle
	// Unary and Stream are interceptors that run inside those of the server, for authentication and authorization.
	Unary  []grpc.UnaryServerInterceptor
	Stream []grpc.StreamServerInterceptor
	// Transport are further options, such as credentials. Interceptors among them must not keep responses, whose memory is used again.
	Transport []grpc.ServerOption
}

// DefaultOptions returns the default limits and times of a server, as shown by the configuration.
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

// Limits limits the contents of one request, or of one batch of a session. Errors contain the name of the field in snake case, the value
// and the maximum.
type Limits struct {
	// Dimensions, Nodes, Queues, Jobs, Groups and Tasks bound a snapshot, and what a batch of steps adds to it; QueueDepth how deep queues
	// are nested, TextBytes each name and uid, NodeSets the node sets.
	wire.Limits

	// Steps of one call or batch.
	Steps int64
	// QuestionBytes is the size of a message without its snapshot: questions, steps, the policy.
	QuestionBytes int64
	// PolicyBytes is the size of a policy.
	PolicyBytes int64
	// Chunks of one snapshot.
	Chunks int64
}
