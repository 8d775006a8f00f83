package service

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWhatWasUsedLastIsUsedFirst(t *testing.T) {
	var kept idle[int]
	_, ok := kept.get()
	require.False(t, ok)
	kept.put(1)
	kept.put(2)
	for _, want := range []int{2, 1} {
		got, ok := kept.get()
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok = kept.get()
	require.False(t, ok)
}

func TestWhatNobodyWantsIsDroppedWithTheGarbage(t *testing.T) {
	var kept idle[*[]byte]
	data := make([]byte, 1<<20)
	kept.put(&data)
	require.Eventually(t, func() bool {
		runtime.GC()
		kept.mutex.Lock()
		defer kept.mutex.Unlock()
		return len(kept.kept) == 0 && !kept.watched
	}, 10*time.Second, time.Millisecond)
}

func TestMemoryIsLentInSizesAnEighthApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<30).Draw(t, "bytes")
		size, class := sizeOf(n)
		require.GreaterOrEqual(t, size, n)
		require.LessOrEqual(t, size, n+n/8+1)
		again, same := sizeOf(size)
		require.Equal(t, size, again)
		require.Equal(t, class, same)
		if n > 0 {
			smaller, other := sizeOf(size - 1)
			require.True(t, smaller == size || other != class, "two sizes in one class")
		}
	})
}
