package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/backfill"
)

func TestAJobForWhichNoRoomIsKeptHasTheTimeOfAPlanOfAllBeforeIt(t *testing.T) {
	running := filledJob{name: "runs", cpu: 6, runs: []int{0}, end: 1_500}
	first := filledJob{name: "first", cpu: 8, waiting: 1, runtime: 300}
	for name, c := range map[string]struct {
		kind backfill.Kind
		jobs []filledJob
		want forecast.Forecast
	}{
		"the first job, for which room is kept": {
			backfill.EASY, []filledJob{running, {name: "last", cpu: 8, waiting: 1}}, forecast.Forecast{Outcome: forecast.StartsAt, At: 1_500},
		},
		"a job behind it": {
			backfill.EASY,
			[]filledJob{running, first, {name: "last", cpu: 9, waiting: 1}},
			forecast.Forecast{Outcome: forecast.StartsAt, At: 1_800, Unkept: true},
		},
		"a job behind others for which no room is kept either": {
			backfill.EASY,
			[]filledJob{running, first, {name: "second", cpu: 9, waiting: 1, runtime: 50}, {name: "last", cpu: 9, waiting: 1}},
			forecast.Forecast{Outcome: forecast.StartsAt, At: 1_850, Unkept: true},
		},
		"a job that has room beside it": {
			backfill.EASY, []filledJob{running, first, {name: "last", cpu: 2, waiting: 1}}, forecast.Forecast{Outcome: forecast.StartsNow},
		},
		"a job behind one that may run for ever": {
			backfill.EASY,
			[]filledJob{running, {name: "first", cpu: 8, waiting: 1}, {name: "last", cpu: 9, waiting: 1}},
			forecast.Forecast{Outcome: forecast.NotForeseen},
		},
		"under conservative backfill room is kept": {
			backfill.Conservative,
			[]filledJob{running, first, {name: "last", cpu: 9, waiting: 1}},
			forecast.Forecast{Outcome: forecast.StartsAt, At: 1_800},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := filledCluster(t, filledNow, c.kind, []int{10}, c.jobs)
			j, _ := s.View().Job("last")
			for range 2 {
				f, err := forecast.For(s, j)
				require.NoError(t, err)
				require.Equal(t, c.want, forecast.Forecast{Outcome: f.Outcome, At: f.At, Unkept: f.Unkept})
				if c.want.Outcome == forecast.StartsAt {
					require.Len(t, f.Nodes, 1)
					require.Empty(t, f.Ahead, "the time is after all before it")
				}
			}
		})
	}
}

// TestForecastsUnderEASYAreNoLaterThanAPlanOfAllJobs compares them with a planner that goes moment by moment.
func TestForecastsUnderEASYAreNoLaterThanAPlanOfAllJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, jobs := drawnFill(t)
		s := filledCluster(t, filledNow, backfill.EASY, nodes, jobs)
		plan, kept := plainPlan(backfill.Conservative, nodes, jobs), plainPlan(backfill.EASY, nodes, jobs)
		for _, job := range jobs {
			j, _ := s.View().Job(job.name)
			f, err := forecast.For(s, j)
			require.NoError(t, err)
			if job.waiting == 0 || f == nil || f.CutShort || f.Outcome == forecast.StartsNow {
				continue
			}
			start, planned := plan[job.name]
			_, keeps := kept[job.name]
			switch {
			case f.Unkept:
				require.False(t, keeps)
				require.Equal(t, filledNow+start, f.At)
			case f.Outcome == forecast.NotForeseen:
				require.False(t, planned && start > 0, job.name)
			case planned && start > 0:
				require.LessOrEqual(t, f.At, filledNow+start, job.name)
			}
		}
	})
}

func TestAForecastThatHasNoWorkLeftForAPlanIsCutShort(t *testing.T) {
	jobs := []filledJob{
		{name: "runs", cpu: 6, runs: []int{0}, end: 1_500}, {name: "first", cpu: 8, waiting: 1, runtime: 300}, {name: "last", cpu: 9, waiting: 1},
	}
	m := filledCluster(t, filledNow, backfill.EASY, []int{10}, jobs).View().Model
	p := engine.Policy{Tiers: []engine.Tier{{{Plugin: backfill.Default()}}}}
	whole := policy.NewWork(policy.DefaultWork)
	s, err := engine.OpenHost(m, p, nil, whole)
	require.NoError(t, err)
	j, _ := s.View().Job("last")
	opened := whole.Spent()
	f, err := forecast.For(s.Session, j)
	require.NoError(t, err)
	require.True(t, f.Unkept)
	const tries = 50
	for less := opened; less < whole.Spent(); less += (whole.Spent() - opened + tries - 1) / tries {
		s, err := engine.OpenHost(m, p, nil, policy.NewWork(less))
		require.NoError(t, err)
		f, err := forecast.For(s.Session, j)
		require.NoError(t, err)
		require.True(t, f.CutShort, less)
	}
}
