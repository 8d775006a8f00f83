package fair

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// TestSharesOfSaturatedQueuesConverge lets queues that always want everything have, epoch by epoch, the shares by the weights that the engine
// derives from their usage, as if tasks were short. The shares of usage converge to the weights. Near them the distance shrinks from
// epoch to epoch by the factor that the theory of small distances says: d − (1−d)·p·k/(1+k), where d is the decay of an epoch.
func TestSharesOfSaturatedQueuesConverge(t *testing.T) {
	const epochCapacity = 1 << 40
	d := drawFrom(*seed)
	for range 60 {
		h, power, gain := float64(4+d.IntN(40)), 1+d.IntN(MaxPower), []float64{1, 3}[d.IntN(2)]
		decay := math.Exp2(-1 / h)
		c := &cluster{
			width: 1, total: []int64{1000},
			plugin: Plugin{Quanta: []Quantum{{"r0", 1}}, Memory: Memory{Gain: int64(gain * one), Power: power}},
		}
		usage, sum := []float64{}, 0.0
		for i := range 2 + d.IntN(4) {
			c.queues = append(c.queues, queue{name: string(rune('a' + i)), weight: uint32(1 + d.IntN(4)), demand: []int64{1000}})
			sum += float64(c.queues[i].weight)
			usage = append(usage, d.Float64())
		}
		// All that was offered was used.
		drawn := 0.0
		for _, u := range usage {
			drawn += u
		}
		for i := range usage {
			usage[i] *= epochCapacity / (1 - decay) / drawn
		}
		errors := func() []float64 {
			all, out := 0.0, []float64{}
			for _, u := range usage {
				all += u
			}
			for i, u := range usage {
				out = append(out, u/all-float64(c.queues[i].weight)/sum)
			}
			return out
		}
		widest := func(list []float64) float64 {
			return math.Max(math.Abs(slices.Max(list)), math.Abs(slices.Min(list)))
		}
		ratio := math.NaN()
		for range int(60 * h) {
			before := errors()
			advance(t, c, usage, decay, epochCapacity)
			if w := widest(before); w > 1e-4 && w < 1e-3 {
				at := slices.IndexFunc(before, func(x float64) bool { return math.Abs(x) == w })
				ratio = errors()[at] / before[at]
			}
			if widest(before) < 1e-4 {
				break
			}
		}
		require.Less(t, widest(errors()), 1e-3, "h %v p %d k %v: %v", h, power, gain, errors())
		if !math.IsNaN(ratio) {
			require.InDelta(t, decay-(1-decay)*float64(power)*gain/(1+gain), ratio, .02, "h %v p %d k %v", h, power, gain)
		}
	}
}

// advance lets one epoch pass.
func advance(t *testing.T, c *cluster, usage []float64, decay, capacity float64) {
	t.Helper()
	c.memory = &model.MemorySpec{EpochSeconds: 21600, HalfLife: 28, Epoch: 1, Offered: integers([]int64{int64(capacity / (1 - decay))})}
	for i, u := range usage {
		c.queues[i].memory = &model.QueueMemorySpec{Usage: integers([]int64{int64(u)})}
	}
	s := c.open(t)
	s.settle()
	r0, _ := s.v.Dims.Index("r0")
	w, all := s.weighed(r0), 0.0
	for q := range c.queues {
		all += float64(w.weight[s.tree.at[q]])
	}
	for q := range usage {
		usage[q] = usage[q]*decay + capacity*float64(w.weight[s.tree.at[q]])/all
	}
}
