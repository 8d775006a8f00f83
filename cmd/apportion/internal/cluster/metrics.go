package cluster

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a follower.
type metrics struct {
	events                *prometheus.CounterVec
	lists, errors         *prometheus.CounterVec
	changes, refused      prometheus.Counter
	lag, making           prometheus.Histogram
	age, complete, memory prometheus.GaugeFunc
	objects               *prometheus.GaugeVec
	read, leftOut         *prometheus.GaugeVec
}

func newMetrics(f *Follower) *metrics {
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, value func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	gauges := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"resource"})
	}
	seconds := []float64{.01, .02, .05, .1, .2, .3, .5, .7, 1, 1.5, 2, 5, 10, 30}
	m := &metrics{
		events: vector("apportion_follow_events_total", "Events of watches, by kind of objects and of event.", "resource", "type"),
		lists:  vector("apportion_follow_lists_total", "Pages of lists asked for, by kind of objects.", "resource"),
		errors: vector("apportion_follow_errors_total", "Lists and watches that failed, by kind of objects.", "resource"),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_follow_changes_total", Help: "Events that change the snapshot.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_follow_versions_refused_total", Help: "Versions of the snapshot that could not be built.",
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "apportion_follow_lag_seconds", Help: "Time from an event to the first version that contains it.", Buckets: seconds,
		}),
		making: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "apportion_follow_version_duration_seconds", Help: "Time to build a version of the snapshot.", Buckets: seconds,
		}),
		age: gauge("apportion_follow_age_seconds", "Age of the snapshot; -1 if there is none yet.", func() float64 {
			return f.age().Seconds()
		}),
		complete: gauge("apportion_follow_complete", "1 if every kind is read and watched, else 0.", func() float64 {
			if f.complete() {
				return 1
			}
			return 0
		}),
		memory: gauge("apportion_follow_version_bytes", "Estimated memory of the versions that are held.", func() float64 {
			return float64(f.kept.Bytes())
		}),
		objects: gauges("apportion_follow_objects", "Objects in the snapshot, by kind."),
		leftOut: gauges("apportion_follow_left_out", "Objects that the snapshot lacks because they are invalid, by kind."),
		read:    gauges("apportion_follow_read", "1 if the kind of objects is part of the snapshot, else 0."),
	}
	for resource := range followed {
		m.lists.WithLabelValues(resource)
		m.errors.WithLabelValues(resource)
		m.objects.WithLabelValues(resource)
		m.read.WithLabelValues(resource)
		m.leftOut.WithLabelValues(resource)
	}
	return m
}

// Collectors are the metrics of the follower.
func (f *Follower) Collectors() []prometheus.Collector {
	m := f.metrics
	collectors := []prometheus.Collector{
		m.events, m.lists, m.errors, m.changes, m.refused, m.lag, m.making, m.age, m.complete, m.memory, m.objects, m.read, m.leftOut,
	}
	if f.options.Memory != nil {
		collectors = append(collectors, f.options.Memory.collectors()...)
	}
	if f.options.History != nil {
		collectors = append(collectors, f.options.History.collectors()...)
	}
	return collectors
}
