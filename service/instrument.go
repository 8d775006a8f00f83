package service

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	experimental "google.golang.org/grpc/experimental/opentelemetry"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/grpc/status"
)

// instruments are gRPC's own metrics and traces. What a tap refuses is in neither: gRPC does not count it as a call.
func (s *Server) instruments() []grpc.ServerOption {
	o := &s.options
	meter := o.Meter
	if meter == nil {
		own, err := NewMeter(o.Registry)
		if err != nil {
			s.log.Error("calls are not measured", errorAttr(err))
		} else {
			meter = own
		}
	}
	options := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{
		MeterProvider: meter, Metrics: opentelemetry.DefaultMetrics().Remove(sizeName),
	}}
	if meter != nil {
		s.sizes.open(meter, s.log)
	}
	if o.Tracer != nil {
		options.TraceOptions = experimental.TraceOptions{TracerProvider: o.Tracer, TextMapPropagator: o.Propagator}
		if o.Propagator == nil {
			options.TraceOptions.TextMapPropagator = propagation.TraceContext{}
		}
	}
	return []grpc.ServerOption{opentelemetry.ServerOption(options)}
}

// sizeName is the metric of gRPC that is made here, because gRPC does not see the messages that are received here.
const sizeName = "grpc.server.call.rcvd_total_compressed_message_size"

// sizes measures what calls received.
type sizes struct {
	bytes metric.Int64Histogram
	// attributes by method and code, which are few.
	attributes sync.Map
}

func (z *sizes) open(meter metric.MeterProvider, log *slog.Logger) {
	var err error
	z.bytes, err = meter.Meter("github.com/apportion/apportion/service").Int64Histogram(sizeName, metric.WithUnit("By"),
		metric.WithDescription("Compressed message bytes received per server call."),
		metric.WithExplicitBucketBoundaries(opentelemetry.DefaultSizeBounds...))
	if err != nil {
		log.Error("what calls receive is not measured", errorAttr(err))
	}
}

// measure notes what a call received, as gRPC does it.
func (s *Server) measure(ctx context.Context, method string, messages *receiver, err error) {
	if s.sizes.bytes == nil {
		return
	}
	key := [2]string{method, code.Code_name[int32(status.Code(err))]}
	attributes, ok := s.sizes.attributes.Load(key)
	if !ok {
		attributes, _ = s.sizes.attributes.LoadOrStore(key, metric.WithAttributeSet(attribute.NewSet(
			attribute.String("grpc.method", strings.TrimPrefix(method, "/")), attribute.String("grpc.status", key[1]))))
	}
	if option, ok := attributes.(metric.RecordOption); ok {
		s.sizes.bytes.Record(ctx, messages.wire.Load(), option)
	}
}

// NewMeter returns a provider whose metrics are shown by a Prometheus registry, and sent to further readers.
func NewMeter(registry prometheus.Registerer, readers ...sdkmetric.Reader) (*sdkmetric.MeterProvider, error) {
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(exporter)}
	for _, r := range readers {
		options = append(options, sdkmetric.WithReader(r))
	}
	return sdkmetric.NewMeterProvider(options...), nil
}
