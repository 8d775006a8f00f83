package backlog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/backlog"
)

func TestAQueueIsAListWithBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxItems, maxBytes = 5, 20
		q := backlog.New[int](maxItems, maxBytes)
		var plain []int
		sizes := map[int]int64{}
		bytes := int64(0)
		for i := range rapid.IntRange(0, 60).Draw(t, "operations") {
			if rapid.Bool().Draw(t, "put") {
				size := rapid.Int64Range(0, 25).Draw(t, "size")
				fits := len(plain) < maxItems && bytes+size <= maxBytes
				require.Equal(t, fits, q.Put(i, size))
				if fits {
					plain, sizes[i], bytes = append(plain, i), size, bytes+size
				}
			} else {
				got, ok := q.Take()
				require.Equal(t, len(plain) > 0, ok)
				if ok {
					require.Equal(t, plain[0], got)
					bytes -= sizes[got]
					plain = plain[1:]
				}
			}
			items, held := q.Usage()
			require.Equal(t, len(plain), items)
			require.Equal(t, bytes, held)
		}
	})
}

func TestWhoWaitsForRoomGetsItInTimeOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := backlog.New[string](1, 10)
		require.True(t, q.Put("first", 1))
		began := time.Now()
		require.False(t, q.PutWithin(t.Context(), "late", 1, time.Second))
		require.Equal(t, time.Second, time.Since(began))

		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.False(t, q.PutWithin(gone, "gone", 1, time.Hour))
		require.False(t, q.PutWithin(t.Context(), "too large", 11, time.Hour))

		go func() {
			time.Sleep(time.Second)
			q.Take()
		}()
		require.True(t, q.PutWithin(t.Context(), "patient", 1, time.Minute))
		got, _ := q.Take()
		require.Equal(t, "patient", got)
	})
}
