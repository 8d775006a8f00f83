package service

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/wire"
)

// strict returns a gate without a reserve.
func strict(o *Overload) *gate {
	g := newGate(o)
	g.reserve = 0
	return g
}

func enterNow(t *testing.T, g *gate, identity string, r rank, bytes int64) func() {
	t.Helper()
	leave, err := g.enter(t.Context(), identity, r, bytes)
	require.NoError(t, err)
	return leave
}

func TestWorkWaitsForAProcessorAndForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			slots  int
			memory int64
		}{"processors": {1, 1000}, "memory": {8, 150}} {
			g := strict(&Overload{Running: tc.slots, Memory: tc.memory, Waiting: 10, Wait: time.Second})
			leave := enterNow(t, g, "a", decisionRank, 100)
			began := time.Now()
			go func() {
				time.Sleep(300 * time.Millisecond)
				leave()
				leave()
			}()
			enterNow(t, g, "a", decisionRank, 100)()
			require.Equal(t, 300*time.Millisecond, time.Since(began), name)
			require.Empty(t, g.lines)
			require.Equal(t, tc.memory, g.room)
			require.Equal(t, tc.slots, g.free)
		}
	})
}

func TestNobodyWaitsForLongerThanIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := strict(&Overload{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second})
		leave := enterNow(t, g, "a", decisionRank, 1)
		began := time.Now()
		_, err := g.enter(t.Context(), "b", decisionRank, 1)
		require.Equal(t, time.Second, time.Since(began))
		fault := wire.AsFault(err)
		require.Equal(t, codes.ResourceExhausted, fault.Code)
		require.Equal(t, time.Second, fault.Retry)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = g.enter(ctx, "b", decisionRank, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		leave()
		enterNow(t, g, "b", decisionRank, 1)()
		require.Empty(t, g.lines)
	})
}

func TestWhatNeverFitsIsRefusedAtOnce(t *testing.T) {
	g := strict(&Overload{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second})
	_, err := g.enter(t.Context(), "a", decisionRank, 1001)
	require.Equal(t, map[string]string{"limit": "overload.memory", "value": "1001", "maximum": "1000"}, wire.AsFault(err).Metadata)
}

// queue lets callers wait in order behind one that works, and returns the order in which they were served.
func queue(t *testing.T, g *gate, callers ...func() (string, rank)) []string {
	t.Helper()
	leave := enterNow(t, g, "worker", decisionRank, 0)
	var mutex sync.Mutex
	var served []string
	var all sync.WaitGroup
	for i, caller := range callers {
		identity, r := caller()
		all.Go(func() {
			leave, err := g.enter(t.Context(), identity, r, 100)
			if err != nil {
				return
			}
			mutex.Lock()
			served = append(served, identity+strconv.Itoa(i))
			mutex.Unlock()
			leave()
		})
		synctest.Wait()
	}
	leave()
	all.Wait()
	return served
}

func waits(identity string, r rank) func() (string, rank) {
	return func() (string, rank) { return identity, r }
}

func TestDecisionsComeBeforeSimulations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := queue(t, strict(&Overload{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second}), waits("a", simulationRank), waits("a", decisionRank), waits("b", decisionRank))
		require.Equal(t, []string{"a1", "b2", "a0"}, served)
	})
}

func TestOneIdentityDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := decisionRank
		served := queue(t, strict(&Overload{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second}),
			waits("greedy", d), waits("greedy", d), waits("greedy", d), waits("greedy", d), waits("modest", d), waits("modest", d))
		require.Equal(t, []string{"greedy0", "modest4", "greedy1", "modest5", "greedy2", "greedy3"}, served)
	})
}

func TestAFullQueueStillTakesWhoHasLessThanHisPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := decisionRank
		served := queue(t, strict(&Overload{Running: 1, Memory: 1000, Waiting: 2, Wait: time.Second}), waits("greedy", d), waits("greedy", d), waits("greedy", d), waits("modest", d))
		require.Equal(t, []string{"greedy0", "modest3", "greedy1"}, served)
	})
}

func TestCallsAreRefusedUnreadOnceOthersWaitForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := strict(&Overload{Running: 1, Memory: 1000, Waiting: 10, Wait: time.Second})
		leave := enterNow(t, g, "a", decisionRank, 1)
		require.False(t, g.saturated("a"))
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if leave, err := g.enter(t.Context(), "a", decisionRank, 1); err == nil {
				leave()
			}
		})
		synctest.Wait()
		require.False(t, g.saturated("a"))
		time.Sleep(600 * time.Millisecond)
		require.True(t, g.saturated("a"))
		require.False(t, g.saturated("b"), "who has nothing waiting is heard")
		leave()
		waiting.Wait()
		require.False(t, g.saturated("a"))
	})
}

