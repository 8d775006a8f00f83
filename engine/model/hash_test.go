package model

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// uid draws bytes, most of them ASCII.
func uid(t *rapid.T) []byte {
	b := rapid.SliceOfN(rapid.ByteRange(0, 0x7f), 0, 80).Draw(t, "uid")
	if len(b) > 0 && rapid.Bool().Draw(t, "other") {
		b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] |= 0x80
	}
	return b
}

func TestAHashTellsTextsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := uid(t)
		hash, ascii := HashUID(b)
		all := true
		for _, c := range b {
			all = all && c < 0x80
		}
		require.Equal(t, all, ascii)
		require.Equal(t, len(b) == 0, hash == NoUID)

		// The bytes alone count, not where they lie.
		again, _ := HashUID(append(make([]byte, 0, 100), b...))
		require.Equal(t, hash, again)
		longer, _ := HashUID(append(slices.Clip(b), 0))
		require.NotEqual(t, hash, longer)
		for i := range b {
			b[i] ^= 1
			other, _ := HashUID(b)
			require.NotEqual(t, hash, other)
			b[i] ^= 1
		}
	})
}

func TestEqualHashesAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]uint64{3, 1 << 20, 1 << 40, 1<<64 - 1}).Draw(t, "spread")
		high := rapid.Bool().Draw(t, "high")
		list := rapid.SliceOfN(rapid.Uint64Range(1, spread), 0, 400).Draw(t, "hashes")
		seen, distinct := map[uint64]bool{}, true
		for i := range list {
			if high {
				list[i] = list[i]<<40 | 1
			}
			distinct = distinct && !seen[list[i]]
			seen[list[i]] = true
		}
		x := tally{uids: list}
		require.Equal(t, distinct, x.distinct())
		// The memory of one snapshot serves the next.
		require.Equal(t, distinct, x.distinct())
	})
}

func TestManyHashesAreDistinct(t *testing.T) {
	var x tally
	for i := range uint64(200_000) {
		hash, _ := HashUID([]byte{byte(i), byte(i >> 8), byte(i >> 16), 'a', 'n', 'd', ' ', 's', 'i', 'x', 't', 'e', 'e', 'n', ' ', 'm', 'o', 'r', 'e'})
		x.uids = append(x.uids, uint64(hash))
	}
	require.True(t, x.distinct())
	x.uids = append(x.uids, x.uids[77])
	require.False(t, x.distinct())
}
