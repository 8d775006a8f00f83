package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// eachTextSpoilt calls do with the encoding of a message once for every text field that is reachable from it: that field is there twice,
// and only the second is UTF-8. All other fields are as in the message.
func eachTextSpoilt(m protoreflect.Message, within []protoreflect.FullName, do func(path string, data []byte)) {
	name := m.Descriptor().FullName()
	if slices.Contains(within, name) {
		return
	}
	within = append(slices.Clip(within), name)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Kind() == protoreflect.StringKind:
			good := m.Get(f)
			if f.IsList() {
				good = protoreflect.ValueOfString("good")
			}
			data := protowire.AppendString(protowire.AppendTag(nil, f.Number(), protowire.BytesType), "\xff")
			data = protowire.AppendString(protowire.AppendTag(data, f.Number(), protowire.BytesType), good.String())
			do(string(f.Name()), append(data, marshalWithout(m, f)...))
		case f.Kind() == protoreflect.MessageKind && !f.IsMap():
			inner := m.NewField(f)
			if list := m.Get(f); f.IsList() && list.List().Len() > 0 {
				inner = list.List().Get(0)
			} else if f.IsList() {
				inner = inner.List().NewElement()
			} else if m.Has(f) {
				inner = m.Get(f)
			}
			rest := marshalWithout(m, f)
			eachTextSpoilt(inner.Message(), within, func(path string, data []byte) {
				whole := protowire.AppendTag(slices.Clone(rest), f.Number(), protowire.BytesType)
				do(string(f.Name())+"."+path, protowire.AppendBytes(whole, data))
			})
		}
	}
}

// marshalWithout encodes a message without one of its fields.
func marshalWithout(m protoreflect.Message, f protoreflect.FieldDescriptor) []byte {
	rest := proto.Clone(m.Interface())
	rest.ProtoReflect().Clear(f)
	data, err := proto.Marshal(rest)
	if err != nil {
		panic(err)
	}
	return data
}

const everyText = `
dimensions: "cpu"
nodes { name: "n" }
queues { name: "root" } queues { name: "q" }
node_sets { name: "s" nodes: 0 rule: "r" exclusions { rule: "e" } }
jobs { uid: "j" name: "job" namespace: "ns" queue: "q" condition: "c"
  groups { role: "r" node_set: "s" request { dimensions: 0 amounts: 1 } counts { count: 2 }
    tasks { uid: "t" name: "task" detail { priority_class: "p" node_set: "s" condition: "c" } } } }`

// TestATextIsUTF8HoweverOftenItIsGiven walks all texts of what is read without the protobuf library, which refuses each of these.
func TestATextIsUTF8HoweverOftenItIsGiven(t *testing.T) {
	const malformed = "not a valid protobuf message"
	snapshot := parse(t, &apportionv1.Snapshot{}, everyText)
	sound, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	base, err := decode.CompileBytes(sound)
	require.NoError(t, err)
	sums, err := new(decode.Decoder).CompileWithin(sound, decode.Guard{Sums: true, Parts: 1})
	require.NoError(t, err)
	require.Equal(t, 1, sums.Tallied, "the sums of the sound snapshot are read without its tasks")

	texts := 0
	eachTextSpoilt(snapshot.ProtoReflect(), nil, func(path string, data []byte) {
		texts++
		require.Error(t, proto.Unmarshal(data, &apportionv1.Snapshot{}), path)
		_, err := decode.CompileBytes(data)
		require.ErrorContains(t, err, malformed, "snapshot.%s", path)
		for _, parts := range []int{1, 2} {
			_, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Parts: parts})
			require.ErrorContains(t, err, malformed, "snapshot.%s in %d parts", path, parts)
			_, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Sums: true, Parts: parts})
			require.ErrorContains(t, err, malformed, "sums of snapshot.%s in %d parts", path, parts)
		}
	})
	require.Greater(t, texts, 15)

	change := parse(t, &apportionv1.Change{}, `tasks { uid: "t" }`)
	eachTextSpoilt(change.ProtoReflect(), nil, func(path string, data []byte) {
		require.Error(t, proto.Unmarshal(data, &apportionv1.Change{}), path)
		for _, parts := range []int{1, 2} {
			_, err := new(decode.Decoder).CompileChange(base, data, decode.Guard{Parts: parts})
			require.ErrorContains(t, err, malformed, "change.%s in %d parts", path, parts)
		}
	})

	eachTextSpoilt((&apportionv1.RunSessionRequest{}).ProtoReflect(), nil, func(path string, data []byte) {
		require.Error(t, proto.Unmarshal(data, &apportionv1.RunSessionRequest{}), path)
		require.False(t, wire.DecodeBatch(data, &apportionv1.RunSessionRequest{}), path)
	})
}
