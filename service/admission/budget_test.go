package admission

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/decode"
)

func TestOneIdentityHasAHalfOfABudgetAndLeavesSomethingForOthers(t *testing.T) {
	b := NewBudget(BudgetOptions{Name: "b", Bytes: 1200, Retry: time.Second})
	for range 6 {
		require.True(t, b.Take("a", 100))
	}
	require.False(t, b.Take("a", 100), "a half is taken")
	for range 3 {
		require.True(t, b.Take("b", 100), "b has as much as is left at last")
	}
	require.False(t, b.Take("b", 100))
	require.True(t, b.Take("c", 100), "the next caller gets something")
	b.Give("a", 600)
	require.True(t, b.Take("b", 100))
	require.EqualValues(t, 500, b.Used())
}

func TestWhoWaitsForMemoryIsServedInOrderAndNotForLongerThanIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(BudgetOptions{Name: "b", Bytes: 1000, Retry: time.Second})
		require.True(t, b.Take("a", 500))
		began := time.Now()
		err := b.Wait(t.Context(), "a", 100, 300*time.Millisecond)
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		fault := decode.AsFault(err)
		require.Equal(t, time.Second, fault.Retry)
		require.Equal(t, map[string]string{"limit": "b", "maximum": "1000"}, fault.Metadata)

		var served []int
		var mutex sync.Mutex
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				if b.Wait(t.Context(), "a", 200, Forever) == nil {
					mutex.Lock()
					served = append(served, i)
					mutex.Unlock()
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.Wait(ctx, "a", 100, Forever), context.DeadlineExceeded)
		b.Give("a", 100)
		b.Give("a", 400)
		all.Wait()
		require.ElementsMatch(t, []int{0, 1}, served[:2])
		require.Len(t, served, 2, "the third waits on")
	})
}

func TestWhatIsMoreThanAnyMayHaveIsRefusedAtOnce(t *testing.T) {
	b := NewBudget(BudgetOptions{Name: "overload.receiving", Bytes: 1000, Retry: time.Second})
	require.Equal(t, map[string]string{"limit": "overload.receiving", "value": "501", "maximum": "500"},
		decode.AsFault(b.Wait(t.Context(), "a", 501, Forever)).Metadata)
}

func TestABudgetIsNeverExceededAndForgetsWhoHasNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBudget(BudgetOptions{Name: "b", Bytes: 1000, Retry: time.Second})
		type held struct {
			identity string
			bytes    int64
		}
		var taken []held
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				b.Give(taken[i].identity, taken[i].bytes)
				taken = append(taken[:i], taken[i+1:]...)
				continue
			}
			h := held{strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "identity")), rapid.Int64Range(0, 600).Draw(t, "bytes")}
			if b.Take(h.identity, h.bytes) {
				taken = append(taken, h)
			}
			sum := int64(0)
			of := map[string]int64{}
			for _, h := range taken {
				sum += h.bytes
				of[h.identity] += h.bytes
			}
			require.Equal(t, sum, b.used)
			require.LessOrEqual(t, sum, b.options.Bytes)
			for _, bytes := range of {
				require.LessOrEqual(t, bytes, b.options.Bytes/2)
			}
		}
		for _, h := range taken {
			b.Give(h.identity, h.bytes)
		}
		require.Empty(t, b.of)
		require.Zero(t, b.used)
	})
}

func TestSmallBookingsAreFreeAndLargeOnesCount(t *testing.T) {
	b := NewBudget(BudgetOptions{Name: "b", Bytes: 1000, Retry: time.Second})
	s := NewBookings(b, "a", 64)
	small, err := s.Book(t.Context(), 60, 0)
	require.NoError(t, err)
	require.Zero(t, b.Used())
	second, err := s.Book(t.Context(), 60, 0)
	require.NoError(t, err)
	require.EqualValues(t, 60, b.Used(), "the spare is taken")
	small.Release()
	small.Release()
	third, err := s.Book(t.Context(), 64, 0)
	require.NoError(t, err)
	require.EqualValues(t, 60, b.Used())
	second.Release()
	require.Zero(t, b.Used())
	third.Release()
}

func TestClosedBookingsHoldNothing(t *testing.T) {
	b := NewBudget(BudgetOptions{Name: "b", Bytes: 1000, Retry: time.Second})
	s := NewBookings(b, "a", 0)
	first, err := s.Book(t.Context(), 100, 0)
	require.NoError(t, err)
	s.Close()
	require.Zero(t, b.Used())
	first.Release()
	require.Zero(t, b.Used(), "given back once")
	_, err = s.Book(t.Context(), 100, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, b.Used())
}

func TestCountsForgetAnIdentityThatHasNone(t *testing.T) {
	var c Counts
	require.False(t, c.Others("a"))
	mine, all := c.Add("a", 2)
	require.Equal(t, []int{2, 2}, []int{mine, all})
	require.False(t, c.Others("a"))
	require.True(t, c.Others("b"))
	mine, all = c.Add("b", 1)
	require.Equal(t, []int{1, 3}, []int{mine, all})
	require.True(t, c.Others("a"))
	c.Add("a", -2)
	require.Equal(t, 1, c.All())
	require.Len(t, c.of, 1)
}

func TestTheLastHalfOfTheCallsIsLeftToIdentitiesWithFewer(t *testing.T) {
	c := New(Options{Calls: 4})
	for range 2 {
		_, err := c.Begin("greedy")
		require.NoError(t, err)
	}
	_, err := c.Begin("modest")
	require.NoError(t, err)
	_, err = c.Begin("greedy")
	require.ErrorContains(t, err, "too many calls have begun")
	end, err := c.Begin("modest")
	require.NoError(t, err)
	_, err = c.Begin("other")
	require.ErrorContains(t, err, "too many calls have begun")
	end()
	_, err = c.Begin("other")
	require.NoError(t, err)
	require.Equal(t, 4, c.Usage().Begun)
}
