package service

import (
	"context"
	"log/slog"
	"maps"
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

// Options of a Server; the zero value is usable.
type Options struct {
	// Policies that requests may name.
	Policies map[string]*apportionv1.Policy
	// Permit returns an error, a *wire.Fault to be told, if the caller of a context may not name a cluster. nil: everybody may name any.
	Permit func(ctx context.Context, cluster string) error
	// Observers are told what was decided.
	Observers []Observer

	// AnswerBytes bounds one answer. 0: wire.DefaultAnswerBytes.
	AnswerBytes int
	// ExplainBytes bounds the answer to one step that asks for derivations. 0: wire.DefaultExplainBytes.
	ExplainBytes int
	// UndoBytes bounds what a call or session remembers for rollbacks. 0: wire.DefaultUndoBytes.
	UndoBytes int64
	// CallTime bounds a unary call, and each batch of a session, whatever deadline its caller sets. 0: a minute; below 0: nothing.
	CallTime time.Duration
	// SnapshotBytes bounds a snapshot sent in chunks, ReceivingBytes all that are being received at a time. 0: 1 GiB and 4 GiB.
	SnapshotBytes, ReceivingBytes int64
	// UploadTime bounds how long a snapshot may take to come in chunks. 0: 5 minutes; below 0: any time.
	UploadTime time.Duration
	// CacheBytes bounds the snapshots held, IdentityBytes those of one identity, as compiled. 0: 4 GiB and half of CacheBytes.
	CacheBytes, IdentityBytes int64

	// Sessions bounds the sessions open at a time. 0: 1,000.
	Sessions int
	// IdentitySessions bounds the sessions of one identity. 0: half of Sessions, at least 1.
	IdentitySessions int
	// SessionBytes bounds what open sessions take: what is compiled for them, and what they change. 0: 2 GiB.
	SessionBytes int64
	// SessionTime ends a session after this long, SessionIdle one whose client has said nothing for this long. 0: 24 hours and 15 minutes;
	// below 0: never.
	SessionTime, SessionIdle time.Duration
	// PendingBatches is how many batches of a session may be unanswered. 0: 64.
	PendingBatches int

	// Limits of what a request may hold.
	Limits Limits
	// Overload says how work is admitted.
	Overload admission.Options

	// RequestBytes bounds one message received, decompressed. 0: 16 MiB.
	RequestBytes int
	// HeaderBytes bounds the headers of one call. 0: 64 KiB.
	HeaderBytes uint32
	// MessageTime bounds how long the message of a unary call may take to come. 0: half a minute.
	MessageTime time.Duration
	// HandshakeTime bounds how long a new connection may take to become one, TLS included. 0: 10 seconds.
	HandshakeTime time.Duration
	// ConnectionStreams bounds the calls on one connection at a time. 0: 1,000.
	ConnectionStreams uint32
	// ConnectionAge makes clients connect anew after this long, so that new replicas get their part. 0: never.
	ConnectionAge time.Duration
	// ConnectionGrace is how long calls under way on a connection of that age may go on. 0: until they end.
	ConnectionGrace time.Duration
	// ConnectionIdle closes connections without calls after this long. 0: never.
	ConnectionIdle time.Duration
	// ConnectionPing is how long a client may say nothing before it is asked whether it still lives. 0: a minute.
	ConnectionPing time.Duration
	// DrainDelay is how long the server still takes calls after its health says NOT_SERVING. 0: not at all.
	DrainDelay time.Duration
	// DrainTime is how long calls under way may then take to end by themselves. 0: 25 seconds.
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

func (o *Options) complete() {
	if o.CallTime == 0 {
		o.CallTime = time.Minute
	}
	o.SnapshotBytes = orDefault(o.SnapshotBytes, 1<<30)
	o.ReceivingBytes = orDefault(o.ReceivingBytes, 4<<30)
	o.CacheBytes = orDefault(o.CacheBytes, 4<<30)
	o.IdentityBytes = orDefault(o.IdentityBytes, o.CacheBytes/2)
	o.SessionBytes = orDefault(o.SessionBytes, 2<<30)
	o.Sessions = orDefault(o.Sessions, 1000)
	o.PendingBatches = orDefault(o.PendingBatches, 64)
	o.IdentitySessions = orDefault(o.IdentitySessions, max(o.Sessions/2, 1))
	if o.SessionTime == 0 {
		o.SessionTime = 24 * time.Hour
	}
	if o.SessionIdle == 0 {
		o.SessionIdle = 15 * time.Minute
	}
	if o.UploadTime == 0 {
		o.UploadTime = 5 * time.Minute
	}
	o.RequestBytes = orDefault(o.RequestBytes, 16<<20)
	o.HeaderBytes = orDefault(o.HeaderBytes, 64<<10)
	o.MessageTime = orDefault(o.MessageTime, 30*time.Second)
	o.HandshakeTime = orDefault(o.HandshakeTime, 10*time.Second)
	o.ConnectionStreams = orDefault(o.ConnectionStreams, 1000)
	o.ConnectionPing = orDefault(o.ConnectionPing, time.Minute)
	o.DrainTime = orDefault(o.DrainTime, 25*time.Second)
	o.Limits.complete()
	o.Overload.Complete()
	o.Policies = maps.Clone(o.Policies)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
}

func orDefault[N int | int64 | uint32 | time.Duration](given, otherwise N) N {
	if given <= 0 {
		return otherwise
	}
	return given
}

// Limits bounds what one request, or one batch of a session, may hold. Each is known by its field's name in snake case, which an error
// tells with the value and the maximum.
type Limits struct {
	// Dimensions, Nodes, Queues, Jobs, Groups and Tasks bound a snapshot, and what a batch of steps adds to it; QueueDepth how deep queues
	// are nested, TextBytes each name and uid, NodeSets the node sets. 0: 64, 1,000,000, 100,000, 2,000,000, 4,000,000, 10,000,000, 1,000,
	// 4 KiB and 100,000.
	wire.Limits

	// Steps of one call or batch. 0: 100,000.
	Steps int64
	// QuestionBytes is all of a message but its snapshot: questions, steps, the policy. 0: 2 MiB.
	QuestionBytes int64
	// PolicyBytes bounds a policy. 0: 64 KiB.
	PolicyBytes int64
	// Chunks of one snapshot. 0: 100,000.
	Chunks int64
}

func (l *Limits) complete() {
	l.Dimensions = orDefault(l.Dimensions, 64)
	l.Nodes = orDefault(l.Nodes, 1_000_000)
	l.NodeSets = orDefault(l.NodeSets, 100_000)
	l.Queues = orDefault(l.Queues, 100_000)
	l.QueueDepth = orDefault(l.QueueDepth, 1000)
	l.Jobs = orDefault(l.Jobs, 2_000_000)
	l.Groups = orDefault(l.Groups, 4_000_000)
	l.Tasks = orDefault(l.Tasks, 10_000_000)
	l.TextBytes = orDefault(l.TextBytes, 4<<10)
	l.Steps = orDefault(l.Steps, 100_000)
	l.QuestionBytes = orDefault(l.QuestionBytes, 2<<20)
	l.PolicyBytes = orDefault(l.PolicyBytes, 64<<10)
	l.Chunks = orDefault(l.Chunks, 100_000)
}
