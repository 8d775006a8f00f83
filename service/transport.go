package service

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// Calls may come over other transports than gRPC's. They are to be let in by Admit once their headers are known, and answered within Call,
// so that whoever is asked about a call of gRPC is asked about them too.

// Admit asks the taps about a call, and returns its context or the status that refuses it.
func (s *Server) Admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	return s.taps.handle(ctx, call)
}

// Call answers a unary call within the interceptors: it is logged, and a panic is an INTERNAL.
func (s *Server) Call(ctx context.Context, method string, request any, handle grpc.UnaryHandler) (any, error) {
	info := &grpc.UnaryServerInfo{Server: s.service, FullMethod: method}
	for _, intercept := range slices.Backward(s.unary) {
		next := handle
		handle = func(ctx context.Context, request any) (any, error) { return intercept(ctx, request, info, next) }
	}
	return handle(ctx, request)
}

// StatusOf returns an error as it is sent, and nil for nil.
func StatusOf(err error) error { return statusOf(err) }
