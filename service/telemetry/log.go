package telemetry

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Sampling selects which entries of a log are dropped: of the entries within one second with the same text and level, the first First are
// logged and then every Everyth. Errors are always logged. Every 0: no entries are dropped.
type Sampling struct{ First, Every int }

// LogHandler adds the trace and span of a call to its entries, and drops some by Sampling.
type LogHandler struct {
	slog.Handler

	sampling Sampling
	counts   *[slots]slot
	dropped  prometheus.Counter
}

// slots is the number of counters. Texts with the same slot are counted together.
const slots = 512

// slot counts entries of one second.
type slot struct{ second, count atomic.Int64 }

// NewLogHandler returns a handler that passes entries on to another.
func NewLogHandler(to slog.Handler, sampling Sampling) *LogHandler {
	return &LogHandler{
		Handler: to, sampling: sampling, counts: new([slots]slot),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_log_entries_dropped_total", Help: "Entries that sampling kept out of the log.",
		}),
	}
}

// Collector counts the dropped entries.
func (h *LogHandler) Collector() prometheus.Collector { return h.dropped }

// Handle logs an entry, or drops it.
func (h *LogHandler) Handle(ctx context.Context, r slog.Record) error { //nolint:gocritic // The interface has it so.
	if !h.keeps(&r) {
		h.dropped.Inc()
		return nil
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

var seed = maphash.MakeSeed()

func (h *LogHandler) keeps(r *slog.Record) bool {
	if h.sampling.Every <= 0 || r.Level >= slog.LevelError {
		return true
	}
	c := &h.counts[(maphash.String(seed, r.Message)+uint64(r.Level))%slots]
	if now, last := r.Time.Unix(), c.second.Load(); now != last && c.second.CompareAndSwap(last, now) {
		c.count.Store(0)
	}
	n := c.count.Add(1) - int64(h.sampling.First)
	return n <= 0 || n%int64(h.sampling.Every) == 0
}

// WithAttrs returns a handler with attributes that samples together with this one.
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.Handler = h.Handler.WithAttrs(attrs)
	return &out
}

// WithGroup returns a handler with a group that samples together with this one.
func (h *LogHandler) WithGroup(name string) slog.Handler {
	out := *h
	out.Handler = h.Handler.WithGroup(name)
	return &out
}
