// Package service is the gRPC edge: it turns requests into sessions of package wire, and errors into statuses, keeps limits, and starts and
// stops the server. It contains no decisions.
//
//	server, err := service.New(service.Options{Policies: policies})
//	err = server.Serve(ctx, listener)
//
// A unary call passes these files: admit (headers), handler, message (bytes), decode (request), intercept, unary, open (session on the
// snapshot), response (encoding). Package admission decides when its work may begin and how much memory it may hold.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/buffer"
	"github.com/apportion/apportion/service/connection"
)

// Server answers the calls of the contract, and serves them on listeners from readiness to the last call. It is safe for concurrent use.
type Server struct {
	options Options
	log     *slog.Logger
	rules   atomic.Pointer[map[string]rule]

	metrics *metrics
	calls   *calls

	unary  []grpc.UnaryServerInterceptor
	health *health.Server
	// services and methods hold the full names of all that is served, services in ascending order.
	services []string
	methods  map[string]bool

	admission *admission.Controller
	inbox     *inbox
	outbox    *outbox
	receiving *admission.Budget
	sessions  admission.Counts
	// watches counts the streams of health and reflection.
	watches       admission.Counts
	sessionMemory *sessionMemory
	// late ends the calls whose messages do not come within MessageTime, answering those that are not answered within CallTime.
	late, answering overdue
	digests         policyDigests
	// connections are what listeners accept.
	connections *connection.Bounds
	// numbered counts the sessions that observers received.
	numbered  atomic.Uint64
	cache     *cache
	compiling singleflight.Group
	// kept holds a map[string]*Kept by name, which is replaced while keptMutex is held.
	kept      atomic.Value
	keptMutex sync.Mutex
	// ledgers holds a *remembered by name.
	ledgers sync.Map

	draining  chan struct{}
	drainOnce sync.Once
	drainEnd  time.Time
}

// rule is a policy to decide by.
type rule struct {
	policy *apportionv1.Policy
	digest string
	// source is where a named policy comes from.
	source apportionv1.PolicySource
}

// SetPolicies replaces all named policies at once, or none if any is invalid. The presets keep their names, unless a policy has the name of
// one. Running calls and sessions keep their policies.
func (s *Server) SetPolicies(policies map[string]*apportionv1.Policy) error {
	rules := make(map[string]rule, len(policies))
	var faults []error
	for name := range catalogue.Presets() {
		preset, _ := catalogue.Preset(name)
		rules[name] = rule{preset, decode.PolicyDigest(preset), apportionv1.PolicySource_POLICY_SOURCE_PRESET}
	}
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		p := policies[name]
		if _, err := decode.Policy(p); err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", name, err))
		}
		rules[name] = rule{p, decode.PolicyDigest(p), apportionv1.PolicySource_POLICY_SOURCE_CONFIGURED}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	s.rules.Store(&rules)
	return nil
}

// Registry returns the metrics.
func (s *Server) Registry() *prometheus.Registry { return s.options.Registry }

// Ready reports whether the server accepts calls, as its health does.
func (s *Server) Ready() bool {
	response, err := s.health.Check(context.Background(), &healthv1.HealthCheckRequest{})
	return err == nil && response.GetStatus() == healthv1.HealthCheckResponse_SERVING
}

func (s *Server) setHealth(status healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", status)
	for _, service := range described {
		s.health.SetServingStatus(service.ServiceName, status)
	}
}

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

