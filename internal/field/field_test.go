package field_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/apportion/apportion/internal/field"
)

// agree requires that At reads every field of a message as protowire does, and says so where protowire fails.
func agree(t *testing.T, b []byte) {
	for i := 0; i < len(b); {
		tag, value, from, to := field.At(b, i)
		number, kind, n := protowire.ConsumeField(b[i:])
		if n < 0 || number > protowire.MaxValidNumber {
			// A reader that looks at the tag before it looks at to must not find one.
			require.Negative(t, to)
			require.Zero(t, tag)
			return
		}
		require.Equal(t, i+n, to)
		_, _, head := protowire.ConsumeTag(b[i:])
		switch rest := b[i+head:]; kind {
		case protowire.VarintType:
			want, _ := protowire.ConsumeVarint(rest)
			require.Equal(t, want, value)
			require.Equal(t, to, from)
		case protowire.Fixed64Type:
			want, _ := protowire.ConsumeFixed64(rest)
			require.Equal(t, want, value)
		case protowire.BytesType:
			want, _ := protowire.ConsumeBytes(rest)
			require.Equal(t, want, b[from:to])
		}
		require.Equal(t, uint32(number)<<3|uint32(kind), tag)
		i = to
	}
}

func FuzzEachFieldIsReadAsTheLibraryReadsIt(f *testing.F) {
	for _, b := range [][]byte{
		{},
		{1 << 3, 5},
		{1<<3 | 2, 2, 'a', 'b'},
		{1<<3 | 1, 1, 2, 3, 4, 5, 6, 7, 8},
		{0x80 | 1<<3, 1, 0x80, 1},
		{1<<3 | 3, 1 << 3, 1, 1<<3 | 4},
		{1<<3 | 5, 1, 2, 3, 4},
		{1<<3 | 2, 0x80, 0},
		// Truncated and invalid ones.
		{1 << 3},
		{1 << 3, 0x80},
		{1<<3 | 2},
		{1<<3 | 2, 3, 'a'},
		{1<<3 | 2, 0x80},
		{1<<3 | 1, 1},
		{1<<3 | 3, 1 << 3},
		{1<<3 | 4},
		{1<<3 | 7},
		{0, 0},
		{0x80},
		{1 << 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2},
		{0x80, 0x80, 0x80, 0x80, 0x10, 0},
	} {
		f.Add(b)
	}
	f.Fuzz(agree)
}
