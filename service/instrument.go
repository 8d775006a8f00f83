package service

import (
	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	experimental "google.golang.org/grpc/experimental/opentelemetry"
	"google.golang.org/grpc/stats/opentelemetry"
)

// instruments are gRPC's own metrics and traces. What a tap refuses is in neither: gRPC does not count it as a call.
func (s *Server) instruments() []grpc.ServerOption {
	o := &s.options
	meter := o.Meter
	if meter == nil {
		own, err := NewMeter(s.registry)
		if err != nil {
			s.log.Error("calls are not measured", errorAttr(err))
		} else {
			meter = own
		}
	}
	options := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: meter}}
	if o.Tracer != nil {
		options.TraceOptions = experimental.TraceOptions{TracerProvider: o.Tracer, TextMapPropagator: o.Propagator}
		if o.Propagator == nil {
			options.TraceOptions.TextMapPropagator = propagation.TraceContext{}
		}
	}
	return []grpc.ServerOption{opentelemetry.ServerOption(options)}
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
