package admission

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
)

// strict returns a controller without a reserve.
func strict(o Options) *Controller {
	c := New(o)
	c.options.Reserve = 0
	return c
}

func enterNow(t *testing.T, c *Controller, identity string, r Rank, bytes int64) func() {
	t.Helper()
	turn, err := c.Enter(t.Context(), Work{identity, r, bytes})
	require.NoError(t, err)
	return turn.Leave
}

func TestWorkWaitsForAProcessorAndForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			slots  int
			memory int64
		}{"processors": {1, 1000}, "memory": {8, 150}} {
			c := strict(Options{Running: tc.slots, Memory: setting.Bytes(tc.memory), Waiting: 10, Wait: time.Second})
			leave := enterNow(t, c, "a", Decision, 100)
			began := time.Now()
			go func() {
				time.Sleep(300 * time.Millisecond)
				leave()
				leave()
			}()
			enterNow(t, c, "a", Decision, 100)()
			require.Equal(t, 300*time.Millisecond, time.Since(began), name)
			require.Empty(t, c.tenants)
			require.Zero(t, c.Usage().Bytes)
			require.Equal(t, tc.slots, c.free)
		}
	})
}

func TestNobodyWaitsForLongerThanIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second})
		leave := enterNow(t, c, "a", Decision, 1)
		began := time.Now()
		_, err := c.Enter(t.Context(), Work{"b", Decision, 1})
		require.Equal(t, time.Second, time.Since(began))
		fault := decode.AsFault(err)
		require.Equal(t, codes.ResourceExhausted, fault.Code)
		require.Equal(t, time.Second, fault.Retry)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = c.Enter(ctx, Work{"b", Decision, 1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		leave()
		enterNow(t, c, "b", Decision, 1)()
		require.Empty(t, c.tenants)
	})
}

func TestWhatNeverFitsIsRefusedAtOnce(t *testing.T) {
	c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second})
	_, err := c.Enter(t.Context(), Work{"a", Decision, 876})
	require.Equal(t, map[string]string{"limit": "overload.memory", "value": "876", "maximum": "875"}, decode.AsFault(err).Metadata)
}

// queue lets callers wait in order behind one that works, and returns the order in which they were served.
func queue(t *testing.T, c *Controller, callers ...func() (string, Rank)) []string {
	t.Helper()
	leave := enterNow(t, c, "worker", Decision, 0)
	var mutex sync.Mutex
	var served []string
	var all sync.WaitGroup
	for i, caller := range callers {
		identity, r := caller()
		all.Go(func() {
			turn, err := c.Enter(t.Context(), Work{identity, r, 100})
			if err != nil {
				return
			}
			mutex.Lock()
			served = append(served, identity+strconv.Itoa(i))
			mutex.Unlock()
			turn.Leave()
		})
		synctest.Wait()
	}
	leave()
	all.Wait()
	return served
}

func waits(identity string, r Rank) func() (string, Rank) {
	return func() (string, Rank) { return identity, r }
}

func TestDecisionsComeBeforeSimulations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := queue(t, strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second}), waits("a", Simulation), waits("a", Decision), waits("b", Decision))
		require.Equal(t, []string{"a1", "b2", "a0"}, served)
	})
}

func TestOneIdentityDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Decision
		served := queue(t, strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second}),
			waits("greedy", d), waits("greedy", d), waits("greedy", d), waits("greedy", d), waits("modest", d), waits("modest", d))
		require.Equal(t, []string{"greedy0", "modest4", "greedy1", "modest5", "greedy2", "greedy3"}, served)
	})
}

func TestAFullQueueStillTakesWhoHasLessThanHisPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Decision
		served := queue(t, strict(Options{Running: 1, Memory: 1000, Waiting: 2, Wait: time.Second}), waits("greedy", d), waits("greedy", d), waits("greedy", d), waits("modest", d))
		require.Equal(t, []string{"greedy0", "modest3", "greedy1"}, served)
	})
}

func TestCallsAreRefusedUnreadOnceOthersWaitForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second})
		leave := enterNow(t, c, "a", Decision, 1)
		require.False(t, c.saturated("a"))
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if turn, err := c.Enter(t.Context(), Work{"a", Decision, 1}); err == nil {
				turn.Leave()
			}
		})
		synctest.Wait()
		require.False(t, c.saturated("a"))
		time.Sleep(600 * time.Millisecond)
		require.True(t, c.saturated("a"))
		require.False(t, c.saturated("b"), "who has nothing waiting is heard")
		leave()
		waiting.Wait()
		require.False(t, c.saturated("a"))
	})
}

func TestNobodyWaitsForAnothersLongCallsAlone(t *testing.T) {
	c := New(Options{Running: 2, Reserve: 2, Memory: 1000, Waiting: 10, Wait: 20 * time.Millisecond})
	first, second := enterNow(t, c, "greedy", Simulation, 1), enterNow(t, c, "greedy", Simulation, 1)
	_, err := c.Enter(t.Context(), Work{"greedy", Decision, 1})
	require.Equal(t, "overload.wait", decode.AsFault(err).Metadata["limit"], "its own calls take all slots")
	modest := enterNow(t, c, "modest", Simulation, 1)
	_, err = c.Enter(t.Context(), Work{"modest", Decision, 1})
	require.Error(t, err, "one has begun beyond the slots")
	other := enterNow(t, c, "other", Decision, 1)
	_, err = c.Enter(t.Context(), Work{"fifth", Decision, 1})
	require.Error(t, err, "the reserve is taken")
	modest()
	enterNow(t, c, "fifth", Decision, 1)()
	for _, leave := range []func(){first, second, other} {
		leave()
	}
	require.Equal(t, 2, c.free)
	require.Zero(t, c.Usage().Bytes)
	require.Empty(t, c.tenants)
}

