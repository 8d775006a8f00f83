package admission

import (
	"context"
	"io"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// work lasts for as long as it is given a processor for, looks at whether to yield every millisecond, and returns when it ended.
func work(t *testing.T, c *Controller, identity string, r Rank, bytes int64, lasts time.Duration) (ended time.Duration) {
	t.Helper()
	began := time.Now()
	turn, err := c.Enter(t.Context(), Work{identity, r, bytes})
	require.NoError(t, err)
	defer turn.Leave()
	for done := time.Duration(0); done < lasts; done += time.Millisecond {
		time.Sleep(time.Millisecond)
		turn.Yield(t.Context())
	}
	return time.Since(began)
}

func TestShortWorkPassesLongWorkOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Running: 2, Reserve: 3, Memory: 1 << 30, Waiting: 100, Wait: time.Second})
		var hostile sync.WaitGroup
		for i := range 8 {
			hostile.Go(func() { work(t, c, strconv.Itoa(i), Decision, 1<<20, time.Second) })
		}
		time.Sleep(50 * time.Millisecond)
		for range 50 {
			require.Less(t, work(t, c, "small", Simulation, 1000, time.Millisecond), 10*time.Millisecond)
		}
		hostile.Wait()
		require.Empty(t, c.tenants)
		require.Equal(t, 2, c.free)
		require.Zero(t, c.Usage())
	})
}

func TestLongWorkLetsOthersGoOnForAsLongAsTheyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Running: 2, Memory: 1 << 30, Waiting: 10, Wait: time.Second})
		begin := func(identity string) {
			end, err := c.Begin(identity)
			require.NoError(t, err)
			end()
		}
		begin("long")
		leave := enterNow(t, c, "long", Decision, 1000)
		require.False(t, c.mixed.recent(), "one tenant calls")
		for range 10 {
			begin("small")
			enterNow(t, c, "small", Decision, 1)()
			require.True(t, c.mixed.recent(), "two tenants call")
			time.Sleep(mixedFor * 9 / 10)
			require.True(t, c.mixed.recent(), "two tenants call")
		}
		leave()
		time.Sleep(mixedFor)
		begin("small")
		enterNow(t, c, "small", Decision, 1)()
		require.False(t, c.mixed.recent(), "only one tenant still calls")
	})
}

func TestTheReserveIsForSmallWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory, large = 6400, 101
		c := New(Options{Running: 1, Reserve: 4, Memory: memory, Waiting: 10, Wait: time.Second})
		leave := enterNow(t, c, "hostile", Decision, large)
		var waiting sync.WaitGroup
		waiting.Go(func() { work(t, c, "large", Decision, large, time.Millisecond) })
		synctest.Wait()
		require.Equal(t, 1, c.Usage().Waiting, "large work waits for a slot")
		enterNow(t, c, "small", Decision, large-1)()
		require.Equal(t, 1, c.Usage().Waiting)
		leave()
		waiting.Wait()
		require.Zero(t, c.Usage())
	})
}

func TestSmallWorkRunsForLongerBeforeItMakesWay(t *testing.T) {
	for _, tc := range []struct {
		name  string
		bytes int64
		most  time.Duration
	}{{"small", 1, smallSlice}, {"large", 1000, slice}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := strict(Options{Running: 1, Memory: 8000, Waiting: 10, Wait: time.Second})
				var all sync.WaitGroup
				var other time.Duration
				began := time.Now()
				all.Go(func() { work(t, c, "first", Decision, tc.bytes, 20*time.Millisecond) })
				synctest.Wait()
				all.Go(func() {
					turn, err := c.Enter(t.Context(), Work{"other", Decision, 1})
					if err == nil {
						other = time.Since(began)
						turn.Leave()
					}
				})
				all.Wait()
				require.InDelta(t, tc.most, other, float64(time.Millisecond/2))
			})
		})
	}
}

func TestLongWorkOfEqualTenantsTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Minute})
		ended := make([]time.Duration, 4)
		var all sync.WaitGroup
		for i := range ended {
			all.Go(func() { ended[i] = work(t, c, strconv.Itoa(i), Decision, 1, 100*time.Millisecond) })
		}
		all.Wait()
		for _, e := range ended {
			require.Greater(t, e, 350*time.Millisecond, "none ends before the others had nearly as much")
		}
	})
}

func TestTimeThatOthersLeftUnusedIsNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Minute})
		var all sync.WaitGroup
		var first, second time.Duration
		all.Go(func() { first = work(t, c, "early", Decision, 1, 10*time.Second+200*time.Millisecond) })
		time.Sleep(10 * time.Second)
		all.Go(func() { second = work(t, c, "late", Decision, 1, 2*time.Second) })
		all.Wait()
		require.Less(t, first, 11*time.Second, "the early one goes on soon")
		require.Less(t, second, 2500*time.Millisecond)
	})
}

