package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNamesComeInOrder(t *testing.T) {
	shape := rapid.SampledFrom([]string{"job-%d", "team-%[2]d/job-%[1]d", "%x-0000", "%[2]c%[1]d", "a\x00%d", "%[3]s-%[1]d"})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 17, digits - 1, digits, digits + 300}).Draw(t, "names")
		format, salt := shape.Draw(t, "shape"), rapid.IntRange(1, 1<<20).Draw(t, "salt")
		names := make([]string, n)
		for i := range names {
			k := i * salt % 100_003
			names[i] = fmt.Sprintf(format, k, k%3, strings.Repeat("long", k%5))
		}
		want := since[JobID](0, n)
		slices.SortStableFunc(want, func(l, r JobID) int { return strings.Compare(names[l], names[r]) })
		require.Equal(t, want, orderUnless(n, func(j JobID) string { return names[j] }, nil))
	})
}
