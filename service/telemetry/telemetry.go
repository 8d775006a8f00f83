package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/apportion/apportion/engine"
)

// Options of a Telemetry.
type Options struct {
	// Version of the program.
	Version string
	// Logger of errors while sending telemetry. nil: they are not logged.
	Logger *slog.Logger
}

// Telemetry contains the metrics and traces of a process.
type Telemetry struct {
	// Registry contains the metrics of this project.
	Registry *prometheus.Registry
	// Meter is for libraries that use OpenTelemetry. Gatherer has both.
	Meter    metric.MeterProvider
	Gatherer prometheus.Gatherer
	// Tracer is nil unless the environment enables traces.
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator

	version string
	stop    []func(context.Context) error
}

// Start reads OpenTelemetry's environment and starts the configured exporters.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{Registry: prometheus.NewRegistry(), version: o.Version}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { //nolint:contextcheck // What fails later fails in no call.
		log.LogAttrs(context.Background(), slog.LevelWarn, "telemetry was not sent", slog.String("error", err.Error()))
	}))
	t.Registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(o.Version))
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "apportion"), attribute.String("service.version", o.Version),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if t.Propagator, err = propagator(os.Getenv("OTEL_PROPAGATORS")); err != nil {
		return nil, err
	}
	if err := t.measure(ctx, about); err != nil {
		return nil, errors.Join(err, t.Stop(ctx))
	}
	if err := t.trace(ctx, about); err != nil {
		return nil, errors.Join(err, t.Stop(ctx))
	}
	return t, nil
}

// Stop sends the remaining data.
func (t *Telemetry) Stop(ctx context.Context) error {
	var faults []error
	for _, stop := range t.stop {
		faults = append(faults, stop(ctx))
	}
	t.stop = nil
	return errors.Join(faults...)
}

// measure shows all metrics to Prometheus, and sends them elsewhere too if that is asked for. Metrics of OpenTelemetry have a registry of
// their own, so that the bridge that exports our metrics to OpenTelemetry does not export them again.
func (t *Telemetry) measure(ctx context.Context, about *resource.Resource) error {
	theirs := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(theirs), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		return err
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(about), sdkmetric.WithReader(exporter)}
	// Prometheus is served on the address for operators in any case.
	if configured("METRICS") && os.Getenv("OTEL_METRICS_EXPORTER") != "prometheus" {
		autoexport.WithFallbackMetricProducer(func(context.Context) (sdkmetric.Producer, error) {
			return bridge.NewMetricProducer(bridge.WithGatherer(t.Registry)), nil
		})
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("OpenTelemetry's metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.stop = append(t.stop, provider.Shutdown)
	t.Meter, t.Gatherer = provider, prometheus.Gatherers{t.Registry, theirs}
	return nil
}

func (t *Telemetry) trace(ctx context.Context, about *resource.Resource) error {
	if !configured("TRACES") {
		return nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("OpenTelemetry's traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(exporter))
	t.stop = append(t.stop, provider.Shutdown)
	t.Tracer = provider
	return nil
}

// configured reports whether the environment asks for a signal: by naming an exporter, or a place to send to.
func configured(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch os.Getenv("OTEL_" + signal + "_EXPORTER") {
	case "none":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	default:
		return true
	}
}

// propagator reads OTEL_PROPAGATORS.
func propagator(names string) (propagation.TextMapPropagator, error) {
	if names == "" {
		names = "tracecontext,baggage"
	}
	var all []propagation.TextMapPropagator
	for name := range strings.SplitSeq(names, ",") {
		switch strings.TrimSpace(name) {
		case "tracecontext":
			all = append(all, propagation.TraceContext{})
		case "baggage":
			all = append(all, propagation.Baggage{})
		case "none":
		default:
			return nil, fmt.Errorf("OTEL_PROPAGATORS: %q is not one of tracecontext, baggage and none", name)
		}
	}
	return propagation.NewCompositeTextMapPropagator(all...), nil
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "apportion_build_info", Help: "1, with the versions of the program, its engine and Go.",
		ConstLabels: prometheus.Labels{"version": version, "engine": engine.Version, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}
