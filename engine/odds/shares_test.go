package odds

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// pastOf draws what came of forecasts for jobs of the past.
func pastOf(t *rapid.T) *Hindcasts {
	h := &Hindcasts{pause: 1, horizon: 1000, Times: leastTimes}
	for range rapid.IntRange(1, 40).Draw(t, "jobs") {
		c := hindcast{weight: rapid.Float64Range(0.1, 1).Draw(t, "weight"), wait: rapid.Int64Range(0, 1200).Draw(t, "wait")}
		for i := range c.starts {
			if c.starts[i] = rapid.Int64Range(0, 1100).Draw(t, "start"); c.starts[i] > 1000 {
				c.starts[i] = Never
			}
		}
		slices.Sort(c.starts[:])
		c.open = rapid.IntRange(0, 3).Draw(t, "open") == 0
		h.list = append(h.list, c)
	}
	return h
}

// TestSharesAreThoseOfJobsOfWhichTheOpenOnesGoToLaterOnes hands on what a job counts of which only is known that it started later, in
// equal parts of what they count (B. Efron, 1967).
func TestSharesAreThoseOfJobsOfWhichTheOpenOnesGoToLaterOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, median := pastOf(t), rapid.Int64Range(0, 2000).Draw(t, "median")
		type job struct {
			weight float64
			before int
			open   bool
		}
		var jobs []job
		sum := 0.0
		for i := range h.list {
			c := &h.list[i]
			// The eighth of 16 runs is the median.
			of, other := min(max(c.starts[7], 1), 1000), min(max(median, 1), 1000)
			weight, before := c.weight*float64(min(of, other))/float64(max(of, other)), 0
			for _, start := range c.starts {
				if start <= c.wait {
					before++
				}
			}
			jobs, sum = append(jobs, job{weight, before, c.open}), sum+weight
		}
		slices.SortStableFunc(jobs, func(l, r job) int {
			if l.before == r.before && l.open != r.open {
				if r.open {
					return -1
				}
				return 1
			}
			return l.before - r.before
		})
		for i := range jobs {
			later := 0.0
			for _, o := range jobs[i+1:] {
				later += o.weight
			}
			if jobs[i].open && later > 0 {
				for k := range jobs[i+1:] {
					jobs[i+1+k].weight += jobs[i].weight * jobs[i+1+k].weight / later
				}
				jobs[i].weight = 0
			}
		}
		got, want := h.shares(median), 0.0
		for place := range hindcastRuns + 1 {
			require.InDelta(t, want/sum, got[place], 1e-9)
			for _, j := range jobs {
				if j.before == place && !j.open {
					want += j.weight
				}
			}
		}
		require.InDelta(t, want/sum, got[hindcastRuns+1], 1e-9)
	})
}

// TestACorrectedStartIsThatOfARunAndNoLateOneIsEarlier also checks that starts stay in order.
func TestACorrectedStartIsThatOfARunAndNoLateOneIsEarlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, raw := pastOf(t), rapid.SliceOfN(rapid.Int64Range(0, 1000), 1, 60).Draw(t, "starts")
		slices.Sort(raw)
		starts := slices.Clone(raw)
		require.True(t, h.Correct(starts))
		require.True(t, slices.IsSorted(starts))
		for i, start := range starts {
			require.Contains(t, raw, start)
			if 2*i >= len(raw) {
				require.GreaterOrEqual(t, start, raw[i])
			}
		}
	})
}

// TestAForecastIsCorrectedByThoseThatWereAlike has jobs that waited for an hour and started on time, and jobs that waited for a minute and
// started late.
func TestAForecastIsCorrectedByThoseThatWereAlike(t *testing.T) {
	h := &Hindcasts{pause: 60, horizon: 100_000, Times: leastTimes}
	for i := range int64(hindcastRuns + 1) {
		long, short := hindcast{weight: 1}, hindcast{weight: 1, wait: 5000}
		for k := range int64(hindcastRuns) {
			long.starts[k], short.starts[k] = 3600+10*k, 60+k
		}
		long.wait = 3595 + 10*i
		h.list = append(h.list, long, short)
	}
	starts := []int64{3500, 3600, 3700, 3800}
	require.True(t, h.Correct(starts))
	require.Equal(t, []int64{3500, 3600, 3700, 3800}, starts)
	starts = []int64{50, 60, 70, 80}
	require.True(t, h.Correct(starts))
	require.Equal(t, []int64{60, 70, 80, 80}, starts)
}