func TestOneIdentityLeavesAsMuchMemoryAsItHas(t *testing.T) {
	c := New(Options{Running: 8, Memory: 1144, Waiting: 10, Wait: 20 * time.Millisecond})
	whole := enterNow(t, c, "a", Decision, 1000)
	whole()
	first, second := enterNow(t, c, "a", Decision, 200), enterNow(t, c, "a", Decision, 300)
	_, err := c.Enter(t.Context(), Work{"a", Decision, 100})
	require.Error(t, err)
	third := enterNow(t, c, "b", Decision, 400)
	for _, leave := range []func(){first, second, third} {
		leave()
	}
	require.Empty(t, c.tenants)
}

func TestCallsAreRefusedUnreadOnceWhatComesTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 100, Wait: time.Second})
		for range 100 {
			leave := enterNow(t, c, "a", Decision, 1)
			time.Sleep(100 * time.Millisecond)
			leave()
		}
		leave := enterNow(t, c, "a", Decision, 1)
		var waiting sync.WaitGroup
		waiting.Go(func() { enterNow(t, c, "a", Decision, 1)() })
		synctest.Wait()
		var arrived []func()
		for !c.saturated("a") {
			arrived = append(arrived, c.Receiving("a"))
		}
		require.InDelta(t, 4, len(arrived), 1, "half a second's work waits and is coming")
		require.False(t, c.saturated("b"), "who has nothing coming is heard")
		for _, done := range arrived {
			done()
		}
		require.False(t, c.saturated("a"))
		leave()
		waiting.Wait()
		require.Empty(t, c.tenants)
	})
}

func TestABurstBehindWorkIsRefusedUnreadThoughNothingWaitsYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 100, Wait: time.Second})
		for range 100 {
			leave := enterNow(t, c, "a", Decision, 1)
			time.Sleep(100 * time.Millisecond)
			leave()
		}
		require.False(t, c.saturated("a"), "no call is at work")
		leave := enterNow(t, c, "a", Decision, 1)
		var coming []func()
		for !c.saturated("a") {
			coming = append(coming, c.Receiving("a"))
		}
		require.InDelta(t, 5, len(coming), 1, "half a second's work is coming")
		time.Sleep(10 * time.Second)
		for _, arrived := range coming {
			arrived()
		}
		for range 100 {
			arrived := c.Receiving("a")
			time.Sleep(10 * time.Second)
			arrived()
		}
		coming = coming[:0]
		for !c.saturated("a") {
			coming = append(coming, c.Receiving("a"))
		}
		require.InDelta(t, 50, len(coming), 5, "of messages that take ten seconds to come, a tenth comes within one")
		for _, arrived := range coming {
			arrived()
		}
		leave()
		require.Empty(t, c.tenants)
	})
}

func TestASlotThatIsFreeBetweenTwoMessagesLetsNoMoreIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := strict(Options{Running: 1, Memory: 1000, Waiting: 100, Wait: time.Second})
		work := func(busy, free time.Duration) {
			for range 200 {
				leave := enterNow(t, c, "a", Decision, 1)
				time.Sleep(busy)
				leave()
				time.Sleep(free)
			}
		}
		work(90*time.Millisecond, 10*time.Millisecond)
		for range 20 {
			c.Receiving("a")
		}
		require.True(t, c.saturated("a"), "nothing waits, but what comes takes two seconds")
		require.False(t, c.saturated("b"))
		work(90*time.Millisecond, 300*time.Millisecond)
		require.False(t, c.saturated("a"), "work waits for slow senders")
		work(90*time.Millisecond, 10*time.Millisecond)
		require.True(t, c.saturated("a"))
		time.Sleep(time.Second)
		require.False(t, c.saturated("a"), "there was no work for a second")
	})
}

func TestWorkMayGrowIntoTheMemoryThatIsFree(t *testing.T) {
	const kilobyte = 1 << 10
	c := New(Options{Memory: 80 * kilobyte, Running: 2, Wait: time.Second})
	mine, err := c.Enter(t.Context(), Work{Identity: "a", Bytes: 20 * kilobyte})
	require.NoError(t, err)
	require.NoError(t, mine.Grow(10*kilobyte))
	require.EqualValues(t, 30*kilobyte, c.Usage().Bytes)
	fault := decode.AsFault(mine.Grow(41 * kilobyte))
	require.Equal(t, codes.OutOfRange, fault.Code, "more than there is for all large work, which an eighth of the memory is not for")

	others, err := c.Enter(t.Context(), Work{Identity: "b", Bytes: 15 * kilobyte})
	require.NoError(t, err)
	fault = decode.AsFault(mine.Grow(26 * kilobyte))
	require.Equal(t, codes.ResourceExhausted, fault.Code)
	require.Positive(t, fault.Retry)
	require.NoError(t, mine.Grow(25*kilobyte), "one call of an identity may take all that is free")
	mine.Leave()
	require.NoError(t, mine.Grow(kilobyte), "it is not taken any more")
	require.EqualValues(t, 15*kilobyte, c.Usage().Bytes)
	others.Leave()
	require.Zero(t, c.Usage().Bytes)
	require.NoError(t, (*Turn)(nil).Grow(kilobyte))
}
