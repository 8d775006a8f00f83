package odds_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/odds"
)

// history is a model of one node, on which one job ran after the other: each arrives while the one before it runs, and waits for as long
// as that takes by factor more than its runtime says.
func history(factor int64) *odds.Model {
	const day, each = 24 * 3600, 3600
	m := &odds.Model{
		Nodes: [][]float64{{8}}, Queues: []odds.Queue{{Parent: -1}}, Kinds: []odds.Kind{{Gang: []odds.Tasks{{Request: []float64{8}, N: 1}}}},
		Horizon: 10 * day, Pause: 60, Arrivals: true,
	}
	var observed []odds.Observed
	for at := int64(-14 * day); at < 0; at += each * factor {
		observed = append(observed, odds.Observed{Began: at, Seconds: each, Ended: true})
	}
	sample := odds.NewSample(observed)
	for _, o := range observed {
		// It arrived an hour before it began.
		m.Past = append(m.Past, odds.Past{Arrival: o.Began - each*factor, Wait: each * factor, Seconds: each, Drawn: sample})
	}
	return m
}

func TestStartsAreMovedByWhatCameOfForecastsOfThePast(t *testing.T) {
	// Jobs begin an hour after the one before has ended, for a reason that the model does not have.
	h := history(2).Hindcast(1, 1<<40)
	require.Greater(t, h.Times, 10)
	starts := []int64{1000, 2000, 3000, 4000, odds.Never}
	require.True(t, h.Correct(starts))
	require.True(t, slices.IsSorted(starts))
	require.Equal(t, []int64{2000, 3000, 4000, odds.Never, odds.Never}, starts)
}

func TestAModelThatIsRightIsHardlyCorrected(t *testing.T) {
	h := history(1).Hindcast(1, 1<<40)
	require.Greater(t, h.Times, 10)
	starts := []int64{1000, 2000, 3000, 4000, 5000}
	require.True(t, h.Correct(starts))
	require.InDelta(t, 3000, starts[2], 1000)
}

func TestNothingIsCorrectedWithoutEnoughOfAPast(t *testing.T) {
	for name, change := range map[string]func(m *odds.Model){
		"no past":              func(m *odds.Model) { m.Past = nil },
		"waits are not known":  func(m *odds.Model) { m.Past[3].Wait = odds.Unknown },
		"a past of a few jobs": func(m *odds.Model) { m.Past = m.Past[len(m.Past)-3:] },
	} {
		m := history(2)
		change(m)
		starts := []int64{1000, 2000}
		require.False(t, m.Hindcast(1, 1<<40).Correct(starts), name)
		require.Equal(t, []int64{1000, 2000}, starts, name)
	}
	h := history(2).Hindcast(1, 10)
	require.False(t, h.Correct(nil), "there was no work for it")
	require.Less(t, h.Work, int64(1000))
}

// TestHindcastsDoNoMoreWorkThanTheyMay asks with less and less work. What it costs to make a moment may come on top once.
func TestHindcastsDoNoMoreWorkThanTheyMay(t *testing.T) {
	all := history(2).Hindcast(1, 1<<40)
	times := all.Times
	for work := all.Work; work > 0; work -= all.Work / 7 {
		h := history(2).Hindcast(1, work)
		require.LessOrEqual(t, h.Work, work+10_000)
		require.LessOrEqual(t, h.Times, times)
		times = h.Times
	}
	require.Zero(t, history(2).Hindcast(1, 1).Times)
}

func TestHindcastsAreTheSameForTheSameSeed(t *testing.T) {
	one, other := []int64{1000, 2000, 3000}, []int64{1000, 2000, 3000}
	history(2).Hindcast(7, 1<<40).Correct(one)
	history(2).Hindcast(7, 1<<40).Correct(other)
	require.Equal(t, one, other)
}

func TestPastJobsWithTasksWithoutEndAreNotReplayed(t *testing.T) {
	m := history(2)
	m.Kinds[0].Gang[0] = odds.Tasks{Request: []float64{0}, N: 1 << 40}
	h := m.Hindcast(1, 1<<40)
	require.Zero(t, h.Times)
}

func TestANodeTakesTasksAgainOnceItsReservationEnds(t *testing.T) {
	m := &odds.Model{
		Nodes: [][]float64{{8}, {4}}, Queues: []odds.Queue{{Parent: -1}}, Horizon: 10_000, Pause: 60,
		Periods: [][]odds.Period{{{From: -5e9, Until: 500, Holder: -1}, {From: 700e9, Until: 900, Holder: -1}}, nil},
		Kinds:   []odds.Kind{{Gang: []odds.Tasks{{Request: []float64{8}, N: 1, Shut: &odds.Shut{Lasts: 100e9, Holder: -1}}}}},
		Jobs:    []odds.Job{{Ends: odds.Unknown, Waits: true}},
	}
	require.Equal(t, int64(500), odds.NewBase(m).Run(1, 0).Start)
	m.Periods[0][0] = odds.Period{From: 500e9, Until: 650, Holder: -1}
	require.Equal(t, int64(0), odds.NewBase(m).Run(1, 0).Start, "it is not closed yet")
	m.Periods[0][0] = odds.Period{From: 0, Until: odds.Never, Holder: -1}
	require.Equal(t, odds.Never, odds.NewBase(m).Run(1, 0).Start)
}
