package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/connection"
)

// chain lists the interceptors, the outermost first: what is measured and logged includes what the inner ones refuse, and a panic is an
// INTERNAL to them like any other.
func (s *Server) chain() []grpc.ServerOption {
	stream := []grpc.StreamServerInterceptor{s.measureStream, s.logStream, recovery.StreamServerInterceptor(s.recovering())}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(append([]grpc.UnaryServerInterceptor{s.measureQuiet}, s.unary...)...),
		grpc.ChainStreamInterceptor(append(stream, s.options.Stream...)...),
	}
}

// unaryChain lists the interceptors of unary calls over any transport, the outermost first.
func (s *Server) unaryChain() []grpc.UnaryServerInterceptor {
	own := []grpc.UnaryServerInterceptor{s.logUnary, recovery.UnaryServerInterceptor(s.recovering())}
	return slices.Concat(own, s.options.Unary)
}

func (s *Server) recovering() recovery.Option {
	return recovery.WithRecoveryHandlerContext(s.recovered)
}

func (s *Server) logUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	began := time.Now()
	answer, err := handle(ctx, request)
	if quiet(info.FullMethod) {
		connection.Of(ctx).Keep(ctx)
	}
	s.logEnd(ctx, info.FullMethod, began, err)
	return answer, err
}

func (s *Server) logStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	began := time.Now()
	err := s.watched(service, stream, info.FullMethod, handle)
	s.logEnd(stream.Context(), info.FullMethod, began, err)
	return err
}

// watched answers a stream. It bounds those of health and reflection, which need no identity or take no turn.
func (s *Server) watched(service any, stream grpc.ServerStream, method string, handle grpc.StreamHandler) error {
	if !quiet(method) {
		return handle(service, stream)
	}
	ctx := stream.Context()
	defer connection.Of(ctx).Keep(ctx)
	tenant, most := TenantOf(ctx), s.options.Connection.Watches
	mine, all := s.watches.Add(tenant, 1)
	defer s.watches.Add(tenant, -1)
	// The last half is left to those who have less than a half.
	if all > most || all > most/2 && mine > most/2 && s.watches.Others(tenant) {
		return s.fail(ctx, &decode.Fault{
			Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Retry: time.Second,
			Text:     "too many streams of health and reflection are open",
			Metadata: map[string]string{"limit": "connection.watches", "maximum": strconv.Itoa(most)},
		})
	}
	return handle(service, stream)
}

// logEnd logs the end of a call. A record below the level is not formed: calls that succeed mostly are.
func (s *Server) logEnd(ctx context.Context, method string, began time.Time, err error) {
	end := status.Convert(err)
	level := levelOf(end.Code())
	if quiet(method) || !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("grpc_method", method), slog.String("identity", IdentityOf(ctx)), slog.String("grpc_code", end.Code().String()),
		slog.Duration("grpc_duration", time.Since(began)),
	}
	if from, ok := peer.FromContext(ctx); ok {
		attrs = append(attrs, slog.String("peer_address", from.Addr.String()))
	}
	if err != nil {
		attrs = append(attrs, slog.String("grpc_error", end.Message()))
	}
	s.log.LogAttrs(ctx, level, "call ended", attrs...)
}

var errPanicked = errors.New("panicked")

// recovered logs and counts a panic, and returns an error without its details to the caller.
func (s *Server) recovered(ctx context.Context, p any) error {
	s.metrics.panics.Inc()
	s.log.LogAttrs(ctx, slog.LevelError, "a call panicked",
		slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	return s.fail(context.WithoutCancel(ctx), errPanicked)
}
