package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

// otlpSink sends entries as OpenTelemetry's log records.
type otlpSink struct {
	batch    *batch
	provider *sdklog.LoggerProvider
	logger   log.Logger
}

// NewOTLPSink returns a sink that sends entries where OpenTelemetry's environment says (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_LOGS_EXPORTER …).
func NewOTLPSink(ctx context.Context, version string) (Sink, error) {
	exporter, err := autoexport.NewLogExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry's logs: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "apportion"), attribute.String("service.version", version),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	return newOTLPSink(exporter, about), nil
}

func newOTLPSink(exporter sdklog.Exporter, about *resource.Resource) Sink {
	s := &otlpSink{batch: &batch{exporter: exporter}}
	s.provider = sdklog.NewLoggerProvider(sdklog.WithResource(about), sdklog.WithProcessor(s.batch))
	s.logger = s.provider.Logger("github.com/apportion/apportion/service/decisionlog")
	return s
}

// Write sends an entry with the held-back ones, or holds it back.
func (s *otlpSink) Write(e *Entry, line []byte) error {
	var r log.Record
	r.SetEventName("apportion.decision")
	r.SetTimestamp(e.Time)
	r.SetSeverity(log.SeverityInfo)
	r.SetBody(attribute.StringValue(string(line)))
	r.AddAttributes(
		attribute.String("apportion.method", e.Method), attribute.String("apportion.identity", e.Identity),
		attribute.String("apportion.policy.name", e.PolicyName), attribute.String("apportion.policy.digest", e.PolicyDigest),
		attribute.String("apportion.snapshot.digest", e.SnapshotDigest), attribute.String("apportion.engine.version", e.EngineVersion),
	)
	s.logger.Emit(contextOf(e), r)
	const most = 256
	if len(s.batch.records) < most {
		return nil
	}
	return s.Flush()
}

// contextOf is a context within the trace of an entry.
func contextOf(e *Entry) context.Context {
	ctx := context.Background()
	traceID, err := trace.TraceIDFromHex(e.TraceID)
	if err != nil {
		return ctx
	}
	spanID, err := trace.SpanIDFromHex(e.SpanID)
	if err != nil {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled,
	}))
}

// Flush sends what is held back.
func (s *otlpSink) Flush() error { return s.batch.ForceFlush(context.Background()) }

// Close sends what is held back and ends.
func (s *otlpSink) Close() error {
	ctx := context.Background()
	return errors.Join(s.Flush(), s.provider.Shutdown(ctx))
}

// batch is a processor that sends on request: the queue before it has bounds already, and counts what it drops.
type batch struct {
	exporter sdklog.Exporter
	records  []sdklog.Record
}

// Enabled is always true.
func (*batch) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// OnEmit holds a record back.
func (b *batch) OnEmit(_ context.Context, r *sdklog.Record) error {
	b.records = append(b.records, r.Clone())
	return nil
}

// ForceFlush sends the records held back. Those that cannot be sent are lost.
func (b *batch) ForceFlush(ctx context.Context) error {
	if len(b.records) == 0 {
		return nil
	}
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := b.exporter.Export(ctx, b.records)
	clear(b.records)
	b.records = b.records[:0]
	return err
}

// Shutdown ends the exporter.
func (b *batch) Shutdown(ctx context.Context) error { return b.exporter.Shutdown(ctx) }
