package wire_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/filled"
	"github.com/apportion/apportion/internal/wire"
)

// eachMessage calls do with a message and those in it, and with the path that leads to each.
func eachMessage(m protoreflect.Message, path string, do func(m protoreflect.Message, path string)) {
	do(m, path)
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		at := path + string(f.Name())
		switch {
		case f.Message() == nil || !m.Has(f):
		case f.IsList():
			for k := range m.Get(f).List().Len() {
				eachMessage(m.Get(f).List().Get(k).Message(), fmt.Sprintf("%s[%d].", at, k), do)
			}
		default:
			eachMessage(m.Get(f).Message(), at+".", do)
		}
	}
}

// strangers is the plain twin of what finds fields that are not known: the paths that the library finds, sorted.
func strangers(m proto.Message, path string) (paths []string) {
	eachMessage(m.ProtoReflect(), path, func(m protoreflect.Message, path string) {
		step, ok := m.Interface().(*apportionv1.Step)
		if ok && step.GetStep() == nil {
			return
		}
		for rest := m.GetUnknown(); len(rest) > 0; {
			number, _, n := protowire.ConsumeField(rest)
			if rest = rest[n:]; number < 100 {
				paths = append(paths, fmt.Sprintf("%s%d", path, number))
			}
		}
	})
	slices.Sort(paths)
	return paths
}

// named returns the paths of the violations of an error, sorted.
func named(t require.TestingT, err error) (paths []string) {
	if err == nil {
		return nil
	}
	var fault *decode.Fault
	require.ErrorAs(t, err, &fault)
	require.NotNil(t, fault.Violations, "%v", err)
	for _, v := range fault.Violations.Violations {
		paths = append(paths, v.Path)
	}
	slices.Sort(paths)
	return paths
}

// strange writes a field that a message does not have, or one that it has in another way.
func strange(t *rapid.T, m protoreflect.Message) []byte {
	number := protowire.Number(rapid.SampledFrom([]int32{1, 2, 24, 63, 99, 100, 101, 1000}).Draw(t, "number"))
	way := rapid.SampledFrom([]protowire.Type{protowire.VarintType, protowire.Fixed64Type, protowire.BytesType, protowire.Fixed32Type}).Draw(t, "way")
	if f := m.Descriptor().Fields().ByNumber(number); f != nil {
		way = protowire.Fixed32Type
	}
	b := protowire.AppendTag(nil, number, way)
	switch way { // These are drawn.
	case protowire.VarintType:
		return protowire.AppendVarint(b, rapid.Uint64().Draw(t, "value"))
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, 1)
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, 1)
	default:
		return protowire.AppendBytes(b, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
	}
}

// estrange adds fields that are not known to some of the messages in a message.
func estrange(t *rapid.T, m proto.Message) {
	var all []protoreflect.Message
	eachMessage(m.ProtoReflect(), "", func(m protoreflect.Message, _ string) { all = append(all, m) })
	for range rapid.IntRange(1, 2).Draw(t, "strangers") {
		at := rapid.SampledFrom(all).Draw(t, "at")
		at.SetUnknown(append(at.GetUnknown(), strange(t, at)...))
	}
}

// A field that is not known is refused wherever it is in any request, with its path, and one from number 100 on nowhere.
func TestAFieldThatIsNotKnownIsNamedInEveryRequest(t *testing.T) {
	services := apportionv1.File_apportion_v1_service_proto.Services()
	for i := range services.Len() {
		for k := range services.Get(i).Methods().Len() {
			of := services.Get(i).Methods().Get(k).Input()
			t.Run(string(services.Get(i).Methods().Get(k).Name()), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					request := newMessage(t, of)
					filled.Message(t, request.ProtoReflect(), 5, math.Copysign(0, -1))
					require.NoError(t, decode.Known(request, bytesOf(t, request)))
					estrange(t, request)
					data := bytesOf(t, request)
					require.Equal(t, strangers(request, ""), named(t, decode.Known(request, data)))
					if session, ok := request.(*apportionv1.RunSessionRequest); ok && len(strangers(request, "")) > 0 {
						require.False(t, wire.DecodeBatch(data, new(apportionv1.RunSessionRequest)), "%v", session)
					}
				})
			})
		}
	}
}

// The decoder of snapshots and changes names such fields too, however it reads, and reads informative ones as if they were absent.
func TestAFieldThatIsNotKnownIsNamedInSnapshotsAndChanges(t *testing.T) {
	base, err := decode.Compile(&apportionv1.Snapshot{Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}}})
	require.NoError(t, err)
	read := map[string]func(data []byte) error{
		"snapshot": func(data []byte) error { _, err := decode.CompileBytes(data); return err },
		"in parts": func(data []byte) error {
			_, err := new(decode.Decoder).CompileWithin(data, decode.Guard{Parts: 3})
			return err
		},
		"sums": func(data []byte) error {
			_, err := new(decode.Decoder).CompileWithin(data, decode.Guard{Sums: true, Parts: 2})
			return err
		},
		"change": func(data []byte) error {
			_, err := new(decode.Decoder).CompileChange(base, data, decode.Guard{})
			return err
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		for name, read := range read {
			path := "snapshot."
			var m proto.Message = drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
			if rapid.Bool().Draw(t, "filled") {
				filled.Message(t, m.ProtoReflect(), 6)
			}
			if name == "change" {
				path, m = "change.", &apportionv1.Change{}
				filled.Message(t, m.ProtoReflect(), 6)
			}
			before := read(bytesOf(t, m))
			estrange(t, m)
			after := read(bytesOf(t, m))
			if want := strangers(m, path); len(want) > 0 {
				require.Equal(t, want, named(t, after), name)
				continue
			}
			require.Equal(t, fmt.Sprint(before), fmt.Sprint(after), name)
		}
	})
}

func newMessage(t require.TestingT, of protoreflect.MessageDescriptor) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	require.NoError(t, err)
	return kind.New().Interface()
}

func bytesOf(t require.TestingT, m proto.Message) []byte {
	data, err := proto.Marshal(m)
	require.NoError(t, err)
	return data
}
