package service

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// ServerOptions of a Server; the zero value is usable.
type ServerOptions struct {
	// RequestBytes bounds one message received, decompressed. 0: 16 MiB.
	RequestBytes int
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
	// HandshakeTime bounds how long a new connection may take to become one, TLS included. 0: 10 seconds.
	HandshakeTime time.Duration
	// MessageTime bounds how long the message of a unary call may take to come. 0: half a minute.
	MessageTime time.Duration
	// HeaderBytes bounds the headers of one call. 0: 64 KiB.
	HeaderBytes uint32
	// NoReflection leaves gRPC reflection out.
	NoReflection bool
	// DrainDelay is how long the server still takes calls after its health says NOT_SERVING. 0: not at all.
	DrainDelay time.Duration
	// DrainTime is how long calls under way may then take to end by themselves. 0: 25 seconds.
	DrainTime time.Duration
	// Logger of calls. nil: nothing is logged.
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

const (
	defaultRequestBytes      = 16 << 20
	defaultConnectionStreams = 1000
	defaultDrainTime         = 25 * time.Second
	defaultHandshakeTime     = 10 * time.Second
	defaultMessageTime       = 30 * time.Second
	defaultConnectionPing    = time.Minute
	defaultHeaderBytes       = 64 << 10
	// clientPings is how often a client may ask whether the connection still stands.
	clientPings = 10 * time.Second
)

var errPanicked = errors.New("panicked")

// Server serves a Service on listeners, from readiness to the last call.
type Server struct {
	service  *Service
	options  ServerOptions
	log      *slog.Logger
	registry *prometheus.Registry
	panics   prometheus.Counter
	taps     *taps
	unary    []grpc.UnaryServerInterceptor
	grpc     *grpc.Server
	health   *health.Server
	// sizes is what calls received.
	sizes sizes
}

// NewServer returns a server that is not ready yet.
func NewServer(service *Service, options ServerOptions) *Server {
	s := &Server{service: service, options: options, log: options.Logger, registry: options.Registry, health: health.NewServer()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	s.panics = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apportion_panics_recovered_total", Help: "Calls that ended in a panic.",
	})
	s.registry.MustRegister(s.panics)
	s.registry.MustRegister(service.metrics.collectors...)
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	s.taps = s.newTaps()
	s.grpc = grpc.NewServer(append(append(s.grpcOptions(), grpc.InTapHandle(s.taps.handle)), options.Transport...)...)
	s.service.inbox.maximum = int64(orDefault(options.RequestBytes, defaultRequestBytes))
	s.grpc.RegisterService(s.description(), service)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	if !options.NoReflection {
		reflection.Register(s.grpc)
	}
	s.taps.methods = methodsOf(s.grpc)
	return s
}

func (s *Server) grpcOptions() []grpc.ServerOption {
	o := &s.options
	return append(append(s.instruments(), s.chain()...),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(otherMessageBytes),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		// An answer is bounded where it is made, with an error that says what to narrow.
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(orDefault(o.ConnectionStreams, defaultConnectionStreams)),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPings, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: o.ConnectionAge, MaxConnectionAgeGrace: o.ConnectionGrace, MaxConnectionIdle: o.ConnectionIdle,
			Time: orDefault(o.ConnectionPing, defaultConnectionPing),
		}),
		grpc.ConnectionTimeout(orDefault(o.HandshakeTime, defaultHandshakeTime)),
		grpc.MaxHeaderListSize(orDefault(o.HeaderBytes, defaultHeaderBytes)),
		grpc.WaitForHandlers(true))
}

func orDefault[N int | int64 | uint32 | time.Duration](given, otherwise N) N {
	if given <= 0 {
		return otherwise
	}
	return given
}

// Registry returns the metrics.
func (s *Server) Registry() *prometheus.Registry { return s.registry }

// Ready reports whether the server takes calls, as its health says.
func (s *Server) Ready() bool {
	response, err := s.health.Check(context.Background(), &healthv1.HealthCheckRequest{})
	return err == nil && response.GetStatus() == healthv1.HealthCheckResponse_SERVING
}

func (s *Server) setHealth(status healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(apportionv1.ApportionService_ServiceDesc.ServiceName, status)
}

// Serve serves until ctx ends, and then drains: first health says NOT_SERVING, then no new calls are taken, then those under way get
// DrainTime to end. It returns nil after a drain, and otherwise what a listener failed with. A server serves once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	serving, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	for _, l := range listeners {
		serving.Go(func() error { return s.grpc.Serve(l) })
	}
	s.setHealth(healthv1.HealthCheckResponse_SERVING)
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	s.health.Shutdown()
	s.service.drain(s.options.DrainDelay + orDefault(s.options.DrainTime, defaultDrainTime))
	select {
	case <-time.After(s.options.DrainDelay):
	case <-failed.Done():
	}
	s.drain()
	return serving.Wait()
}

// drain lets calls end by themselves, and after DrainTime ends them.
func (s *Server) drain() {
	force := time.AfterFunc(orDefault(s.options.DrainTime, defaultDrainTime), s.grpc.Stop)
	defer force.Stop()
	s.grpc.GracefulStop()
}
