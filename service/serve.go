package service

import (
	"context"
	"errors"
	"math"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/buffer"
	"github.com/apportion/apportion/service/connection"
)

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
	s.methods = methodsOf(s.register(grpc.NewServer()))
	s.calls = newCalls(s.meter(), s.methods, s.log)
	return s, nil
}

// register lets a server of gRPC serve what this one does.
func (s *Server) register(server *grpc.Server) *grpc.Server {
	server.RegisterService(s.serviceDesc(), s.Direct())
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