func TestNobodyWaitsForAnothersLongCallsAlone(t *testing.T) {
	g := newGate(&Overload{Running: 2, Memory: 1000, Waiting: 10, Wait: 20 * time.Millisecond})
	first, second := enterNow(t, g, "greedy", simulationRank, 1), enterNow(t, g, "greedy", simulationRank, 1)
	_, err := g.enter(t.Context(), "greedy", decisionRank, 1)
	require.Equal(t, "overload.wait", wire.AsFault(err).Metadata["limit"], "its own calls take all slots")
	modest := enterNow(t, g, "modest", simulationRank, 1)
	_, err = g.enter(t.Context(), "modest", decisionRank, 1)
	require.Error(t, err, "one has begun beyond the slots")
	other := enterNow(t, g, "other", decisionRank, 1)
	_, err = g.enter(t.Context(), "fifth", decisionRank, 1)
	require.Error(t, err, "the reserve is taken")
	modest()
	enterNow(t, g, "fifth", decisionRank, 1)()
	for _, leave := range []func(){first, second, other} {
		leave()
	}
	require.Equal(t, 2, g.free)
	require.EqualValues(t, 1000, g.room)
	require.Empty(t, g.lines)
}

func TestOneIdentityLeavesAsMuchMemoryAsItHas(t *testing.T) {
	g := newGate(&Overload{Running: 8, Memory: 1000, Waiting: 10, Wait: 20 * time.Millisecond})
	whole := enterNow(t, g, "a", decisionRank, 1000)
	whole()
	first, second := enterNow(t, g, "a", decisionRank, 200), enterNow(t, g, "a", decisionRank, 300)
	_, err := g.enter(t.Context(), "a", decisionRank, 100)
	require.Error(t, err)
	third := enterNow(t, g, "b", decisionRank, 400)
	for _, leave := range []func(){first, second, third} {
		leave()
	}
	require.Empty(t, g.lines)
}

func TestCallsAreRefusedUnreadOnceWhatComesTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := strict(&Overload{Running: 1, Memory: 1000, Waiting: 100, Wait: time.Second})
		for range 100 {
			leave := enterNow(t, g, "a", decisionRank, 1)
			time.Sleep(100 * time.Millisecond)
			leave()
		}
		leave := enterNow(t, g, "a", decisionRank, 1)
		var waiting sync.WaitGroup
		waiting.Go(func() { enterNow(t, g, "a", decisionRank, 1)() })
		synctest.Wait()
		var arrived []func()
		for !g.saturated("a") {
			arrived = append(arrived, g.expect("a"))
		}
		require.InDelta(t, 4, len(arrived), 1, "half a second's work waits and is coming")
		require.False(t, g.saturated("b"), "who has nothing coming is heard")
		for _, done := range arrived {
			done()
		}
		require.False(t, g.saturated("a"))
		leave()
		waiting.Wait()
		require.Empty(t, g.lines)
	})
}

func TestABurstBehindWorkIsRefusedUnreadThoughNothingWaitsYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := strict(&Overload{Running: 1, Memory: 1000, Waiting: 100, Wait: time.Second})
		for range 100 {
			leave := enterNow(t, g, "a", decisionRank, 1)
			time.Sleep(100 * time.Millisecond)
			leave()
		}
		require.False(t, g.saturated("a"), "nobody is at work")
		leave := enterNow(t, g, "a", decisionRank, 1)
		var coming []func()
		for !g.saturated("a") {
			coming = append(coming, g.expect("a"))
		}
		require.InDelta(t, 5, len(coming), 1, "half a second's work is coming")
		time.Sleep(10 * time.Second)
		for _, arrived := range coming {
			arrived()
		}
		for range 100 {
			arrived := g.expect("a")
			time.Sleep(10 * time.Second)
			arrived()
		}
		coming = coming[:0]
		for !g.saturated("a") {
			coming = append(coming, g.expect("a"))
		}
		require.InDelta(t, 50, len(coming), 5, "of messages that take ten seconds to come, a tenth comes within one")
		for _, arrived := range coming {
			arrived()
		}
		leave()
		require.Empty(t, g.lines)
	})
}
