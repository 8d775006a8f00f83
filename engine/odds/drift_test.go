package odds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// drawnPast draws a past of so many days. On each so many jobs arrive, which run so many hours or so.
func drawnPast(seed uint64, days int, arrive, run func(day int) float64) *Model {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &Model{}
	for d := range days {
		for range int(arrive(d) * (0.9 + 0.2*r.Float64())) {
			p := Past{Arrival: int64(d-days)*day + r.Int64N(day), Seconds: int64(3600 * run(d) * math.Exp(r.NormFloat64()))}
			if p.Arrival+p.Seconds > 0 {
				p.Seconds, p.Elapsed = 0, -p.Arrival
			}
			m.Past = append(m.Past, p)
		}
	}
	var list []Observed
	for _, p := range m.Past {
		list = append(list, Observed{Began: p.Arrival, Seconds: max(p.Seconds, p.Elapsed), Ended: p.Seconds > 0})
	}
	all := NewSample(list)
	for i := range m.Past {
		m.Past[i].Drawn = all
	}
	return m
}

func always(x float64) func(int) float64 { return func(int) float64 { return x } }

func TestDriftSaysHowTheLoadChanges(t *testing.T) {
	grows := func(day int) float64 { return 1 + float64(day)/7 }
	for name, c := range map[string]struct {
		arrive, run func(day int) float64
		// least and most bound the changes; 0: there is none.
		arrivals, runtimes [2]float64
	}{
		"it stays":              {always(50), always(1), [2]float64{}, [2]float64{}},
		"runtimes of days":      {always(50), always(30), [2]float64{}, [2]float64{}},
		"more arrive":           {func(d int) float64 { return 30 * grows(d) }, always(1), [2]float64{1.4, 3.2}, [2]float64{}},
		"fewer arrive":          {func(d int) float64 { return 200 / grows(d) }, always(1), [2]float64{0.2, 0.8}, [2]float64{}},
		"they run longer":       {always(50), grows, [2]float64{}, [2]float64{1.4, 3.2}},
		"more arrive on Monday": {func(d int) float64 { return 30 + 60*float64(max(0, 1-d%7)) }, always(1), [2]float64{}, [2]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				got := drawnPast(seed, 22, c.arrive, c.run).Drift()
				for _, of := range []struct {
					is   float64
					want [2]float64
				}{{got.Arrivals, c.arrivals}, {got.Runtimes, c.runtimes}} {
					require.True(t, of.is >= of.want[0] && of.is <= of.want[1], "%d: %v", seed, got)
				}
			}
		})
	}
}

// TestDriftKnowsSinceWhenAPastIsKept has a ledger that began ten days ago: of what began before it has the jobs alone that ended since.
func TestDriftKnowsSinceWhenAPastIsKept(t *testing.T) {
	for seed := range uint64(20) {
		m := drawnPast(seed, 28, always(50), always(4))
		m.Past = slices.DeleteFunc(m.Past, func(p Past) bool { return p.Seconds > 0 && p.Arrival+p.Seconds < -10*day })
		require.Zero(t, m.Drift())
		// And one that ended three days ago.
		m = drawnPast(seed, 28, always(50), always(1))
		m.Past = slices.DeleteFunc(m.Past, func(p Past) bool { return p.Arrival > -3*day || p.Seconds == 0 })
		require.Zero(t, m.Drift())
	}
}

func TestDriftOfLittleIsNone(t *testing.T) {
	require.Zero(t, (&Model{}).Drift())
	require.Zero(t, drawnPast(1, 6, func(d int) float64 { return 10 * float64(d+1) }, always(1)).Drift())
	require.Zero(t, (&Model{Past: []Past{{Arrival: math.MinInt64 / 2, Seconds: 1}, {Arrival: -1, Seconds: math.MaxInt64 / 4}}}).Drift())
}
