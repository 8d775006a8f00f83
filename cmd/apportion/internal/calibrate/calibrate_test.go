package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/internal/test/raced"
)

// levelsOf states one time for the levels up to P50, and one for the others.
func levelsOf(early, late int64) (f [levels]int64) {
	for i := range f {
		if f[i] = late; i <= p50 {
			f[i] = early
		}
	}
	return f
}

func TestAScoreCountsWhatHeldAndTheLossOfEachForecast(t *testing.T) {
	s := scoreOf([]asked{
		{forecast: levelsOf(3600, 7200), drain: 3600, mean: 7200, wait: 3600},
		{forecast: levelsOf(0, 3600), drain: 3600, mean: 7200, wait: 7200, part: 1},
	}, 10*hour)
	require.Equal(t, 2, s.n)
	require.Equal(t, share{part: 0.5, err: 0.5, n: 2}, s.held[p50])
	require.Equal(t, "50 ± 50 %", s.held[p90].String())
	// In hours: (0 + 0.1)/2 and (1 + 0.9)/2, (0 + 0)/2 and (0.5 + 0.9)/2, (0.5 + 0.1)/2 and 0.
	require.InDelta(t, 0.5, s.loss, 1e-9)
	require.InDelta(t, 0.35, s.drained, 1e-9)
	require.InDelta(t, 0.15, s.mean, 1e-9)
}

func TestAForecastWithoutATimeIsCountedApartAndItsLossEndsAtTheHorizon(t *testing.T) {
	s := scoreOf([]asked{
		{forecast: levelsOf(3600, odds.Never), wait: rehearsal.Never, drain: 1e9, mean: 1e9},
		{forecast: levelsOf(odds.Never, odds.Never), wait: rehearsal.Never, drain: 1e9, mean: 1e9},
	}, 10*hour)
	require.Equal(t, 1, s.held[p50].n)
	require.Zero(t, s.held[p50].part)
	require.Equal(t, "–", s.held[p90].String())
	require.InDelta(t, 1, s.open, 1e-9)
	require.InDelta(t, 0.5*9/2/2, s.loss, 1e-9)
	require.Zero(t, s.drained)
}

// TestForecastsOfOnePartDependOnEachOther has two parts in which all or no forecasts held: they say as little as two forecasts.
func TestForecastsOfOnePartDependOnEachOther(t *testing.T) {
	var list []asked
	for i := range 200 {
		list = append(list, asked{part: i % 2, wait: int64(i % 2)})
	}
	s := shareOf(list, p90)
	require.InDelta(t, 0.5, s.part, 1e-9)
	require.InDelta(t, 0.5, s.err, 1e-9)
	require.True(t, math.IsNaN(shareOf(list[:1], p90).err), "one part has no error")
}

// TestForecastsAreAskedInTheLaterWeeks rehearses a generated trace, twice with the same result.
func TestForecastsAreAskedInTheLaterWeeks(t *testing.T) {
	raced.Skip(t)
	snapshot, err := cluster()
	require.NoError(t, err)
	run := func() []asked {
		trial := trial{
			snapshot: snapshot, trace: shapes[0].draw(1), policy: "fair", train: trains * 7 * day, until: asks * 7 * day, step: 2 * day,
			horizon: 7 * day, runs: 3, resource: gpu,
		}
		list, err := trial.run(t.Context())
		require.NoError(t, err)
		return list
	}
	list := run()
	require.NotEmpty(t, list)
	require.GreaterOrEqual(t, list[0].at, trains*7*day)
	require.LessOrEqual(t, list[len(list)-1].at, asks*7*day)
	require.Equal(t, list, run())
}

// TestALogIsMeasuredInItsThirdQuarter measures the forecasts of a log as a user has one.
func TestALogIsMeasuredInItsThirdQuarter(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "examples", "traces", "week.csv")
	s := settings{runs: 3, step: 6 * hour, only: "capacity", log: logged{file: root, nodes: 3, node: "cpu=96,memory=1Ti,nvidia.com/gpu=8"}}
	rows, horizon, err := s.rows(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Positive(t, horizon)
	require.NotEmpty(t, rows[0].parts[0])

	file := filepath.Join(t.TempDir(), "plot.svg")
	rows[0].score = scoreOf(rows[0].parts[0], horizon)
	require.NoError(t, draw(file, rows))
	drawn, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(drawn), "<polyline")

	s.log.nodes = 0
	_, _, err = s.rows(t.Context())
	require.EqualError(t, err, "name a file with -cluster, or a number of -nodes")
}
