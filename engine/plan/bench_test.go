package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/internal/test/enginetest"
)

func BenchmarkPlan(b *testing.B) {
	m, j := enginetest.FullCluster(b)
	for name, p := range enginetest.Policies() {
		if name == "tree" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			s, err := engine.Open(m, p, nil)
			require.NoError(b, err)
			var made *plan.Plan
			for b.Loop() {
				made = ask(b, s, j, plan.ByAny)
			}
			require.Equal(b, plan.Made, made.Outcome, "%+v", made.Miss)
			b.ReportMetric(float64(len(made.Victims)), "victims")
			b.ReportMetric(float64(made.Looked), "looked")
		})
	}
}
