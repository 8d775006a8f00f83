package memory

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsMappedIsSubtractedFromTheLimit(t *testing.T) {
	before := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(before)
	outside := Outside()
	for _, step := range []struct{ bytes, want int64 }{
		{1 << 30, 1<<40 - 1<<30},
		{1 << 39, 1 << 39},
		{1 << 41, 0},
		{0, 1 << 40},
	} {
		outside(step.bytes)
		require.Equal(t, step.want, debug.SetMemoryLimit(-1))
	}
}

func TestAProcessWithoutALimitHasNone(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	require.Nil(t, Outside())
}
