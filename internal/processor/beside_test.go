package processor_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/processor"
)

func TestEachNumberIsCalledOnceByGoroutinesBesideEachOther(t *testing.T) {
	t.Cleanup(func(before int) func() { return func() { runtime.GOMAXPROCS(before) } }(runtime.GOMAXPROCS(4)))
	for _, n := range []int{0, 1, 2, 7, 1000} {
		calls := make([]int, n)
		processor.Beside(n, func(i int) { calls[i]++ })
		for i, times := range calls {
			require.Equal(t, 1, times, i)
		}
	}
	// The first call ends only if the second is under way, and calls others itself.
	met := make(chan int)
	processor.Beside(2, func(i int) {
		if i == 0 {
			met <- 1
			return
		}
		<-met
		processor.Beside(9, func(int) {})
	})
}

func TestAPanicBesideOthersIsOneOfTheCaller(t *testing.T) {
	t.Cleanup(func(before int) func() { return func() { runtime.GOMAXPROCS(before) } }(runtime.GOMAXPROCS(4)))
	for last := range 8 {
		require.PanicsWithValue(t, "lost", func() {
			processor.Beside(8, func(i int) {
				if i == last {
					panic("lost")
				}
			})
		})
	}
	for at := range 3 {
		require.PanicsWithValue(t, "broken", func() {
			processor.AtOnce(3, func(i int) {
				if i == at {
					panic("broken")
				}
			})
		})
	}
	called := 0
	processor.Beside(1, func(int) { called++ })
	require.Equal(t, 1, called)
}
