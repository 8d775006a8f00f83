package processor

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneProcessorIsAddedOnceAndDoesNotCompute(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		spare.Store(0)
	})
	t.Setenv(variable, "")
	require.False(t, Spared())
	require.Equal(t, before, Count())
	Spare()
	Spare()
	require.True(t, Spared())
	require.Equal(t, before+1, runtime.GOMAXPROCS(0))
	require.Equal(t, before, Count())
}

func TestASettingOfTheEnvironmentStands(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Setenv(variable, "2")
	Spare()
	require.False(t, Spared())
	require.Equal(t, before, runtime.GOMAXPROCS(0))
	require.Equal(t, before, Count())
}
