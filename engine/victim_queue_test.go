package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

func TestPlacedQueuesAreSortedAsComparingTheirNumbersHasIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := model.NewBuilder(0)
		n := rapid.IntRange(2, 30).Draw(t, "queues")
		for i := range n {
			b.Queue(model.QueueSpec{Name: fmt.Sprint("q", i), CreateTime: int64(rapid.IntRange(0, 1).Draw(t, "created"))})
		}
		m, err := b.Build()
		require.NoError(t, err)
		// Numbers that differ in the highest bits, in the lowest, and in all.
		long := rapid.OneOf(
			rapid.SampledFrom([]uint64{0, 1, 2, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}),
			rapid.Uint64(), rapid.Uint64Range(1<<40, 1<<40+3), rapid.Just(uint64(7)),
		)
		high, low := rapid.SampledFrom([]*rapid.Generator[uint64]{long, rapid.Just(uint64(7))}).Draw(t, "high"), long
		var o rankedQueues
		for i := range n {
			o.ids = append(o.ids, model.QueueID(i))
			o.order = append(o.order, policy.QueuePlace{High: high.Draw(t, "high"), Low: low.Draw(t, "low")})
			o.victim = append(o.victim, rapid.SampledFrom([]uint32{0, 1, math.MaxUint32 - 1, math.MaxUint32}).Draw(t, "victim"))
		}
		v := policy.NewView(m, nil)
		want := slices.Clone(o.ids)
		slices.SortFunc(want, func(l, r model.QueueID) int { return o.compare(v, int(l), int(r)) })
		o.sortPlaced(v)
		require.Equal(t, want, o.ids)
	})
}
