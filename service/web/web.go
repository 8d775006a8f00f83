// Package web answers the unary calls of the contract over HTTP, in JSON for curl and browsers, by the Connect protocol (and gRPC-Web). It
// uses the same service, limits, identities and errors as gRPC.
//
//	handler := web.NewHandler(server, web.Options{})
//	http.ListenAndServe(address, handler)
package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/identity"
)

// Options of a handler; the zero value is usable.
type Options struct {
	// Settings limit the concurrent calls, from when their message has arrived, and list the origins that may call from a browser. Without
	// origins no CORS headers are sent.
	Settings setting.HTTP
	// Registry of the metrics. nil: no metrics.
	Registry prometheus.Registerer
	// Tracer of a span for each call; Propagator extracts its parent. nil: no traces.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
}

// handler answers calls.
type handler struct {
	server  *service.Server
	options Options
	// calls are found by their paths.
	calls   map[string]http.Handler
	errors  *connect.ErrorWriter
	places  *places
	seconds *prometheus.HistogramVec
	tracer  trace.Tracer
}

// NewHandler returns a handler of the calls, below the names of their services, such as /apportion.v1.DecisionService/. server is the one
// that serves gRPC: its taps and interceptors apply here too.
func NewHandler(server *service.Server, o Options) http.Handler {
	setting.Complete(&o.Settings)
	h := &handler{server: server, options: o, places: newPlaces(o.Settings.Calls)}
	h.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apportion_http_call_duration_seconds",
		Help:    "Time to answer a call over HTTP, from its message to its answer, by how it ended.",
		Buckets: []float64{1e-4, 5e-4, 1e-3, 5e-3, .01, .05, .1, .5, 1, 5, 10},
	}, []string{"method", "code"})
	if o.Registry != nil {
		o.Registry.MustRegister(h.seconds)
	}
	if o.Tracer != nil {
		h.tracer = o.Tracer.Tracer("github.com/apportion/apportion/service/web")
		if o.Propagator == nil {
			h.options.Propagator = propagation.TraceContext{}
		}
	}
	common := []connect.HandlerOption{
		connect.WithCodec(jsonCodec), connect.WithCodec(charsetCodec), connect.WithCodec(binaryCodec), connect.WithRequestGate(h.admit),
	}
	h.errors = connect.NewErrorWriter(common...)
	h.serve(common...)
	return h
}

// ServeHTTP answers a call.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.preflight(w, r) {
		return
	}
	next, known := h.calls[r.URL.Path]
	if !known {
		http.NotFound(w, r)
		return
	}
	in := &incoming{request: r, writer: w}
	defer in.close()
	in.closing()
	ctx := identity.WithConnection(r.Context(), r.RemoteAddr, r.TLS)
	ctx = metadata.NewIncomingContext(ctx, headersOf(r.Header))
	next.ServeHTTP(w, in.withoutMessage(context.WithValue(ctx, incomingKey{}, in)))
}

// incomingKey is the key of a call's request. Connect passes on the context alone.
type incomingKey struct{}

// headersOf returns the headers of a request as gRPC has them.
func headersOf(header http.Header) metadata.MD {
	out := make(metadata.MD, len(header))
	for name, values := range header {
		out[strings.ToLower(name)] = values
	}
	return out
}

// admit asks the taps of the server, before a message is read.
func (h *handler) admit(ctx context.Context, spec connect.Spec, _ connect.Peer, _ http.Header) (context.Context, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	in, err := h.server.Admit(ctx, &tap.Info{FullMethodName: spec.Procedure, Header: headers})
	if err != nil {
		return nil, sent(err)
	}
	return in, nil
}

// call receives and answers a request within the interceptors of the server.
func call[Request, Response any](
	ctx context.Context, h *handler, name string, request *Request,
	answer func(contract, context.Context, *Request) (*Response, error),
) (*Response, error) {
	began := time.Now()
	path := pathOf(name)
	ctx, end := h.begin(ctx, path)
	in, _ := ctx.Value(incomingKey{}).(*incoming)
	t := h.server.NewTransfer(ctx)
	in.transfer = t
	defer t.Drop()
	response, err := h.server.Call(ctx, path, request, func(ctx context.Context, request any) (any, error) {
		if err := h.receive(ctx, in, name, request); err != nil {
			return nil, err
		}
		began = time.Now()
		typed, _ := request.(*Request)
		answered, err := answer(t.Service(), ctx, typed)
		if err != nil {
			return nil, err
		}
		return answered, in.hold(ctx, answered)
	})
	code := "OK"
	var out *connect.Error
	if err != nil {
		out = sent(err)
		code = codeName(out.Code())
	}
	h.seconds.WithLabelValues(name, code).Observe(time.Since(began).Seconds())
	end(out)
	if out != nil {
		return nil, out
	}
	typed, _ := response.(*Response)
	return typed, nil
}

// receive receives the message of a call, takes a place for it, and decodes it.
func (h *handler) receive(ctx context.Context, in *incoming, method string, request any) error {
	into, ok := request.(proto.Message)
	if !ok {
		return service.StatusOf(errNoMessage)
	}
	if err := in.receive(ctx, h.server); err != nil {
		return err
	}
	leave, ok := h.places.take(service.TenantOf(ctx))
	if !ok {
		return service.StatusOf(&decode.Fault{
			Code: overloaded, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Retry: time.Second,
			Text: "too many calls are being answered; try again", Metadata: map[string]string{"limit": "http.calls"},
		})
	}
	in.leave = leave
	if err := in.unwrap(ctx); err != nil {
		return err
	}
	return in.decode(ctx, method, into)
}

// begin begins the span of a call, if calls are traced.
func (h *handler) begin(ctx context.Context, procedure string) (context.Context, func(*connect.Error)) {
	if h.tracer == nil {
		return ctx, func(*connect.Error) {}
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	ctx = h.options.Propagator.Extract(ctx, carrier(headers))
	//nolint:spancheck // What is returned ends it.
	ctx, span := h.tracer.Start(ctx, strings.TrimPrefix(procedure, "/"), trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(err *connect.Error) { //nolint:spancheck // As above.
		if err != nil {
			span.SetStatus(codes.Error, err.Message())
		}
		span.End()
	}
}

// carrier adapts headers to a propagator.
type carrier metadata.MD

// Get returns the first value.
func (c carrier) Get(key string) string {
	if values := c[strings.ToLower(key)]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set does nothing, because received headers are not changed.
func (carrier) Set(string, string) {}

// Keys returns the names.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}

// preflight sets the CORS headers, and reports whether the request was a preflight, which it then has answered.
func (h *handler) preflight(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if len(h.options.Settings.Origins) == 0 || origin == "" {
		return false
	}
	w.Header().Add("Vary", "Origin")
	if !slices.Contains(h.options.Settings.Origins, "*") && !slices.Contains(h.options.Settings.Origins, origin) {
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Expose-Headers", "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
	w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, "+
		"Grpc-Timeout, X-Grpc-Web, X-User-Agent, Traceparent, Tracestate")
	w.Header().Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
	return true
}
