package service

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// calls measures the calls of gRPC under the names of gRPC's own instrumentation, and as it does. gRPC's own builds the attributes of each
// call again, and lets gRPC copy the metadata of each call and record the time of each message, which takes a tenth of a small call.
type calls struct {
	started        metric.Int64Counter
	seconds        metric.Float64Histogram
	sent, received metric.Int64Histogram
	// methods are the methods that are served, by full name.
	methods map[string]*methodLabels
	// other stands for all methods that are not counted by name.
	other *methodLabels
}

// methodLabels are the attributes of one method.
type methodLabels struct {
	name    string
	started []metric.AddOption
	// ended are the attributes of calls by their code. They are created when a call first ends with this code.
	ended [codes.Unauthenticated + 2]atomic.Pointer[[]metric.RecordOption]
}

// receivedName is the metric of gRPC's instrumentation that is recorded for the calls of the contract alone.
const receivedName = opentelemetry.ServerCallRcvdCompressedTotalMessageSizeMetricName

// newCalls returns what measures the calls of some methods. Without a provider nothing is recorded.
func newCalls(provider metric.MeterProvider, methods map[string]bool, log *slog.Logger) *calls {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	m := provider.Meter("grpc-go", metric.WithInstrumentationVersion(grpc.Version))
	own := provider.Meter(scope)
	c := &calls{methods: map[string]*methodLabels{}, other: newMethodLabels(otherMethod)}
	for method := range methods {
		c.methods[method] = newMethodLabels(strings.TrimPrefix(method, "/"))
	}
	note := func(err error) {
		if err != nil {
			log.Error("a metric of calls is not recorded", errorAttr(err))
		}
	}
	var err error
	sizes := metric.WithExplicitBucketBoundaries(opentelemetry.DefaultSizeBounds...)
	c.started, err = m.Int64Counter(opentelemetry.ServerCallStartedMetricName, metric.WithUnit("{call}"),
		metric.WithDescription("Number of server calls started."))
	note(err)
	c.seconds, err = m.Float64Histogram(opentelemetry.ServerCallDurationMetricName, metric.WithUnit("s"),
		metric.WithDescription("End-to-end time taken to complete a call from server transport's perspective."),
		metric.WithExplicitBucketBoundaries(opentelemetry.DefaultLatencyBounds...))
	note(err)
	c.sent, err = m.Int64Histogram(opentelemetry.ServerCallSentCompressedTotalMessageSizeMetricName, metric.WithUnit("By"),
		metric.WithDescription("Compressed message bytes sent per server call."), sizes)
	note(err)
	c.received, err = own.Int64Histogram(receivedName, metric.WithUnit("By"),
		metric.WithDescription("Compressed message bytes received per server call."), sizes)
	note(err)
	return c
}

const (
	methodKey = attribute.Key("grpc.method")
	statusKey = attribute.Key("grpc.status")
)

func newMethodLabels(name string) *methodLabels {
	attributes := metric.WithAttributeSet(attribute.NewSet(methodKey.String(name)))
	return &methodLabels{name: name, started: []metric.AddOption{attributes}}
}

// endedWith returns the attributes of calls that end with a code.
func (l *methodLabels) endedWith(c codes.Code) []metric.RecordOption {
	kept := &l.ended[min(int(c), len(l.ended)-1)]
	if options := kept.Load(); options != nil {
		return *options
	}
	attributes := attribute.NewSet(methodKey.String(l.name), statusKey.String(code.Code_name[int32(c)]))
	options := []metric.RecordOption{metric.WithAttributeSet(attributes)}
	kept.Store(&options)
	return options
}

// unknown reports whether a method is not served, and counts its call, which gRPC answers.
func (c *calls) unknown(ctx context.Context, method string) bool {
	if c.methods[method] != nil {
		return false
	}
	c.started.Add(ctx, 1, c.other.started...)
	return true
}

// measured is a call that is measured until it ends.
type measured struct {
	calls  *calls
	labels *methodLabels
	ctx    context.Context //nolint:containedctx // It is the call's.
	began  time.Time
	sent   atomic.Int64
	// messages are those that the call receives; nil where gRPC receives them.
	messages *receiver
}

type measuredKey struct{}

// begin counts a call that has begun.
func (c *calls) begin(ctx context.Context, method string) *measured {
	m := &measured{calls: c, labels: c.methods[method], ctx: ctx, began: time.Now()}
	if m.labels == nil {
		m.labels = c.other
	}
	c.started.Add(ctx, 1, m.labels.started...)
	return m
}

// end records a call that ends with an error, or with none.
func (m *measured) end(err error) {
	options := m.labels.endedWith(codeOf(err))
	m.calls.seconds.Record(m.ctx, time.Since(m.began).Seconds(), options...)
	m.calls.sent.Record(m.ctx, m.sent.Load(), options...)
	if m.messages != nil {
		m.calls.received.Record(m.ctx, m.messages.wire.Load(), options...)
	}
}

// codeOf returns the code that gRPC sends for an error of a handler.
func codeOf(err error) codes.Code {
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return status.FromContextError(err).Code()
}

// measureQuiet measures the unary calls that gRPC receives itself. Other messages are measured when they are received.
func (s *Server) measureQuiet(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (response any, err error) {
	if !quiet(info.FullMethod) {
		return handle(ctx, request)
	}
	m := s.calls.begin(ctx, info.FullMethod)
	response, err = handle(ctx, request)
	m.sends(response)
	m.end(err)
	return response, err
}

// sends counts a message that gRPC encodes itself.
func (m *measured) sends(message any) {
	if message, ok := message.(proto.Message); ok {
		m.sent.Add(int64(proto.Size(message)))
	}
}

// measureStream measures streams.
func (s *Server) measureStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	m := s.calls.begin(stream.Context(), info.FullMethod)
	of := measuredStream{stream, m, context.WithValue(stream.Context(), measuredKey{}, m)}
	var err error
	if quiet(info.FullMethod) {
		err = handle(service, &quietStream{of})
	} else {
		err = handle(service, &of)
	}
	m.end(err)
	return err
}

// measuredStream is a stream whose context leads to what measures it.
type measuredStream struct {
	grpc.ServerStream

	measured *measured
	ctx      context.Context //nolint:containedctx // It is the stream's.
}

// Context returns the context of the stream.
func (s *measuredStream) Context() context.Context { return s.ctx }

// quietStream is a measuredStream whose messages gRPC encodes itself.
type quietStream struct{ measuredStream }

// SendMsg sends a message.
func (s *quietStream) SendMsg(message any) error {
	s.measured.sends(message)
	return s.measuredStream.SendMsg(message)
}
