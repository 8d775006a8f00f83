package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAScoreCountsWhatHeldAndTheLossOfEachForecast(t *testing.T) {
	s := scoreOf([]asked{
		{p50: 3600, p90: 7200, drain: 3600, mean: 7200, wait: 3600},
		{p50: 0, p90: 3600, drain: 3600, mean: 7200, wait: 7200},
	})
	require.Equal(t, 2, s.n)
	require.InDelta(t, 0.5, s.p50, 1e-9)
	require.InDelta(t, 0.5, s.p90, 1e-9)
	// In hours: (0 + 0.1)/2 and (1 + 0.9)/2, (0 + 0)/2 and (0.5 + 0.9)/2, (0.5 + 0.1)/2 and 0.
	require.InDelta(t, 0.5, s.loss, 1e-9)
	require.InDelta(t, 0.35, s.drained, 1e-9)
	require.InDelta(t, 0.15, s.mean, 1e-9)
}

// TestForecastsAreAskedInTheLaterWeeks rehearses a generated trace, twice with the same result.
func TestForecastsAreAskedInTheLaterWeeks(t *testing.T) {
	snapshot, err := cluster()
	require.NoError(t, err)
	run := func() []asked {
		trial := trial{snapshot: snapshot, trace: shapes[0].draw(1), policy: "fair", train: trains * 7 * day, step: 2 * day, runs: 3}
		list, err := trial.run(t.Context())
		require.NoError(t, err)
		return list
	}
	list := run()
	require.NotEmpty(t, list)
	require.GreaterOrEqual(t, list[0].at, trains*7*day)
	require.Equal(t, list, run())
}
