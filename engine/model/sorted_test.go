package model

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

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
