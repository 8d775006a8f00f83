package fair

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainDivision gives quantum after quantum to the child whose signpost is smallest, as the rules say it.
func plainDivision(p problem) []int64 {
	share := make([]int64, len(p.ceiling))
	given := int64(0)
	for i := range share {
		share[i] = p.from(i)
		given += share[i]
	}
	for ; given < p.amount; given++ {
		next := award{}
		for i := range share {
			a := award{2*(share[i]-p.zero(i)) + 1, p.weight[i], int32(i)}
			if p.weight[i] > 0 && share[i] < p.ceiling[i] && (next.weight == 0 || a.before(&next)) {
				next = a
			}
		}
		if next.weight == 0 {
			break
		}
		share[next.child]++
	}
	return share
}

// drawProblem draws a problem whose amounts are at most most.
func drawProblem(t *rapid.T, most int64) problem {
	n := rapid.IntRange(1, 8).Draw(t, "children")
	weight := rapid.OneOf(rapid.Int64Range(0, 4), rapid.Int64Range(0, 1<<31-1))
	amounts := rapid.Int64Range(0, most)
	p := problem{share: make([]int64, n), amount: rapid.Int64Range(0, int64(n)*most).Draw(t, "amount")}
	for range n {
		start, more := amounts.Draw(t, "start"), amounts.Draw(t, "more")
		p.weight, p.start = append(p.weight, weight.Draw(t, "weight")), append(p.start, start)
		p.ceiling = append(p.ceiling, start+more)
	}
	switch rapid.IntRange(0, 3).Draw(t, "stage") {
	case 0:
		// Guarantees: weights are at least the ceilings.
		p.start = nil
		for i := range p.ceiling {
			p.weight[i] = p.ceiling[i] + rapid.SampledFrom([]int64{0, 0, 1, most}).Draw(t, "above")
		}
	case 1:
		for i := range p.ceiling {
			p.weight[i] = p.ceiling[i] + rapid.SampledFrom([]int64{0, 0, 1, most}).Draw(t, "above")
		}
	case 2:
		p.base = p.start
	}
	return p
}

func TestAQuantumGoesToTheSmallestSignpost(t *testing.T) {
	var d divider
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.SampledFrom([]int64{1, 3, 40}).Draw(t, "most"))
		want := plainDivision(p)
		d.run(p)
		require.Equal(t, want, p.share)
	})
}

// requireProven checks that a division's shares are within their bounds, add up, and that no quantum should be elsewhere.
func requireProven(t require.TestingT, p problem) {
	given, most := int64(0), int64(0)
	var last, next *award
	for i, share := range p.share {
		start, ceiling := p.from(i), p.ceiling[i]
		require.True(t, start <= share && share <= ceiling)
		given += share
		most += start
		if p.weight[i] == 0 {
			require.Equal(t, start, share)
			continue
		}
		most += ceiling - start
		if a := (award{2*(share-p.zero(i)) - 1, p.weight[i], int32(i)}); share > start && (last == nil || last.before(&a)) {
			last = &a
		}
		if a := (award{2*(share-p.zero(i)) + 1, p.weight[i], int32(i)}); share < ceiling && (next == nil || a.before(next)) {
			next = &a
		}
	}
	starts := int64(0)
	for i := range p.share {
		starts += p.from(i)
	}
	require.Equal(t, max(starts, min(p.amount, most)), given)
	if last != nil && next != nil {
		require.True(t, last.before(next))
	}
}

func TestDivisionsOfAnyAmountAreProven(t *testing.T) {
	var d divider
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.SampledFrom([]int64{1, 1000, 1 << 20, 1 << 40, 1 << 56}).Draw(t, "most"))
		d.run(p)
		requireProven(t, p)
	})
}

// contested is a division among many children, all of which want more than there is.
func contested(n int, weight func(i int) int64, ceiling int64) problem {
	p := problem{share: make([]int64, n), amount: int64(n) * ceiling / 3}
	for i := range n {
		p.weight, p.ceiling = append(p.weight, weight(i)), append(p.ceiling, ceiling/2+ceiling*int64(i%97)/97)
	}
	return p
}

func BenchmarkDivide(b *testing.B) {
	for name, weight := range map[string]func(int) int64{
		"equal": func(int) int64 { return 1 },
		"small": func(i int) int64 { return int64(i%10 + 1) },
		"wide":  func(i int) int64 { return int64(i)*214_748 + 1 },
	} {
		for _, ceiling := range []int64{100, 1 << 30, 1 << 48} {
			b.Run(fmt.Sprintf("%s/%d", name, ceiling), func(b *testing.B) {
				var d divider
				p := contested(10_000, weight, ceiling)
				for b.Loop() {
					d.run(p)
				}
				requireProven(b, p)
			})
		}
	}
}

func TestNoChildIsServedWithoutAWeight(t *testing.T) {
	var d divider
	p := problem{amount: 10, weight: []int64{0, 1}, start: []int64{1, 0}, ceiling: []int64{9, 5}, share: make([]int64, 2)}
	d.run(p)
	require.Equal(t, []int64{1, 5}, p.share)
	require.True(t, slices.Equal(plainDivision(p), p.share))
}
