package model

import (
	"slices"
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
