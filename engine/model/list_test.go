package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Lists behave like slices under appends and changes, and earlier lists stay unchanged.
func TestSuccessiveListsAreSlicesThatStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const shift = 2
		entries := rapid.SliceOfN(rapid.Int(), 0, 40).Draw(t, "entries")
		first := List[int32, int]{}
		first.cut(slices.Clone(entries), shift)
		lists, want := []List[int32, int]{first}, [][]int{entries}
		for range rapid.IntRange(1, 12).Draw(t, "lists") {
			from := rapid.IntRange(0, len(lists)-1).Draw(t, "from")
			var e edit[int32, int]
			e.begin(&lists[from])
			plain := slices.Clone(want[from])
			for range rapid.IntRange(0, 6).Draw(t, "edits") {
				if len(plain) > 0 && rapid.Bool().Draw(t, "change") {
					at := rapid.IntRange(0, len(plain)-1).Draw(t, "at")
					plain[at] = rapid.Int().Draw(t, "to")
					*e.change(int32(at)) = plain[at]
					continue
				}
				more := rapid.SliceOfN(rapid.Int(), 0, 300).Draw(t, "more")
				e.add(slices.Clone(more)...)
				plain = append(plain, more...)
			}
			lists, want = append(lists, e.List), append(want, plain)
		}
		for i := range lists {
			require.Equal(t, len(want[i]), lists[i].Len())
			require.Equal(t, append([]int{}, want[i]...), append([]int{}, lists[i].Copied()...))
			for at, x := range want[i] {
				require.Equal(t, x, *lists[i].At(int32(at)))
			}
		}
	})
}

func TestTheFirstEntryIsThatOfABinarySearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.SliceOf(rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 9))).Draw(t, "tags")
		x := sorted{}
		for i, tag := range tags {
			x.entries = append(x.entries, uint64(tag)<<32|uint64(i))
		}
		slices.Sort(x.entries)
		tag := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 9), rapid.Just(^uint32(0))).Draw(t, "tag")
		want, _ := slices.BinarySearch(x.entries, uint64(tag)<<32)
		require.Equal(t, want, x.first(uint64(tag)))
	})
}

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
