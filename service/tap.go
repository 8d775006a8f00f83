package service

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// gRPC runs unary interceptors after it has received and decoded the request. A tap sees the headers of a call alone: whatever it refuses
// is neither buffered nor decoded, and the bytes that still arrive are dropped frame by frame. gRPC neither measures nor logs such calls,
// so that is done here. It sends the status with its details, but no trailers.

// otherMethod stands for every method that the server does not have, so that callers cannot make up labels.
const otherMethod = "other"

// taps asks the taps of the options, in order.
type taps struct {
	ask     []tap.ServerInHandle
	methods map[string]bool
	refused *prometheus.CounterVec
	log     *slog.Logger
	// receiving bounds how long a message may take to come, and answering what follows.
	receiving, answering time.Duration
}

func (s *Server) newTaps() *taps {
	t := &taps{
		ask: s.options.Tap, log: s.log, receiving: s.options.MessageTime, answering: s.options.CallTime,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_calls_refused_total", Help: "Calls refused by their headers alone, before a message was read.",
		}, []string{"method", "code"}),
	}
	s.options.Registry.MustRegister(t.refused)
	return t
}

// methodsOf lists the full names of a server's methods.
func methodsOf(server *grpc.Server) map[string]bool {
	methods := map[string]bool{}
	for service, description := range server.GetServiceInfo() {
		for _, method := range description.Methods {
			methods["/"+service+"/"+method.Name] = true
		}
	}
	return methods
}

// handle refuses a call if one of the taps does. Health is exempt: it says whether a replica lives, whoever asks and however busy it is.
//
// It runs in the goroutine that reads the connection, one call at a time.
func (t *taps) handle(ctx context.Context, call *tap.Info) (context.Context, error) {
	if strings.HasPrefix(call.FullMethodName, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	in := ctx
	for _, ask := range t.ask {
		next, err := ask(ctx, call)
		if err != nil {
			t.refuse(in, call.FullMethodName, err)
			return in, err
		}
		ctx = next //nolint:fatcontext // Each asks with what the one before learnt.
	}
	return t.bounded(ctx, call.FullMethodName), nil
}

// endKey is the key of the function that ends a unary call with a cause. gRPC offers the context alone between the tap, which makes the
// context that reading a message waits on, and the handler, which learns that the message is late.
type endKey struct{}

// endCall ends the unary call of a context with a cause.
func endCall(ctx context.Context, cause error) {
	if end, ok := ctx.Value(endKey{}).(context.CancelCauseFunc); ok {
		end(cause)
	}
}

// bounded lets a unary call be ended whose message does not come, or whose answer is not taken. CallTime bounds the time to answer; this
// adds the time to receive.
func (t *taps) bounded(ctx context.Context, method string) context.Context {
	if !unary[method] {
		return ctx
	}
	// They end with the call, whose context is their parent.
	if t.answering > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.receiving+t.answering) //nolint:gosec // G118: as above.
		_ = cancel
	}
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, endKey{}, end)
}

// unary holds the full names of the unary methods.
var unary = func() map[string]bool {
	names := map[string]bool{}
	for _, m := range apportionv1.ApportionService_ServiceDesc.Methods {
		names["/"+apportionv1.ApportionService_ServiceDesc.ServiceName+"/"+m.MethodName] = true
	}
	return names
}()

func (t *taps) refuse(ctx context.Context, method string, err error) {
	if !t.methods[method] {
		method = otherMethod
	}
	code := status.Code(err)
	t.refused.WithLabelValues(method, code.String()).Inc()
	t.log.LogAttrs(ctx, levelOf(code), "a call was refused",
		slog.String("method", method), slog.String("code", code.String()), errorAttr(err))
}
