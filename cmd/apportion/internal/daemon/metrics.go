package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/apportion/apportion/service/identity"
)

// metrics report whether the configuration on disk is the current one.
type metrics struct {
	taken, success        prometheus.Gauge
	reloads               *prometheus.CounterVec
	tlsReloads, tlsErrors prometheus.Counter
}

const (
	succeeded = "success"
	failed    = "failure"
)

func newMetrics(registry prometheus.Registerer, authority *identity.Authority) *metrics {
	m := &metrics{
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "apportion_config_last_reload_successful",
			Help: "1 if the configuration read last is in effect, 0 if it was faulty.",
		}),
		taken: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "apportion_config_last_reload_success_timestamp_seconds", Help: "When the configuration in effect was read.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_config_reloads_total", Help: "Reloads of the configuration, by outcome.",
		}, []string{"result"}),
		tlsReloads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_tls_reloads_total", Help: "Changes of certificate, key or client CA that were applied.",
		}),
		tlsErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_tls_reload_errors_total", Help: "Reloads of certificate, key or client CA that failed.",
		}),
	}
	m.success.Set(1)
	m.taken.SetToCurrentTime()
	for _, result := range []string{succeeded, failed} {
		m.reloads.WithLabelValues(result)
	}
	registry.MustRegister(m.success, m.taken, m.reloads)
	if authority != nil {
		registry.MustRegister(m.tlsReloads, m.tlsErrors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "apportion_tls_certificate_not_after_timestamp_seconds", Help: "When the server's certificate in use expires.",
		}, func() float64 { return float64(authority.NotAfter().Unix()) }))
	}
	return m
}

func (m *metrics) configTaken() {
	m.reloads.WithLabelValues(succeeded).Inc()
	m.success.Set(1)
	m.taken.SetToCurrentTime()
}

func (m *metrics) configFailed() {
	m.reloads.WithLabelValues(failed).Inc()
	m.success.Set(0)
}
