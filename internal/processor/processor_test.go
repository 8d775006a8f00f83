package processor

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessorsAreAddedOnceAndDoNotCompute(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		added.Store(0)
	})
	t.Setenv(variable, "")
	require.False(t, Spared())
	require.Equal(t, before, Count())
	Spare()
	Spare()
	require.True(t, Spared())
	require.Equal(t, before+spare(before), runtime.GOMAXPROCS(0))
	require.Equal(t, before, Count())
}

func TestOneProcessorIsLeftWhileGarbageIsCollected(t *testing.T) {
	for count := 2; count <= 512; count++ {
		all := count + spare(count)
		// As the runtime rounds a quarter of its processors.
		collecting := int(float64(all)*0.25 + 0.5)
		left := all - count - collecting
		require.GreaterOrEqual(t, left, 1, "of %d processors", count)
		require.LessOrEqual(t, left, 2, "of %d processors", count)
	}
	require.Equal(t, 2, spare(1))
}

func TestASettingOfTheEnvironmentStands(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Setenv(variable, "2")
	Spare()
	require.False(t, Spared())
	require.Equal(t, before, runtime.GOMAXPROCS(0))
	require.Equal(t, before, Count())
}

func TestYieldReturnsWhereNothingElseIsReady(_ *testing.T) {
	for range 1000 {
		Yield()
	}
}

func BenchmarkYield(b *testing.B) {
	for b.Loop() {
		Yield()
	}
}
