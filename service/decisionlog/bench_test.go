package decisionlog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/servicetest"
)

// BenchmarkCall shows what a log costs its callers: none, one that is written, and one whose sink never returns.
func BenchmarkCall(b *testing.B) {
	stuck := make(chan struct{})
	b.Cleanup(func() { close(stuck) })
	for _, c := range []struct {
		name string
		log  *decisionlog.Options
	}{
		{"without a log", nil},
		{"with a log", &decisionlog.Options{Sink: &memory{}}},
		{"with a log whose sink is stuck", &decisionlog.Options{Sink: &memory{stuck: stuck}}},
		{"with one of a hundred logged", &decisionlog.Options{Sink: &memory{}, Settings: setting.DecisionLog{OneIn: 100}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			options := service.Options{Policies: policies}
			if c.log != nil {
				options.Observers = []service.Observer{decisionlog.New(*c.log)}
			}
			r := servicetest.Start(b, options)
			request := &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")}
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				_, err := r.EvaluateShares(b.Context(), request)
				require.NoError(b, err)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
