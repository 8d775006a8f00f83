package odds_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/odds"
)

// TestATaskStartsAtTheFirstSecondOutsideOfThePeriods compares with a look at every second.
func TestATaskStartsAtTheFirstSecondOutsideOfThePeriods(t *testing.T) {
	const second, horizon = 1_000_000_000, 60
	rapid.Check(t, func(t *rapid.T) {
		shut := &odds.Shut{Lasts: odds.Never, Holder: int32(rapid.IntRange(-1, 1).Draw(t, "job"))}
		if rapid.Bool().Draw(t, "ends") {
			shut.Lasts = int64(rapid.IntRange(0, 20*second).Draw(t, "lasts"))
		}
		if rapid.Bool().Draw(t, "tight") {
			shut.Tight = []bool{true}
		}
		var list []odds.Period
		for range rapid.IntRange(0, 5).Draw(t, "periods") {
			p := odds.Period{
				From: int64(rapid.IntRange(-second, 40*second).Draw(t, "from")), Until: odds.Never,
				Holder: int32(rapid.IntRange(-1, 1).Draw(t, "holder")), Part: rapid.Bool().Draw(t, "part"),
			}
			if rapid.IntRange(0, 9).Draw(t, "ends") > 0 {
				p.Until = p.From/second + int64(rapid.IntRange(1, 15).Draw(t, "long"))
			}
			if p.Until > 0 {
				list = append(list, p)
			}
		}
		m := &odds.Model{
			Nodes: [][]float64{{8}}, Queues: []odds.Queue{{Parent: -1}}, Horizon: horizon, Pause: 1, Periods: [][]odds.Period{list},
			Kinds: []odds.Kind{{Gang: []odds.Tasks{{Request: []float64{8}, N: 1, Shut: shut}}}},
			Jobs:  []odds.Job{{Ends: odds.Unknown, Waits: true}},
		}
		require.Equal(t, firstOutside(shut, list, horizon), odds.NewBase(m).Run(1, 0).Start)
	})
}

// firstOutside returns the first second at which a task that starts then has ended before each period of others that is to come.
func firstOutside(shut *odds.Shut, list []odds.Period, horizon int64) int64 {
	const second = 1_000_000_000
	for at := int64(0); at <= horizon; at++ {
		free := true
		for _, p := range list {
			mine := p.Holder >= 0 && p.Holder == shut.Holder || p.Part && shut.Tight == nil
			ends := shut.Lasts != odds.Never && at*second+shut.Lasts <= p.From
			free = free && (mine || at >= p.Until || ends)
		}
		if free {
			return at
		}
	}
	return odds.Never
}

// TestARunAsksWhetherToStopOnceForSoMuchWork ends a run at each time that it asks.
func TestARunAsksWhetherToStopOnceForSoMuchWork(t *testing.T) {
	m := history(2)
	m.Jobs = append(m.Jobs, odds.Job{Ends: odds.Unknown, Waits: true})
	m.Asked = len(m.Jobs) - 1
	m.Kinds = append(m.Kinds, odds.Kind{Gang: []odds.Tasks{{Request: []float64{1 << 40}, N: 1}}})
	m.Jobs[m.Asked].Kind = len(m.Kinds) - 1
	m.Arrivals, m.Horizon, m.Pause = true, 1<<24, 1
	for range 5000 {
		m.Kinds = append(m.Kinds, m.Kinds[0])
	}
	work, calls := int64(0), 0
	for most := 2; most < 12; most++ {
		calls = 0
		m.Stop = func() bool { calls++; return calls >= most }
		o := odds.NewBase(m).Run(1, 0)
		require.True(t, o.Stopped)
		require.Less(t, o.Work-work, int64(1<<20+100_000), "since it asked before")
		work = o.Work
	}
	require.Positive(t, work)
}
