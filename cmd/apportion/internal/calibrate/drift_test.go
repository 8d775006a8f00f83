package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/odds"
)

// historyAt is the past of a trace at a time, in which each job began when it arrived.
func (s *shape) historyAt(seed uint64, now int64) *odds.Model {
	m, kinds := &odds.Model{}, map[string][]odds.Observed{}
	kindOf := func(queue, owner string, tasks int, amount float64) string {
		return fmt.Sprint(queue, owner, tasks, amount)
	}
	jobs := s.draw(seed).Jobs
	for i := range jobs {
		j := &jobs[i]
		if j.Arrival >= now {
			continue
		}
		key := kindOf(j.Queue, j.Owner, j.Tasks(), j.Groups[0].Request[2].Amount)
		p := odds.Past{Arrival: j.Arrival - now, Seconds: j.Seconds, Kind: i}
		if j.Arrival+j.Seconds > now {
			p.Seconds, p.Elapsed = 0, now-j.Arrival
		}
		kinds[key] = append(kinds[key], odds.Observed{Began: p.Arrival, Seconds: max(p.Seconds, p.Elapsed), Ended: p.Seconds > 0})
		m.Past = append(m.Past, p)
	}
	samples := map[string]*odds.Sample{}
	for key, list := range kinds {
		samples[key] = odds.NewSample(list)
	}
	for i := range m.Past {
		j := &jobs[m.Past[i].Kind]
		m.Past[i].Drawn = samples[kindOf(j.Queue, j.Owner, j.Tasks(), j.Groups[0].Request[2].Amount)]
	}
	return m
}

// said forecasts on every second day of weeks three and four of each history of a shape. It returns the share of these days on which a
// change of the load is reported, and the changes.
func (s *shape) said(seeds int) (share float64, list []odds.Drift) {
	n := 0
	for seed := range seeds {
		for now := trains * 7 * day; now <= asks*7*day; now += 2 * day {
			n++
			if d := s.historyAt(reported+uint64(seed), now).Drift(); d != (odds.Drift{}) {
				list = append(list, d)
			}
		}
	}
	return float64(len(list)) / float64(n), list
}

func TestASteadyHistoryIsHardlyEverSaidToChange(t *testing.T) {
	for i := range shapes {
		share, list := shapes[i].said(3)
		require.Zero(t, share, "%s: %v", shapes[i].name, list)
	}
}

func TestALoadThatChangesIsSaid(t *testing.T) {
	for i, least := range []float64{0.95, 0.75, 0.4} {
		share, list := drifting[i].said(3)
		require.Greater(t, share, least, drifting[i].name)
		for _, d := range list {
			for _, ratio := range []float64{d.Arrivals, d.Runtimes} {
				require.True(t, ratio == 0 || (ratio > 1) == (drifting[i].growth > 1), "%s: %v", drifting[i].name, d)
			}
		}
	}
}
