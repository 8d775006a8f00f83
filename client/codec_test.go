package client_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
)

// contract are empty messages of all kinds that a client sends and the service answers.
func contract(t *testing.T) []proto.Message {
	t.Helper()
	var list []proto.Message
	methods := apportionv1.File_apportion_v1_service_proto.Services().Get(0).Methods()
	for i := range methods.Len() {
		for _, message := range []protoreflect.MessageDescriptor{methods.Get(i).Input(), methods.Get(i).Output()} {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
			require.NoError(t, err)
			list = append(list, kind.New().Interface())
		}
	}
	require.NotEmpty(t, list)
	return list
}

// fill sets fields of a message, each perhaps.
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
		return protoreflect.ValueOfFloat64(rapid.SampledFrom([]float64{0, 1, -2.5, math.Inf(1), 1e300}).Draw(t, "double"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(rapid.String().Draw(t, "bytes")))
	default:
		return protoreflect.ValueOfString(rapid.String().Draw(t, "string"))
	}
}

func TestTheCodecEncodesWhatTheLibraryDoes(t *testing.T) {
	codec := client.Codec()
	for _, empty := range contract(t) {
		t.Run(string(empty.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			require.Implements(t, (*interface{ SizeVT() int })(nil), empty, "list it in buf.gen.yaml")
			rapid.Check(t, func(t *rapid.T) {
				m := empty.ProtoReflect().New()
				fill(t, m, 5)
				encoded, err := codec.Marshal(m.Interface())
				require.NoError(t, err)
				defer encoded.Free()
				require.Equal(t, proto.Size(m.Interface()), encoded.Len())
				received := empty.ProtoReflect().New().Interface()
				require.NoError(t, proto.Unmarshal(encoded.Materialize(), received))
				require.True(t, proto.Equal(m.Interface(), received))
			})
		})
	}
}

// The digest of a snapshot is that of its bytes.
func TestASnapshotHasTheBytesThatTheLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := &apportionv1.Snapshot{}
		fill(t, snapshot.ProtoReflect(), 5)
		expected, err := proto.MarshalOptions{Deterministic: true}.Marshal(snapshot)
		require.NoError(t, err)
		encoded, err := snapshot.MarshalVT()
		require.NoError(t, err)
		require.True(t, bytes.Equal(expected, encoded))
	})
}

func TestTheCodecEncodesOtherMessagesToo(t *testing.T) {
	codec := client.Codec()
	sent := &healthpb.HealthCheckRequest{Service: "apportion.v1.PolicyService"}
	encoded, err := codec.Marshal(sent)
	require.NoError(t, err)
	received := &healthpb.HealthCheckRequest{}
	require.NoError(t, codec.Unmarshal(encoded, received))
	require.True(t, proto.Equal(sent, received))
}

// Memory is reused only after gRPC has released it.
func TestMessagesThatAreSentShareNoMemory(t *testing.T) {
	codec := client.Codec()
	var sent []mem.BufferSlice
	var expected [][]byte
	for seed := range uint64(20) {
		m := &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{Source: &apportionv1.Input_Snapshot{
			Snapshot: generate.Snapshot(generate.Shape{Queues: 5, Jobs: 10, Tasks: 50 * int(1+seed%4), Nodes: 3, Seed: seed, UIDs: true}),
		}}}
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		encoded, err := codec.Marshal(m)
		require.NoError(t, err)
		sent, expected = append(sent, encoded), append(expected, data)
		if seed%3 == 2 {
			require.Equal(t, expected[0], sent[0].Materialize())
			sent[0].Free()
			sent, expected = sent[1:], expected[1:]
		}
	}
	for i := range sent {
		require.Equal(t, expected[i], sent[i].Materialize())
		sent[i].Free()
	}
}

func TestTheServiceRefusesATextThatIsNotUTF8(t *testing.T) {
	address, stop := serve(t, "127.0.0.1:0")
	t.Cleanup(stop)
	c := dial(t, address)
	snapshot := twoTeams(t)
	snapshot.Jobs[0].Name = "\xff"

	_, err := c.Shares(t.Context(), client.Input{Snapshot: snapshot, Policy: proportional(t)}, client.SharesQuestion{})
	require.Equal(t, codes.InvalidArgument, status.Code(err), err)
	_, err = c.Upload(t.Context(), snapshot)
	require.Equal(t, codes.InvalidArgument, status.Code(err), err)
}
