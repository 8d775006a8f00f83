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
	"github.com/apportion/apportion/internal/setting"
)

// Options of a Server. The zero value is usable: a setting that is zero has its default, unless zero is allowed for it and means none.
// Limit.UploadTime, Limit.SessionTime, Limit.SessionIdle and Deadline.Call below 0 mean no limit; Limit.IdentityBytes and
// Limit.IdentitySessions default to half of a given Limit.CacheBytes and Limit.Sessions.
type Options struct {
	// Policies by name, for requests.
	Policies map[string]*apportionv1.Policy
	// Permit returns an error, a *decode.Fault to be sent, if the caller of a context may not use a cluster. nil: all callers may use all
	// clusters.
	Permit func(ctx context.Context, cluster string) error
	// PermitSnapshot returns an error, a *decode.Fault to be sent, if the caller of a context may not use a maintained snapshot. nil: all
	// callers may.
	PermitSnapshot func(ctx context.Context, name string) error
	// Own returns a function that reports whether the caller of a context owns a queue: in snapshots that the server maintains, such a
	// caller sees its queues, those below them, and the sums of all other queues. The returned function is nil for a caller that may see
	// everything. nil: all callers may.
	Own func(ctx context.Context) func(queue string) bool
	// Observers receive decisions, except answers that are restricted to the caller's own queues.
	Observers []Observer

	// Limit, Overload, Deadline, Connection and Drain are the settings of these names. Connection.Maximum and Connection.AddressMaximum are
	// for listeners; the server does not use them.
	Limit      setting.Limit
	Overload   setting.Overload
	Deadline   setting.Deadline
	Connection setting.Connection
	Drain      setting.Drain
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

// complete replaces absent options by their defaults.
func (o *Options) complete() {
	if o.Limit.IdentityBytes <= 0 && o.Limit.CacheBytes > 0 {
		o.Limit.IdentityBytes = o.Limit.CacheBytes / 2
	}
	if o.Limit.IdentitySessions <= 0 && o.Limit.Sessions > 0 {
		o.Limit.IdentitySessions = max(o.Limit.Sessions/2, 1)
	}
	for _, d := range []*time.Duration{
		&o.Overload.Wait, &o.Deadline.Message, &o.Deadline.Answer, &o.Deadline.Handshake, &o.Connection.Ping, &o.Drain.Time,
	} {
		*d = max(*d, 0)
	}
	setting.Complete(&o.Limit)
	setting.Complete(&o.Overload)
	setting.Complete(&o.Deadline)
	setting.Complete(&o.Connection)
	setting.Complete(&o.Drain)
	o.Policies = maps.Clone(o.Policies)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
}
