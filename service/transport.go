package service

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// Calls may come over other transports than gRPC's. They are to be let in by Admit once their headers are known, and answered within Call,
// so that whoever is asked about a call of gRPC is asked about them too.

// Admit asks the taps about a call, and returns its context or the status that refuses it. The call is counted until the context that was
// given ends.
func (s *Server) Admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	in, err := s.tap(ctx, call)
	if err != nil {
		return in, err
	}
	end, err := s.begin(in, call.FullMethodName)
	if err != nil {
		err = StatusOf(err)
		s.refuse(in, call.FullMethodName, err)
		return in, err
	}
	context.AfterFunc(ctx, end)
	return in, nil
}

// Receive waits until there is memory for a message that takes about so many bytes, or as much as any may, and returns what gives it back.
func (s *Server) Receive(ctx context.Context, bytes int64) (release func(), err error) {
	b, identity := s.inbox, tenantOf(ctx)
	bytes = min(bytes, b.budget.Most())
	if err := b.budget.Wait(ctx, identity, bytes, b.patience); err != nil {
		return nil, err
	}
	return func() { b.budget.Give(identity, bytes) }, nil
}

// Call answers a unary call within the interceptors: it is logged, and a panic is an INTERNAL.
func (s *Server) Call(ctx context.Context, method string, request any, handle grpc.UnaryHandler) (any, error) {
	info := &grpc.UnaryServerInfo{Server: s.Direct(), FullMethod: method}
	for _, intercept := range slices.Backward(s.unary) {
		next := handle
		handle = func(ctx context.Context, request any) (any, error) { return intercept(ctx, request, info, next) }
	}
	return handle(ctx, request)
}
