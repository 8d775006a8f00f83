package service_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/wire"
)

// long returns a snapshot that is large enough to be compiled in the memory that received it.
func long(t *testing.T) string {
	t.Helper()
	snapshot := inputOf(t).GetSnapshot()
	for range 100 {
		snapshot.Nodes = append(snapshot.Nodes, &apportionv1.Node{Name: strings.Repeat("n", 400+len(snapshot.GetNodes()))})
	}
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	return string(data)
}

func TestALongOnlyChunkIsReadHoweverItIsWritten(t *testing.T) {
	r := start(t, service.Options{})
	data := long(t)
	require.Greater(t, len(data), 32<<10)
	// Unknown fields are passed over.
	unknown := chunk(data, true)
	unknown.GetChunk().ProtoReflect().SetUnknown([]byte{0x78, 1})
	for _, last := range []*apportionv1.UploadSnapshotRequest{chunk(data, true), unknown} {
		response, err := upload(t.Context(), t, r, header("", len(data)), last)
		require.NoError(t, err)
		require.Equal(t, wire.Digest([]byte(data)), response.GetDigest())
		shares, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, response.GetDigest())})
		require.NoError(t, err)
		require.NotEmpty(t, shares.GetShares().GetPlugins())
	}
}

func TestALongChunkThatIsNotTheLastOrNoSnapshotIsRefused(t *testing.T) {
	r := start(t, service.Options{})
	data := long(t)
	_, err := upload(t.Context(), t, r, header("", len(data)), chunk(data, false))
	require.Error(t, err)
	_, err = upload(t.Context(), t, r, header("", len(data)), chunk(strings.Repeat("\xff", len(data)), true))
	requireFault(t, err, codes.InvalidArgument, "INVALID_SNAPSHOT")
}
