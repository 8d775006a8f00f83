package odds

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWeightsAreExponentiallyDistributed compares shares with the law, at the same seed each time.
func TestWeightsAreExponentiallyDistributed(t *testing.T) {
	const n = 200_000
	s, sum, beyond := streamOf(1, 1, 1), 0.0, [4]int{}
	for range n {
		w := s.weight()
		require.Positive(t, w)
		sum += w
		for i := range beyond {
			if w > float64(i+1)/2 {
				beyond[i]++
			}
		}
	}
	require.InDelta(t, 1, sum/n, 0.01)
	for i, count := range beyond {
		require.InDelta(t, math.Exp(-float64(i+1)/2), float64(count)/n, 0.005)
	}
}
