package division_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/policy/division"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// plainDivision gives quantum after quantum to the child whose signpost is smallest, as the rules say it.
func plainDivision(p division.Problem) []int64 {
	share := make([]int64, len(p.Ceiling))
	given := int64(0)
	for i := range share {
		share[i] = p.From(i)
		given += share[i]
	}
	for ; given < p.Amount; given++ {
		next := policytest.Signpost{}
		for i := range share {
			a := policytest.Signpost{Odd: 2*(share[i]-p.Zero(i)) + 1, Weight: p.Weight[i], Child: i}
			if p.Weight[i] > 0 && share[i] < p.Ceiling[i] && (next.Weight == 0 || a.Before(next)) {
				next = a
			}
		}
		if next.Weight == 0 {
			break
		}
		share[next.Child]++
	}
	return share
}

// drawProblem draws a division.Problem whose amounts are at most most.
func drawProblem(t *rapid.T, most int64) division.Problem {
	n := rapid.IntRange(1, 8).Draw(t, "children")
	weight := rapid.OneOf(rapid.Int64Range(0, 4), rapid.Int64Range(0, 1<<31-1))
	amounts := rapid.Int64Range(0, most)
	p := division.Problem{Share: make([]int64, n), Amount: rapid.Int64Range(0, int64(n)*most).Draw(t, "amount")}
	for range n {
		start, more := amounts.Draw(t, "start"), amounts.Draw(t, "more")
		p.Weight, p.Start = append(p.Weight, weight.Draw(t, "weight")), append(p.Start, start)
		p.Ceiling = append(p.Ceiling, start+more)
	}
	switch rapid.IntRange(0, 3).Draw(t, "stage") {
	case 0:
		// Guarantees: weights are at least the ceilings.
		p.Start = nil
		for i := range p.Ceiling {
			p.Weight[i] = p.Ceiling[i] + rapid.SampledFrom([]int64{0, 0, 1, most}).Draw(t, "above")
		}
	case 1:
		for i := range p.Ceiling {
			p.Weight[i] = p.Ceiling[i] + rapid.SampledFrom([]int64{0, 0, 1, most}).Draw(t, "above")
		}
	case 2:
		p.Base = p.Start
	}
	return p
}

func TestAQuantumGoesToTheSmallestSignpost(t *testing.T) {
	var d division.Divider
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.SampledFrom([]int64{1, 3, 40}).Draw(t, "most"))
		want := plainDivision(p)
		d.Run(p)
		require.Equal(t, want, p.Share)
	})
}

func TestDivisionsOfAnyAmountAreProven(t *testing.T) {
	var d division.Divider
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.SampledFrom([]int64{1, 1000, 1 << 20, 1 << 40, 1 << 56}).Draw(t, "most"))
		d.Run(p)
		policytest.RequireProven(t, &p)
	})
}

// TestSharesOfWideWeightsAreExact divides by weights of up to 55 bits, as weights with memory have.
func TestSharesOfWideWeightsAreExact(t *testing.T) {
	var d division.Divider
	dice := rand.New(rand.NewPCG(1, 55))
	for range 3000 {
		n := 1 + dice.IntN(6)
		p := division.Problem{Stage: division.ByWeight, Share: make([]int64, n)}
		for range n {
			p.Weight = append(p.Weight, int64(dice.Uint64()>>(9+dice.IntN(50))))
			p.Ceiling = append(p.Ceiling, dice.Int64N(30))
			p.Amount += p.Ceiling[len(p.Ceiling)-1]
		}
		p.Amount = dice.Int64N(p.Amount + 3)
		want := plainDivision(p)
		d.Run(p)
		require.Equal(t, want, p.Share, "%+v", p)
	}
}

// contested is a division among many children, all of which want more than there is.
func contested(n int, weight func(i int) int64, ceiling int64) division.Problem {
	p := division.Problem{Share: make([]int64, n), Amount: int64(n) * ceiling / 3}
	for i := range n {
		p.Weight, p.Ceiling = append(p.Weight, weight(i)), append(p.Ceiling, ceiling/2+ceiling*int64(i%97)/97)
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
				var d division.Divider
				p := contested(10_000, weight, ceiling)
				for b.Loop() {
					d.Run(p)
				}
				policytest.RequireProven(b, &p)
			})
		}
	}
}

func TestNoChildIsServedWithoutAWeight(t *testing.T) {
	var d division.Divider
	p := division.Problem{Amount: 10, Weight: []int64{0, 1}, Start: []int64{1, 0}, Ceiling: []int64{9, 5}, Share: make([]int64, 2)}
	d.Run(p)
	require.Equal(t, []int64{1, 5}, p.Share)
	require.True(t, slices.Equal(plainDivision(p), p.Share))
}
