package service

import "github.com/prometheus/client_golang/prometheus"

// metrics of a service. Labels take a few fixed values, never what a caller sends.
type metrics struct {
	requests   *prometheus.CounterVec
	compiled   prometheus.Counter
	evicted    prometheus.Counter
	collectors []prometheus.Collector
}

func newMetrics(s *Service) *metrics {
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
			Name: "apportion_model_cache_evicted_total", Help: "Snapshots let go for others.",
		}),
	}
	for _, result := range []string{"hit", "miss"} {
		m.requests.WithLabelValues(result)
	}
	m.collectors = []prometheus.Collector{
		m.requests, m.compiled, m.evicted,
		gauge("apportion_model_cache_entries", "Snapshots held.", func() float64 {
			n, _ := s.cache.usage()
			return float64(n)
		}),
		gauge("apportion_model_cache_bytes", "Estimated memory of the snapshots held, with their idle sessions.", func() float64 {
			_, bytes := s.cache.usage()
			return float64(bytes)
		}),
		gauge("apportion_sessions", "Sessions open.", func() float64 { return float64(s.sessions.Load()) }),
		gauge("apportion_receiving_bytes", "Memory taken by snapshots that are being received in chunks.", func() float64 {
			return float64(s.receiving.Load())
		}),
	}
	return m
}
