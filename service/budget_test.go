package service

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/wire"
)

func TestOneIdentityHasAHalfOfABudgetAndLeavesSomethingForOthers(t *testing.T) {
	b := newBudget("b", 1200, time.Second)
	for range 6 {
		require.True(t, b.take("a", 100))
	}
	require.False(t, b.take("a", 100), "a half is taken")
	for range 3 {
		require.True(t, b.take("b", 100), "b has as much as is left at last")
	}
	require.False(t, b.take("b", 100))
	require.True(t, b.take("c", 100), "whoever comes next gets something")
	b.give("a", 600)
	require.True(t, b.take("b", 100))
	require.EqualValues(t, 500, b.usage())
}

func TestWhoWaitsForMemoryIsServedInOrderAndNotForLongerThanIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget("b", 1000, time.Second)
		require.True(t, b.take("a", 500))
		began := time.Now()
		err := b.wait(t.Context(), "a", 100, 300*time.Millisecond)
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		fault := wire.AsFault(err)
		require.Equal(t, time.Second, fault.Retry)
		require.Equal(t, map[string]string{"limit": "b", "maximum": "1000"}, fault.Metadata)

		var served []int
		var mutex sync.Mutex
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				if b.wait(t.Context(), "a", 200, -1) == nil {
					mutex.Lock()
					served = append(served, i)
					mutex.Unlock()
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.wait(ctx, "a", 100, -1), context.DeadlineExceeded)
		b.give("a", 100)
		b.give("a", 400)
		all.Wait()
		require.ElementsMatch(t, []int{0, 1}, served[:2])
		require.Len(t, served, 2, "the third waits on")
	})
}

func TestWhatIsMoreThanAnyMayHaveIsRefusedAtOnce(t *testing.T) {
	b := newBudget("overload.receiving", 1000, time.Second)
	require.Equal(t, map[string]string{"limit": "overload.receiving", "value": "501", "maximum": "500"},
		wire.AsFault(b.wait(t.Context(), "a", 501, -1)).Metadata)
}

func TestABudgetIsNeverExceededAndForgetsWhoHasNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBudget("b", 1000, time.Second)
		type held struct {
			identity string
			bytes    int64
		}
		var taken []held
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				b.give(taken[i].identity, taken[i].bytes)
				taken = append(taken[:i], taken[i+1:]...)
				continue
			}
			h := held{strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "identity")), rapid.Int64Range(0, 600).Draw(t, "bytes")}
			if b.take(h.identity, h.bytes) {
				taken = append(taken, h)
			}
			sum := int64(0)
			of := map[string]int64{}
			for _, h := range taken {
				sum += h.bytes
				of[h.identity] += h.bytes
			}
			require.Equal(t, sum, b.used)
			require.LessOrEqual(t, sum, b.limit)
			for _, bytes := range of {
				require.LessOrEqual(t, bytes, b.limit/2)
			}
		}
		for _, h := range taken {
			b.give(h.identity, h.bytes)
		}
		require.Empty(t, b.of)
		require.Zero(t, b.used)
	})
}