// New returns a server that is not ready yet, or an error about the named policies.
//
//nolint:gocritic // Options are given once.
func New(options Options) (*Server, error) {
	options.complete()
	s := &Server{options: options, log: options.Logger, health: health.NewServer(), draining: make(chan struct{})}
	s.kept.Store(map[string]*Kept{})
	o := &s.options
	if err := s.SetPolicies(o.Policies); err != nil {
		return nil, err
	}
	const receiving = "being received"
	s.admission = admission.New(o.Overload)
	s.receiving = admission.NewBudget(admission.BudgetOptions{
		Name: "receiving_bytes", Bytes: int64(o.Limit.ReceivingBytes), Retry: time.Second, Purpose: receiving,
	})
	s.sessionMemory = newSessionMemory(int64(o.Limit.SessionBytes))
	s.inbox = &inbox{
		budget: admission.NewBudget(admission.BudgetOptions{
			Name: "overload.receiving", Bytes: int64(o.Overload.Receiving), Retry: o.Overload.Wait, Purpose: receiving,
		}),
		maximum: int64(o.Limit.MessageBytes), patience: o.Overload.Wait, limits: &o.Limit, small: small(&o.Limit),
	}
	s.outbox = &outbox{
		budget: admission.NewBudget(admission.BudgetOptions{
			Name: "overload.answers", Bytes: int64(o.Overload.Answers), Retry: o.Overload.Wait, Purpose: "not read by clients",
		}),
		patience: o.Overload.Wait,
	}
	s.late.limit, s.answering.limit = o.Deadline.Message, o.Deadline.Call
	s.metrics = newMetrics(s)
	s.connections = &connection.Bounds{
		Streams: o.Connection.Streams, Resets: o.Connection.Resets, Answer: o.Deadline.Answer, Log: s.log,
		Untaken: s.metrics.untaken, Reset: s.metrics.reset,
	}
	s.cache = newCache(int64(o.Limit.CacheBytes), int64(o.Limit.IdentityBytes), max(2, processor.Count()), s.metrics.evicted.Inc)
	o.Registry.MustRegister(s.metrics.collectors...)
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	s.unary = s.unaryChain()
	services := s.register(grpc.NewServer()).GetServiceInfo()
	s.services, s.methods = slices.Sorted(maps.Keys(services)), methodsOf(services)
	s.calls = newCalls(s.meter(), s.methods, s.log)
	return s, nil
}

// register lets a server of gRPC serve what this one does.
func (s *Server) register(server *grpc.Server) *grpc.Server {
	for _, service := range described {
		server.RegisterService(s.served(service), s.Direct())
	}
	healthv1.RegisterHealthServer(server, s.health)
	if !s.options.NoReflection {
		reflection.Register(server)
	}
	return server
}

// workers is the number of goroutines that are reused for calls, so that their stacks have grown to the depth of a call: two for each
// processor, so that few of them are idle. Each further call that is open has a goroutine of its own.
func workers() uint32 { return uint32(2 * processor.Count()) }

// clientPings is the minimum time between two pings of a client, so that clients may ping every second to find a replica that is stopped.
const clientPings = 500 * time.Millisecond

func (s *Server) grpcOptions() []grpc.ServerOption {
	o := &s.options
	return append(append(s.traces(), s.chain()...),
		grpc.InTapHandle(s.arrived),
		grpc.ForceServerCodecV2(newCodec(s.outbox)),
		grpc.MaxRecvMsgSize(otherMessageBytes),
		// gRPC clears the memory of its own pool before it reads a frame into it.
		experimental.BufferPool(&buffer.Messages),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		// The size of an answer is bounded where the answer is made, with an error that says which selection to narrow.
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(uint32(o.Connection.Streams)),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPings, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: o.Connection.Age, MaxConnectionAgeGrace: o.Connection.Grace, MaxConnectionIdle: o.Connection.Idle,
			Time: o.Connection.Ping,
		}),
		grpc.ConnectionTimeout(o.Deadline.Handshake),
		grpc.MaxHeaderListSize(uint32(o.Limit.HeaderBytes)),
		grpc.NumStreamWorkers(workers()),
		grpc.WaitForHandlers(true))
}

// Serve serves until ctx ends, and then drains: health returns NOT_SERVING, then new calls are rejected, then running calls have DrainTime
// to complete. It returns nil after a drain, and otherwise the error of a listener. It may be called once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	// Made here because its workers run until it stops.
	server := s.register(grpc.NewServer(append(s.grpcOptions(), s.options.Transport...)...))
	serving, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	// Set before connections are accepted, because a client may ask at once.
	s.setHealth(healthv1.HealthCheckResponse_SERVING)
	for _, l := range listeners {
		serving.Go(func() error {
			err := server.Serve(s.connections.Listen(l))
			if errors.Is(err, grpc.ErrServerStopped) {
				// The drain came first.
				return nil
			}
			return err
		})
	}
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	s.health.Shutdown()
	s.warnSessions(s.options.Drain.Delay + s.options.Drain.Time)
	select {
	case <-time.After(s.options.Drain.Delay):
	case <-failed.Done():
	}
	// Calls end by themselves; after DrainTime they are ended.
	force := time.AfterFunc(s.options.Drain.Time, server.Stop)
	defer force.Stop()
	server.GracefulStop()
	return serving.Wait()
}

// warnSessions asks the client of every session to open it again on another replica; within is the time until this server ends it.
func (s *Server) warnSessions(within time.Duration) {
	s.drainOnce.Do(func() {
		s.drainEnd = time.Now().Add(within)
		close(s.draining)
	})
}
