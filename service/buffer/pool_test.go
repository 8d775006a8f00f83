package buffer

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWhatWasUsedLastIsUsedFirst(t *testing.T) {
	var kept Idle[int]
	_, ok := kept.Get()
	require.False(t, ok)
	kept.Put(1)
	kept.Put(2)
	for _, want := range []int{2, 1} {
		got, ok := kept.Get()
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok = kept.Get()
	require.False(t, ok)
}

func TestWhatNobodyWantsIsDroppedWithTheGarbage(t *testing.T) {
	var kept Idle[*[]byte]
	data := make([]byte, 1<<20)
	kept.Put(&data)
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

// newCountedMapped returns a mapped that is empty, and a function that returns the bytes that it reported last.
func newCountedMapped(t *testing.T) (m *mapped, used func() int64) {
	t.Helper()
	var told int64
	m = newMapped(1<<20, func(bytes int64) { told = bytes })
	data := m.get(1 << 20)
	if data == nil {
		t.Skip("this system has no memory outside the heap")
	}
	require.True(t, m.put(data))
	m.idle.mutex.Lock()
	unwanted := m.idle.take(func(aged[*[]byte]) bool { return true })
	m.idle.mutex.Unlock()
	m.idle.drop(unwanted)
	require.Zero(t, told)
	return m, func() int64 {
		m.counting.Lock()
		defer m.counting.Unlock()
		return told
	}
}

func TestMappedMemoryIsLentAgain(t *testing.T) {
	m, used := newCountedMapped(t)
	first := m.get(2 << 20)
	for i := range *first {
		(*first)[i] = 1
	}
	*first = (*first)[:5]
	require.True(t, m.put(first))
	require.Same(t, first, m.get(2<<20))
	other := m.get(2 << 20)
	require.NotSame(t, first, other)
	require.EqualValues(t, 4<<20, used())
	require.True(t, m.put(first))
	require.Same(t, first, m.get(2<<20))
}

func TestMemoryOfTheHeapIsNotTakenForMapped(t *testing.T) {
	m, _ := newCountedMapped(t)
	small, large := make([]byte, 100), make([]byte, 1<<20)
	require.False(t, m.put(&small))
	require.False(t, m.put(&large))
}

func TestIdleMappedMemoryGivesWayToOtherSizes(t *testing.T) {
	m, used := newCountedMapped(t)
	for size := 1 << 20; size <= 16<<20; size += 1 << 20 {
		require.True(t, m.put(m.get(size)))
		require.LessOrEqual(t, used(), int64(size+spareMapped))
	}
	all := m.get(spareMapped * 2)
	require.LessOrEqual(t, used(), int64(spareMapped*3))
	require.True(t, m.put(all))
}

func TestIdleMappedMemoryIsUnmappedWithTheGarbage(t *testing.T) {
	m, used := newCountedMapped(t)
	require.True(t, m.put(m.get(4<<20)))
	require.Eventually(t, func() bool {
		runtime.GC()
		return used() == 0
	}, 10*time.Second, time.Millisecond)
}

func TestMappedMemoryThatIsLostIsUnmapped(t *testing.T) {
	m, used := newCountedMapped(t)
	func() { (*m.get(4 << 20))[0] = 1 }()
	require.Eventually(t, func() bool {
		runtime.GC()
		return used() == 0
	}, 10*time.Second, time.Millisecond)
}
