package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// BenchmarkExplain asks why the gang waits, with a plan and a forecast.
func BenchmarkExplain(b *testing.B) {
	m, j := enginetest.FullCluster(b)
	s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
	require.NoError(b, err)
	for b.Loop() {
		explainAll(b, s, j)
	}
}
