package rehearsal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// TestAForecastIsExactWhereRuntimesAreKnown forecasts the starts of all jobs that wait when the last job has arrived, for the longest
// runtimes, which sessions state, and rehearses when they start: the model of package odds takes each decision that the engine does.
func TestAForecastIsExactWhereRuntimesAreKnown(t *testing.T) {
	raced.Skip(t)
	for _, name := range []string{"proportion", "capacity", "capacity-hierarchical", "drf-hierarchical", "fair"} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				jobs := drawn(seed+1, 150, 4, 64, 8*3600, 3)
				for i := range jobs.Jobs {
					job := &jobs.Jobs[i]
					if job.Min = job.Tasks(); seed%2 == 0 {
						job.Priority = 0
					}
				}
				snapshot := cluster(8, 3, 3, 2, 1)
				snapshot.Queues[seed%4].Priority = int32(seed / 4)
				if name == "capacity-hierarchical" || seed%3 > 0 {
					plant(snapshot, seed)
				}
				f := &forecasts{t: t, last: jobs.Jobs[len(jobs.Jobs)-1].Arrival, starts: map[string]int64{}, began: map[string]int64{}}
				o := options(t)
				o.timed, o.Observe = true, f.observe
				_, err := Run(t.Context(), &Variant{
					Snapshot: snapshot, Policy: withoutTurns(preset(t, name)), Actions: []cycle.Action{cycle.Enqueue, cycle.Allocate},
				}, jobs, o)
				require.NoError(t, err)
				require.Greater(t, len(f.starts), 10)
				for job, at := range f.starts {
					began, starts := f.began[job]
					if !starts {
						began = Never
					}
					require.Equal(t, began, at, job)
				}
			})
		}
	}
}

// plant puts the four queues of a cluster below two others, and limits some of them or guarantees them something.
func plant(s *apportionv1.Snapshot, seed uint64) {
	gpus := func(n uint64) *apportionv1.Resource {
		for d, name := range s.GetDimensions() {
			if name == "nvidia.com/gpu" {
				return &apportionv1.Resource{Dimensions: []uint32{uint32(d)}, Amounts: []float64{float64(n) * 1000}}
			}
		}
		return nil
	}
	for i, q := range s.Queues {
		q.Parent, q.Deserved = []string{"x", "x", "y", "y"}[i], gpus([]uint64{14, 14, 24, 12}[i])
		switch n := (7*seed + 13*uint64(i)) % 11; {
		case n < 4:
			q.Capability = gpus(20 + 2*n)
		case n < 7:
			q.Guarantee = gpus(n - 1)
		}
	}
	open := s.Queues[0].State
	s.Queues = append(s.Queues, &apportionv1.Queue{Name: "root", State: open},
		&apportionv1.Queue{Name: "x", Parent: "root", Weight: new(uint32(2)), State: open, Deserved: gpus(28)},
		&apportionv1.Queue{Name: "y", Parent: "root", Weight: new(uint32(3)), State: open, Deserved: gpus(36)})
}

func withoutTurns(policy *apportionv1.Policy) *apportionv1.Policy {
	for _, tier := range policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if f := plugin.GetFair(); f != nil {
				f.Turns = nil
			}
		}
	}
	return policy
}

// forecasts are those of the moment at which the last job has arrived, and when jobs began.
type forecasts struct {
	t             *testing.T
	last          int64
	starts, began map[string]int64
}

func (f *forecasts) observe(m *Moment) {
	started := map[model.JobID]int64{}
	for i := range m.Jobs {
		if j := &m.Jobs[i]; j.Began != Never {
			f.began[j.Name], started[j.ID] = j.Began, j.Since*int64(time.Second)
		}
	}
	if m.Now < f.last || len(f.starts) > 0 {
		return
	}
	for i := range m.Jobs {
		j := &m.Jobs[i]
		if j.Began != Never {
			continue
		}
		found, err := forecast.ByChance(m.Session, &forecast.OddsQuestion{Job: j.ID, Pause: 300, Started: started})
		require.NoError(f.t, err)
		if f.starts[j.Name] = Never; found != nil && found.Latest != odds.Never {
			f.starts[j.Name] = m.Now + found.Latest
		}
	}
}
