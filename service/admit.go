package service

import (
	"context"
	"log/slog"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/connection"
)

// gRPC runs unary interceptors after it has received and decoded the request. A tap sees the headers of a call alone: whatever it refuses
// is neither buffered nor decoded, and the bytes that still arrive are dropped frame by frame. gRPC neither measures nor logs such calls,
// so that is done here. It sends the status with its details, but no trailers.

// arrived asks the taps for a call of gRPC whose headers have come, and counts it if no handler will.
func (s *Server) arrived(ctx context.Context, call *tap.Info) (context.Context, error) {
	ctx, err := s.tap(ctx, call)
	if err == nil && s.calls.unknown(ctx, call.FullMethodName) {
		connection.Of(ctx).Waste()
	}
	return ctx, err
}

// tap asks the taps of the options, in order, and refuses a call if one of them does. Health is exempt: it says whether a replica lives,
// for every caller, and however busy it is.
//
// It runs in the goroutine that reads the connection, one call at a time.
func (s *Server) tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	c := connection.Of(ctx)
	if fault := c.Admit(); fault != nil {
		return ctx, s.fail(ctx, fault)
	}
	if quiet(call.FullMethodName) {
		// gRPC reads its message, so that the end of a call that is reset before is not seen.
		c.Waste()
	}
	if strings.HasPrefix(call.FullMethodName, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	in := ctx
	for _, ask := range s.options.Tap {
		next, err := ask(ctx, call)
		if err != nil {
			s.refuse(in, call.FullMethodName, err)
			if status.Code(err) == codes.Unauthenticated {
				c.Waste()
			}
			return in, err
		}
		ctx = next //nolint:fatcontext // Each asks with what the one before learnt.
	}
	if identity := IdentityOf(ctx); identity != connection.Anonymous {
		c.Authenticated(identity)
	}
	if err := s.again(ctx, call.FullMethodName); err != nil {
		s.refuse(in, call.FullMethodName, err)
		return in, err
	}
	return bounded(ctx, call.FullMethodName), nil
}

// again returns the status of a call whose client does not wait as long as it was told to, while its calls are not received. A refusal here
// costs a third of a refusal in a handler, and lacks only the trailer that the client was sent before.
func (s *Server) again(ctx context.Context, method string) error {
	if uncounted(method) || !connection.Of(ctx).MustWait() {
		return nil
	}
	return StatusOf(s.admission.Saturated(TenantOf(ctx)))
}

// endKey is the key of the function that ends a call with a cause. gRPC offers the context alone between the tap, which makes the
// context that reading a message waits on, and the handler, which learns that the message is late.
type endKey struct{}

// endCall ends the call of a context with a cause.
func endCall(ctx context.Context, cause error) {
	if end, ok := ctx.Value(endKey{}).(context.CancelCauseFunc); ok {
		end(cause)
	}
}

// bounded lets a call be ended whose first message does not come in time, or, if it is unary, whose answer does not within CallTime.
func bounded(ctx context.Context, path string) context.Context {
	if method.At(path) == nil {
		return ctx
	}
	// It ends with the call, whose context is its parent.
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, endKey{}, end)
}

// otherMethod stands for every method that the server does not have, so that callers cannot make up labels.
const otherMethod = "other"

// methodsOf lists the full names of the methods of services.
func methodsOf(services map[string]grpc.ServiceInfo) map[string]bool {
	methods := map[string]bool{}
	for service, description := range services {
		for _, method := range description.Methods {
			methods["/"+service+"/"+method.Name] = true
		}
	}
	return methods
}

// refuse counts and logs a call that is refused by its headers alone.
func (s *Server) refuse(ctx context.Context, method string, err error) {
	if !s.methods[method] {
		method = otherMethod
	}
	code := status.Code(err)
	s.metrics.refused.WithLabelValues(method, code.String()).Inc()
	s.log.LogAttrs(ctx, levelOf(code), "a call was refused",
		slog.String("method", method), slog.String("code", code.String()), errorAttr(err))
}

// uncounted reports whether calls of a method are not counted: sessions last and are counted on their own; health and reflection are no
// work.
func uncounted(method string) bool {
	return method == apportionv1.DecisionService_RunSession_FullMethodName || quiet(method)
}

// begin counts a call whose headers have come, until end is called, or refuses it.
func (s *Server) begin(ctx context.Context, method string) (end func(), err error) {
	if uncounted(method) {
		return func() {}, nil
	}
	return s.admission.Begin(TenantOf(ctx))
}

// quiet reports whether a method is asked all the time and says nothing of interest: health and reflection.
func quiet(method string) bool { return strings.HasPrefix(method, "/grpc.") }

// fewSteps is the number of steps up to which a simulation is a single question: what a queue may use, and what it may take from others.
const fewSteps = 2

// rankOf is which work of a method with so many steps comes first.
func rankOf(name string, steps int) admission.Rank {
	if name == method.Simulate.Name && steps > fewSteps {
		return admission.Simulation
	}
	return admission.Decision
}

type identityKey struct{}

// WithIdentity returns a context with the identity of the caller. Snapshots are held per identity.
func WithIdentity(ctx context.Context, identity string) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// IdentityOf returns the identity of the caller.
func IdentityOf(ctx context.Context) string {
	if identity, ok := ctx.Value(identityKey{}).(string); ok {
		return identity
	}
	return connection.Anonymous
}

// TenantOf returns the key by which the server is shared among callers: the identity, or the address of a caller without one.
func TenantOf(ctx context.Context) string {
	identity := IdentityOf(ctx)
	if identity != connection.Anonymous {
		return identity
	}
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return identity
	}
	return connection.TenantAt(from.Addr)
}
