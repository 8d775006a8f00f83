package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	experimental "google.golang.org/grpc/experimental/opentelemetry"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/buffer"
)

// metrics of a service. Labels take a few fixed values, never what a caller sends.
type metrics struct {
	requests   *prometheus.CounterVec
	hit, miss  prometheus.Counter
	compiled   prometheus.Counter
	evicted    prometheus.Counter
	shed       *prometheus.CounterVec
	refused    *prometheus.CounterVec
	panics     prometheus.Counter
	untaken    prometheus.Counter
	reset      prometheus.Counter
	decisions  *decisions
	deciding   map[string]prometheus.Observer
	compiling  prometheus.Histogram
	sizes      [4]prometheus.Histogram
	collectors []prometheus.Collector
}

func newMetrics(s *Server) *metrics {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_model_cache_requests_total", Help: "Requests that named a snapshot by digest, by whether it was held.",
		}, []string{"result"}),
		compiled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_model_cache_compiled_total", Help: "Snapshots compiled to be held.",
		}),
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_model_cache_evicted_total", Help: "Snapshots evicted to make room for others.",
		}),
	}
	m.shed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apportion_calls_shed_total", Help: "Calls and batches refused because their turn did not come in time.",
	}, []string{"rank"})
	for r := range admission.Ranks {
		m.shed.WithLabelValues(r.String())
	}
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apportion_panics_recovered_total", Help: "Calls that ended in a panic.",
	})
	m.untaken = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apportion_answers_untaken_total", Help: "Connections closed because their client did not read an answer in time.",
	})
	m.reset = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apportion_connections_reset_total", Help: "Connections closed because too many of their calls were wasted.",
	})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apportion_calls_refused_total", Help: "Calls refused by their headers, before a message was read.",
	}, []string{"method", "code"})
	m.hit, m.miss = m.requests.WithLabelValues("hit"), m.requests.WithLabelValues("miss")
	m.decide()
	m.collectors = append(m.collectors,
		m.panics, m.untaken, m.reset, m.refused, m.shed, m.requests, m.compiled, m.evicted,
		m.decisions.counter, m.compiling, m.sizes[0], m.sizes[1], m.sizes[2], m.sizes[3],
		gauge("apportion_model_cache_entries", "Snapshots held.", func() float64 {
			n, _ := s.cache.usage()
			return float64(n)
		}),
		gauge("apportion_model_cache_bytes", "Estimated memory of the snapshots held, with their idle sessions.", func() float64 {
			_, bytes := s.cache.usage()
			return float64(bytes)
		}),
		gauge("apportion_work_waiting", "Calls and batches that wait for their turn.", func() float64 {
			return float64(s.admission.Usage().Waiting)
		}),
		gauge("apportion_work_running", "Calls and batches that are worked on.", func() float64 {
			return float64(s.admission.Usage().Running)
		}),
		gauge("apportion_work_bytes", "Memory that the calls and batches which are worked on were estimated to take.", func() float64 {
			return float64(s.admission.Usage().Bytes)
		}),
		gauge("apportion_message_bytes", "Memory booked for the messages of calls and sessions.", func() float64 {
			return float64(s.inbox.budget.Used())
		}),
		gauge("apportion_message_mapped_bytes",
			"Memory outside Go's heap for messages of this process, in use or kept for later ones.", func() float64 {
				return float64(buffer.Mapped())
			}),
		gauge("apportion_answer_bytes", "Memory booked for answers until the transport has sent them.", func() float64 {
			return float64(s.outbox.budget.Used())
		}),
		gauge("apportion_health_watches", "Streams of health and reflection that are open.", func() float64 {
			return float64(s.watches.All())
		}),
		gauge("apportion_sessions", "Sessions open.", func() float64 { return float64(s.sessions.All()) }),
		gauge("apportion_session_bytes", "Estimated memory of the sessions that are open.", func() float64 {
			return float64(s.sessionMemory.budget.Used())
		}),
		gauge("apportion_receiving_bytes", "Memory taken by snapshots that are being received in chunks.", func() float64 {
			return float64(s.receiving.Used())
		}))
	return m
}

// fineSeconds are the bounds for what takes microseconds, or seconds at its worst.
var fineSeconds = []float64{
	1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// decide makes the metrics of decisions.
func (m *metrics) decide() {
	m.decisions = newDecisions()
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "apportion_decision_duration_seconds", Buckets: fineSeconds,
		Help: "Time to answer the steps of a call, or of a batch of a session: without transport, reading and opening.",
	}, []string{"method"})
	m.deciding = map[string]prometheus.Observer{}
	for _, call := range method.Calls() {
		if name := string(call.Name()); method.IsUnary(call) {
			m.deciding[name] = seconds.WithLabelValues(name)
		}
	}
	m.deciding[sessionMethod] = seconds.WithLabelValues(sessionMethod)
	m.compiling = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "apportion_model_compile_seconds", Buckets: fineSeconds[6:],
		Help: "Time to read a snapshot and make the model that is asked, which is one pass over its bytes.",
	})
	for i, kind := range []string{"queues", "jobs", "tasks", "nodes"} {
		m.sizes[i] = prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "apportion_snapshot_" + kind,
			Help:    "Number of " + kind + " in the snapshots compiled; tasks that are only counted are left out.",
			Buckets: []float64{1, 10, 100, 1000, 1e4, 1e5, 1e6},
		})
	}
	m.collectors = append(m.collectors, seconds)
}

// compiledModel notes a snapshot that was compiled since began; m is nil if it was refused.
func (m *metrics) compiledModel(began time.Time, of *model.Model) {
	if of == nil {
		return
	}
	m.compiling.Observe(time.Since(began).Seconds())
	m.sizes[0].Observe(float64(len(of.Queues)))
	m.sizes[1].Observe(float64(of.Jobs.Len()))
	m.sizes[2].Observe(float64(of.Tasks.Len() + of.Tallied))
	m.sizes[3].Observe(float64(len(of.Nodes)))
}

// meter returns the provider of the metrics of calls, nil if there is none.
func (s *Server) meter() metric.MeterProvider {
	if s.options.Meter != nil {
		return s.options.Meter
	}
	own, err := NewMeter(s.options.Registry)
	if err != nil {
		s.log.Error("calls are not measured", errorAttr(err))
		return nil
	}
	return own
}

// traces are gRPC's own traces, if there is a tracer. Calls that a tap refuses are not counted: gRPC does not count it as a call.
func (s *Server) traces() []grpc.ServerOption {
	o := &s.options
	if o.Tracer == nil {
		return nil
	}
	options := experimental.TraceOptions{TracerProvider: o.Tracer, TextMapPropagator: o.Propagator}
	if o.Propagator == nil {
		options.TextMapPropagator = propagation.TraceContext{}
	}
	return []grpc.ServerOption{opentelemetry.ServerOption(opentelemetry.Options{TraceOptions: options})}
}

// NewMeter returns a provider that exports its metrics to a Prometheus registry and to further readers.
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
