package audit

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainTightest sorts all nodes with room for a shape by what they have left.
func plainTightest(s *state, block []uint32) (few, all []uint32) {
	chosen, matter := map[uint32]bool{}, map[uint32]bool{}
	for _, task := range block {
		request := s.fit[s.shape[task]].request
		var spares []spare
		for n := range s.free {
			if covers(s.free[n], request) {
				spares, matter[uint32(n)] = append(spares, spare{uint32(n), leftOf(s.free[n], request)}), true
			}
		}
		slices.SortFunc(spares, spare.compare)
		for _, best := range spares[:min(len(spares), len(block))] {
			chosen[best.node] = true
		}
	}
	return slices.Sorted(maps.Keys(chosen)), slices.Sorted(maps.Keys(matter))
}

// TestTheTightestNodesAreFoundAsRoomComesAndGoes compares with a search among all nodes, also after nodes were filled and emptied.
func TestTheTightestNodesAreFoundAsRoomComesAndGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Map(rapid.IntRange(0, 9), func(n int) float64 { return float64(1000 * n) })
		row := rapid.SliceOfN(amount, 2, 2)
		s := &state{stock: stock{free: rapid.SliceOfN(row, 1, 8).Draw(t, "free")}}
		for _, request := range rapid.SliceOfN(row, 1, 3).Draw(t, "requests") {
			s.fit = append(s.fit, fit{request: request})
		}
		s.shape = rapid.SliceOfN(rapid.IntRange(0, len(s.fit)-1), 1, 4).Draw(t, "shapes")
		block := make([]uint32, len(s.shape))
		for i, shape := range s.shape {
			block[i], s.request = uint32(i), append(s.request, s.fit[shape].request)
		}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			task, node := rapid.SampledFrom(block).Draw(t, "task"), rapid.IntRange(0, len(s.free)-1).Draw(t, "node")
			s.use(node, task, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "times"))
			few, all := plainTightest(s, block)
			crowded := slices.ContainsFunc(block, func(task uint32) bool {
				return !slices.ContainsFunc(s.free, func(free []float64) bool { return covers(free, s.request[task]) })
			})
			require.Equal(t, crowded, slices.ContainsFunc(block, s.crowded))
			require.Equal(t, few, s.tightest(block))
			require.Equal(t, all, s.roomy(block))
		}
	})
}
