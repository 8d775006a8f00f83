package forecast_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// BenchmarkForecast asks when the gang could start if all 10,000 jobs end one after the other.
func BenchmarkForecast(b *testing.B) {
	m, j := enginetest.FullCluster(b)
	for name, p := range enginetest.Policies() {
		if name == "tree" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			s, err := engine.Open(m, p, nil)
			require.NoError(b, err)
			var foreseen *forecast.Forecast
			for b.Loop() {
				foreseen, err = forecast.For(s, j)
				require.NoError(b, err)
			}
			require.Equal(b, forecast.StartsAt, foreseen.Outcome)
			b.ReportMetric(float64(len(foreseen.Ends)), "ends")
		})
	}
}
