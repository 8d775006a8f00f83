package client_test

import (
	"bytes"
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
	"github.com/apportion/apportion/internal/test/filled"
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

func TestTheCodecEncodesWhatTheLibraryDoes(t *testing.T) {
	codec := client.Codec()
	for _, empty := range contract(t) {
		t.Run(string(empty.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			require.Implements(t, (*interface{ SizeVT() int })(nil), empty, "list it in buf.gen.yaml")
			rapid.Check(t, func(t *rapid.T) {
				m := empty.ProtoReflect().New()
				filled.Message(t, m, 5)
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
		filled.Message(t, snapshot.ProtoReflect(), 5)
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