func TestParkedWorkWhoseCallerLeavesGoesOnToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		turn, err := c.Enter(ctx, Work{"long", Decision, 1})
		require.NoError(t, err)
		time.Sleep(10 * time.Millisecond)
		var other sync.WaitGroup
		other.Go(func() {
			turn, err := c.Enter(t.Context(), Work{"other", Decision, 1})
			if err == nil {
				time.Sleep(time.Second)
				turn.Leave()
			}
		})
		synctest.Wait()
		time.AfterFunc(100*time.Millisecond, cancel)
		began := time.Now()
		turn.Yield(ctx)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		turn.Leave()
		turn.Leave()
		other.Wait()
		require.Empty(t, c.tenants)
		require.Equal(t, 1, c.free)
	})
}

func TestWorkThatRestsHoldsNoSlot(t *testing.T) {
	for name, fault := range map[string]error{"what it waits for comes": nil, "does not come": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: 250 * time.Millisecond})
				turn, err := c.Enter(t.Context(), Work{"long", Decision, 100})
				require.NoError(t, err)
				err = turn.Rest(t.Context(), func() error {
					began := time.Now()
					for range 3 {
						other, err := c.Enter(t.Context(), Work{"other", Decision, 500})
						require.NoError(t, err)
						time.Sleep(100 * time.Millisecond)
						other.Leave()
					}
					require.Equal(t, 300*time.Millisecond, time.Since(began))
					require.EqualValues(t, 100, c.Usage().Bytes, "its memory stays booked")
					return fault
				})
				require.Equal(t, fault, err)
				require.Equal(t, 1, c.Usage().Running)
				turn.Leave()
				require.Empty(t, c.tenants)
				require.Equal(t, 1, c.free)
			})
		})
	}
}

func TestSmallWorkHasMemoryThatLargeWorkNeverTakes(t *testing.T) {
	c := New(Options{Running: 8, Memory: 6400, Waiting: 10, Wait: 20 * time.Millisecond})
	large := enterNow(t, c, "a", Decision, 5600)
	_, err := c.Enter(t.Context(), Work{"b", Decision, 101})
	require.Error(t, err, "not small")
	var small []func()
	for i := range 4 {
		small = append(small, enterNow(t, c, strconv.Itoa(i), Decision, 100))
	}
	for _, leave := range append(small, large) {
		leave()
	}
	require.Zero(t, c.Usage())
}

func TestNothingLargeOvertakesLargeWorkThatWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Running: 8, Memory: 8000, Waiting: 10, Wait: time.Minute})
		leave := enterNow(t, c, "a", Decision, 4000)
		var all sync.WaitGroup
		var mutex sync.Mutex
		var order []string
		enter := func(identity string, bytes int64) {
			all.Go(func() {
				turn, err := c.Enter(t.Context(), Work{identity, Decision, bytes})
				if err != nil {
					return
				}
				mutex.Lock()
				order = append(order, identity)
				mutex.Unlock()
				time.Sleep(time.Second)
				turn.Leave()
			})
			synctest.Wait()
		}
		enter("b", 5000)
		enter("c", 3000)
		enter("d", 100)
		require.Equal(t, []string{"d"}, order, "small work has its own memory")
		leave()
		all.Wait()
		require.Equal(t, []string{"d", "b", "c"}, order)
	})
}

// TestWhateverComesEverythingIsGivenBack lets tenants of every kind come, yield and leave, and looks at the books throughout.
func TestWhateverComesEverythingIsGivenBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		running, reserve := rapid.IntRange(1, 3).Draw(r, "running"), rapid.IntRange(1, 3).Draw(r, "reserve")
		synctest.Test(t, func(t *testing.T) {
			c := New(Options{Running: running, Reserve: reserve, Memory: 1000, Waiting: 20, Wait: 50 * time.Millisecond})
			var all sync.WaitGroup
			for range rapid.IntRange(1, 20).Draw(r, "calls") {
				identity := strconv.Itoa(rapid.IntRange(0, 4).Draw(r, "tenant"))
				w := Work{identity, Rank(rapid.IntRange(0, 1).Draw(r, "rank")), rapid.Int64Range(0, 800).Draw(r, "bytes")}
				after, lasts := rapid.IntRange(0, 30).Draw(r, "after"), rapid.IntRange(0, 20).Draw(r, "lasts")
				gives, rests := rapid.IntRange(1, 200).Draw(r, "gives up after"), rapid.IntRange(0, 4).Draw(r, "rests")
				all.Go(func() {
					time.Sleep(time.Duration(after) * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(gives)*time.Millisecond)
					defer cancel()
					turn, err := c.Enter(ctx, w)
					if err != nil {
						return
					}
					for range lasts {
						time.Sleep(time.Millisecond)
						turn.Yield(ctx)
						if rests > 0 {
							rests--
							_ = turn.Rest(ctx, func() error { time.Sleep(3 * time.Millisecond); return ctx.Err() })
						}
						c.mutex.Lock()
						within := c.room[largePool] >= 0 && c.room[smallPool] >= 0
						c.mutex.Unlock()
						require.True(r, within)
					}
					turn.Leave()
				})
			}
			all.Wait()
			require.Empty(r, c.tenants)
			require.Equal(r, running, c.free)
			require.Zero(r, c.Usage())
			require.False(r, c.crowded.Load())
		})
	})
}
