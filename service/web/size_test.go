package web

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

// draw fills some fields of a message with values of their kinds, the longest among them.
func draw(t *rapid.T, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	if fields.Len() == 0 {
		return
	}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		f := fields.Get(rapid.IntRange(0, fields.Len()-1).Draw(t, "field"))
		switch {
		case f.IsMap(), f.Message() != nil && (depth == 0 || f.Message().FullName() == "google.protobuf.Any"):
		case f.IsList():
			list := m.Mutable(f).List()
			for range rapid.IntRange(0, 3).Draw(t, "length") {
				if f.Message() != nil {
					draw(t, list.AppendMutable().Message(), depth-1)
				} else {
					list.Append(drawValue(t, f))
				}
			}
		case f.Message() != nil:
			draw(t, m.Mutable(f).Message(), depth-1)
		default:
			m.Set(f, drawValue(t, f))
		}
	}
}

func drawValue(t *rapid.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	text := rapid.StringOf(rapid.SampledFrom([]rune("a\"\\\n\x00\x7fä\u2028😀<>&"))).Draw(t, "text")
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.SampledFrom([]int32{0, 1, 2, 3, math.MaxInt32, math.MinInt32}).Draw(t, "enum")))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(math.MinInt32)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(math.MaxUint32)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(math.MinInt64)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(math.MaxUint64)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(-math.SmallestNonzeroFloat32)
	default:
		return protoreflect.ValueOfFloat64(rapid.SampledFrom([]float64{
			math.Inf(-1), math.NaN(), -1.2345678901234567e-300, -123456789012345680000, 0.1,
		}).Draw(t, "double"))
	}
}

// TestNoJSONTextIsLongerThanIsBookedForIt draws answers of every kind.
func TestNoJSONTextIsLongerThanIsBookedForIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]proto.Message{
			&apportionv1.SimulateResponse{}, &apportionv1.ExplainResponse{}, &apportionv1.GetServerInfoResponse{}, &apportionv1alpha1.GetHistoryResponse{},
		}).Draw(t, "kind").ProtoReflect().New()
		draw(t, m, 6)
		if answer, ok := m.Interface().(*apportionv1.SimulateResponse); ok {
			detail, err := anypb.New(&errdetails.ErrorInfo{Reason: "R", Metadata: map[string]string{"a": "b\n"}})
			require.NoError(t, err)
			answer.Answers = append(answer.Answers, &apportionv1.Answer{
				Answer: &apportionv1.Answer_Error{Error: &status.Status{Code: 3, Details: []*anypb.Any{detail}}},
			})
		}
		plain, err := protojson.Marshal(m.Interface())
		require.NoError(t, err)
		require.LessOrEqual(t, len(plain), jsonLength(m.Interface()))
		text, err := marshalJSON(m.Interface())
		require.NoError(t, err)
		require.Equal(t, jsonLength(m.Interface()), cap(text), "the text was moved as it grew")
	})
}

// TestAPageOfTenThousandWaitingJobsIsBookedAsItsText books what the text takes, and no multiple of it.
func TestAPageOfTenThousandWaitingJobsIsBookedAsItsText(t *testing.T) {
	answer := &apportionv1.ExplainAnswer{}
	for range 10_000 {
		answer.Jobs = append(answer.Jobs, &apportionv1.Explanation{
			Uid:     "5b0a8f3e-60f5-4a58-9f0a-0c3e6a1d2b4c",
			Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED,
			Findings: []*apportionv1.Finding{{
				Check: apportionv1.CheckKind_CHECK_KIND_SHARE, Outcome: apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED,
				Text: strings.Repeat("queue language deserves 26.67 of nvidia.com/gpu. ", 3),
			}},
		})
	}
	text, err := protojson.Marshal(answer)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), jsonLength(answer))
	require.Less(t, float64(jsonLength(answer)), 1.1*float64(len(text)))
	require.Less(t, sentBytes*jsonLength(answer), sentJSONMost*proto.Size(answer)/8)
}
