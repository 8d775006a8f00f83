package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/history"
)

// History is where a follower keeps since when jobs wait for what, and what queues deserved and held.
type History struct {
	kept       *history.History
	policy     *apportionv1.Policy
	policyName string
	interval   time.Duration
	failed     prometheus.Counter
}

// OpenHistory returns the history in the file of a setting, or an empty one in memory. Causes are found by a policy, or by that of a name.
func OpenHistory(c *setting.History, policy *apportionv1.Policy, policyName string) (*History, error) {
	kept, err := history.Open(c.File, history.Options{
		Retain: c.Retain, Step: c.Interval, Gap: 3 * max(service.RecordRefresh, c.Interval), Bytes: int64(c.Bytes),
	})
	if err != nil {
		return nil, err
	}
	return &History{
		kept: kept, policy: policy, policyName: policyName, interval: c.Interval,
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_history_errors_total",
			Help: "Versions whose causes could not be found or stored. What could not be stored is kept in memory.",
		}),
	}, nil
}

// Record keeps the history of a snapshot until ctx ends, and what queues were entitled to in its versions, if memory is not nil. ahead
// returns by how much the own clock is wrong; nil: it is right. It logs once why that fails, and once that it works again.
func (h *History) Record(
	ctx context.Context, kept *service.Kept, memory *Memory, ahead func() time.Duration, log *slog.Logger,
) {
	fault := ""
	kept.Record(ctx, service.RecordOptions{
		History: h.kept, Policy: h.policy, PolicyName: h.policyName, Ahead: ahead, Interval: h.interval,
		Taken: func(v *history.Version, p *apportionv1.Policy) error {
			if memory == nil {
				return nil
			}
			return memory.Entitled.take(v, p)
		},
		Failed: func(err error) {
			before := fault
			if fault = ""; err != nil {
				fault = err.Error()
				h.failed.Inc()
			}
			switch fault {
			case before:
			case "":
				log.InfoContext(ctx, "the history goes on")
			default:
				log.WarnContext(ctx, "a version is missing in the history, or could not be stored", "error", fault)
			}
		},
	})
}

// Close releases the file.
func (h *History) Close() error { return h.kept.Close() }

// collectors are the metrics of the history.
func (h *History) collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		h.failed,
		gauge("apportion_history_bytes", "Estimated memory of the history.", h.kept.Bytes),
		gauge("apportion_history_file_bytes", "Size of the history's file; 0 without one.", h.kept.Size),
	}
}
