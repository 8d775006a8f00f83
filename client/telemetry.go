package client

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	experimental "google.golang.org/grpc/experimental/opentelemetry"
	"google.golang.org/grpc/stats/opentelemetry"
)

// WithMeter enables metrics: gRPC's own client metrics (grpc.client.attempt.duration and others), and the counters
// apportion.client.retries, apportion.client.fallbacks and apportion.client.session.moves.
func WithMeter(provider metric.MeterProvider) Option {
	return func(s *settings) { s.meter = provider }
}

// WithTracer creates a span for each call and propagates its context; without a propagator, as W3C Trace Context.
func WithTracer(provider trace.TracerProvider, propagator propagation.TextMapPropagator) Option {
	return func(s *settings) {
		s.tracer, s.propagator = provider, propagator
		if propagator == nil {
			s.propagator = propagation.TraceContext{}
		}
	}
}

// instruments are gRPC's own metrics and traces.
func (s *settings) instruments() []grpc.DialOption {
	if s.meter == nil && s.tracer == nil {
		return nil
	}
	options := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: s.meter}}
	if s.tracer != nil {
		options.TraceOptions = experimental.TraceOptions{TracerProvider: s.tracer, TextMapPropagator: s.propagator}
	}
	return []grpc.DialOption{opentelemetry.DialOption(options)}
}

// counters count retries, fallbacks and moved sessions.
type counters struct {
	retries, fallbacks, moves metric.Int64Counter
}

func newCounters(provider metric.MeterProvider) counters {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	meter := provider.Meter("github.com/apportion/apportion/client")
	counter := func(name, description string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithDescription(description))
		if err != nil {
			return noop.Int64Counter{}
		}
		return made
	}
	return counters{
		retries:   counter("apportion.client.retries", "Questions that were asked again, by kind."),
		fallbacks: counter("apportion.client.fallbacks", "Questions that a fallback answered, by kind and fallback."),
		moves:     counter("apportion.client.session.moves", "Sessions that went on at another replica."),
	}
}

func count(ctx context.Context, counter metric.Int64Counter, attributes ...attribute.KeyValue) {
	counter.Add(context.WithoutCancel(ctx), 1, metric.WithAttributes(attributes...))
}
