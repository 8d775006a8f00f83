package extender

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what is asked and how it is answered.
type metrics struct {
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	decisions   *prometheus.CounterVec
	abstentions *prometheus.CounterVec
	events      *prometheus.CounterVec
	pushBytes   *prometheus.GaugeVec
	pushSeconds *prometheus.HistogramVec
	build       *prometheus.HistogramVec
	tasks       *prometheus.GaugeVec
	taken       *prometheus.GaugeVec
	cut         *prometheus.CounterVec
	panics      prometheus.Counter
}

// Reasons for which a question has no answer.
const (
	noSnapshot    = "no_snapshot"
	building      = "building"
	refusedPush   = "refused_push"
	unknown       = "unknown"
	tooLarge      = "too_large"
	panicked      = "panic"
	busy          = "busy"
	callerGone    = "caller_gone"
	outcomeOK     = "ok"
	outcomeBad    = "refused"
	eventApplied  = "applied"
	eventRepeated = "repeated"
)

func newMetrics(r prometheus.Registerer) *metrics {
	const scheduler, verb = "scheduler", "verb"
	const prefix = "apportion_extender_"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{scheduler})
	}
	histogram := func(name, help string, label string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBuckets(0.0001, 2.5, 12)
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, []string{label})
	}
	m := &metrics{
		requests: counter("requests_total", "Requests of Volcano's extender plugin, by how they ended.", scheduler, verb, "outcome"),
		seconds:  histogram("request_duration_seconds", "Time from the headers of a request to its answer.", verb),
		decisions: counter("decisions_total", "Questions decided, by the decision; in shadow they had no effect.",
			scheduler, verb, "decision", "shadow"),
		abstentions: counter("abstentions_total", "Questions left to Volcano because there was no answer, by the reason.",
			scheduler, verb, "reason"),
		events: counter("events_total", "Events of allocation, deallocation and admission, by their outcome.",
			scheduler, verb, "outcome"),
		pushBytes:   gauge("push_bytes", "Bytes of the newest push."),
		pushSeconds: histogram("push_duration_seconds", "Time from the headers of a push to its answer.", scheduler),
		build:       histogram("build_duration_seconds", "Time from the answer to a push to its snapshot.", scheduler),
		tasks:       gauge("snapshot_tasks", "Tasks of the newest snapshot."),
		taken:       gauge("snapshot_timestamp_seconds", "When the newest snapshot was taken."),
		cut:         counter("victims_cut_total", "Victims left out because an answer may have 10 MiB.", scheduler),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "panics_recovered_total", Help: "Requests and builds that ended in a panic.",
		}),
	}
	if r != nil {
		r.MustRegister(m.requests, m.seconds, m.decisions, m.abstentions, m.events, m.pushBytes, m.pushSeconds, m.build, m.tasks, m.taken,
			m.cut, m.panics)
	}
	return m
}
