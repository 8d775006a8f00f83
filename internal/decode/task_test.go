package decode_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// TestThePlainReaderOfATaskReadsWhatTheOtherReads draws fields in any order and number, well formed or cut off. The plain reader gives up
// where it likes, but never on a task as libraries write it.
func TestThePlainReaderOfATaskReadsWhatTheOtherReads(t *testing.T) {
	read := 0
	number := rapid.OneOf(rapid.Uint64Range(0, 8), rapid.Uint64Range(100, 20_000), rapid.Uint64())
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		for range rapid.IntRange(0, 5).Draw(t, "fields") {
			if f := rapid.SampledFrom([]protowire.Number{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "field"); f == 1 || f == 5 || f == 8 {
				data = protowire.AppendBytes(protowire.AppendTag(data, f, protowire.BytesType), rapid.SliceOfN(rapid.Byte(), 0, 130).Draw(t, "text"))
			} else {
				data = protowire.AppendVarint(protowire.AppendTag(data, f, protowire.VarintType), number.Draw(t, "number"))
			}
		}
		data = data[:len(data)-rapid.IntRange(0, min(len(data), 3)).Draw(t, "cut")]
		plain, whole := decode.ReadTasks(data)
		if plain != nil {
			read++
			require.Equal(t, whole, plain, "%x", data)
		}
	})
	require.Positive(t, read)
	rapid.Check(t, func(t *rapid.T) {
		task := &apportionv1.Task{
			Uid: rapid.StringN(0, 30, 120).Draw(t, "uid"), Status: apportionv1.TaskStatus(rapid.IntRange(0, 9).Draw(t, "status")),
		}
		if node := rapid.Int64Range(-1, 1<<14-1).Draw(t, "node"); node >= 0 {
			task.Node = new(uint32(node))
		}
		if rapid.Bool().Draw(t, "indexed") {
			task.Index = new(uint32(rapid.IntRange(0, 127).Draw(t, "index")))
		}
		data, err := proto.Marshal(task)
		require.NoError(t, err)
		plain, whole := decode.ReadTasks(data)
		require.NotNil(t, plain)
		require.Equal(t, whole, plain)
	})
}
