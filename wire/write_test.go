package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

// responses are empty messages that Encode encodes.
var responses = []proto.Message{
	&apportionv1.RunSessionResponse{}, &apportionv1.EvaluateSharesResponse{}, &apportionv1.CheckEnqueueResponse{},
	&apportionv1.CheckAllocatableResponse{}, &apportionv1.SelectVictimsResponse{}, &apportionv1.SimulateResponse{},
}

// fill sets fields of a message, each perhaps, whatever they are: a field that is new in the contract is filled too.
func fill(t *rapid.T, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if rapid.IntRange(0, 3).Draw(t, "set") == 0 || depth == 0 && f.Message() != nil {
			continue
		}
		if f.IsList() {
			list := m.Mutable(f).List()
			for range rapid.IntRange(0, 3).Draw(t, "length") {
				if f.Message() == nil {
					list.Append(scalar(t, f))
				} else {
					fill(t, list.AppendMutable().Message(), depth-1)
				}
			}
			continue
		}
		if f.Message() == nil {
			m.Set(f, scalar(t, f))
		} else {
			fill(t, m.Mutable(f).Message(), depth-1)
		}
	}
}

func scalar(t *rapid.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-1, 70).Draw(t, "enum")))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, "int32"))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "int64"))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, "uint32"))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "uint64"))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -2.5, math.Inf(1), 1e300}).Draw(t, "double"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(rapid.String().Draw(t, "bytes")))
	default:
		return protoreflect.ValueOfString(rapid.String().Draw(t, "string"))
	}
}

func TestTheDirectEncoderAgrees(t *testing.T) {
	for _, empty := range responses {
		t.Run(string(empty.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			var memory []byte
			rapid.Check(t, func(t *rapid.T) {
				m := empty.ProtoReflect().New()
				fill(t, m, 6)
				response := m.Interface()
				encoded, larger, ok, err := wire.Encode(memory, response)
				require.NoError(t, err)
				if r, session := response.(*apportionv1.RunSessionResponse); session && r.GetAnswers() == nil {
					require.False(t, ok)
					return
				}
				require.True(t, ok)
				require.GreaterOrEqual(t, len(larger), len(memory))
				memory = larger
				decoded := m.New().Interface()
				require.NoError(t, proto.Unmarshal(encoded, decoded))
				require.True(t, proto.Equal(response, decoded), "%v\n%v", response, decoded)
				require.Len(t, encoded, proto.Size(response))
			})
		})
	}
}

func TestTheDirectEncoderLeavesOtherMessagesAlone(t *testing.T) {
	for _, response := range []any{nil, 7, &apportionv1.Snapshot{}, &apportionv1.RunSessionResponse{}} {
		_, _, ok, err := wire.Encode(nil, response)
		require.NoError(t, err)
		require.False(t, ok)
	}
}

// sharesOf answers all shares of a generated snapshot.
func sharesOf(tb testing.TB, shape generate.Shape) *apportionv1.EvaluateSharesResponse {
	tb.Helper()
	m, err := wire.Compile(generate.Snapshot(shape))
	require.NoError(tb, err)
	proportion := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}}
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{proportion}}}}
	s, err := wire.Open(m, policy, wire.Options{})
	require.NoError(tb, err)
	answer, err := s.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{}})
	require.NoError(tb, err)
	return &apportionv1.EvaluateSharesResponse{Basis: s.Basis(), Shares: answer.GetShares()}
}

func BenchmarkEncode(b *testing.B) {
	response := sharesOf(b, generate.Standard())
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		var memory []byte
		for b.Loop() {
			encoded, larger, ok, err := wire.Encode(memory, response)
			if !ok || err != nil {
				b.Fatal(ok, err)
			}
			memory = larger
			b.SetBytes(int64(len(encoded)))
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			data, err := proto.Marshal(response)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
		}
	})
}

func TestABasisTakesNoMoreThanEstimated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		basis := &apportionv1.Basis{}
		fill(t, basis.ProtoReflect(), rapid.IntRange(0, 3).Draw(t, "depth"))
		require.GreaterOrEqual(t, wire.BasisBytes(basis), proto.Size(basis))
	})
	require.Zero(t, wire.BasisBytes(nil))
}
