package engine_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
)

func TestBestNodesAreTheFirstOfAllThatFitSortedByScoreAndName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "nodes")
		fits, score, rank := make([]bool, n), make([]float64, n), make([]int32, n)
		var want []int
		for i := range n {
			fits[i], score[i] = rapid.Bool().Draw(t, "fits"), float64(rapid.IntRange(0, 2).Draw(t, "score"))
			rank[i] = rapid.Int32Range(0, int32(n)).Draw(t, "rank")
			if fits[i] {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(l, r int) int { return cmp.Or(cmp.Compare(score[r], score[l]), cmp.Compare(rank[l], rank[r])) })
		top := rapid.IntRange(1, 50).Draw(t, "top")
		require.Equal(t, want[:min(top, len(want))], engine.BestNodes(fits, score, rank, top, nil))
		require.Len(t, engine.BestNodes(fits, score, nil, 0, nil), n)
	})
}
