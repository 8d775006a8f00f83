package service_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/wire"
)

func TestNoWayLeadsToAClusterThatTheCallerMayNotName(t *testing.T) {
	var allowed atomic.Value
	allowed.Store("mine")
	r := start(t, service.Options{Permit: func(_ context.Context, cluster string) error {
		if cluster == allowed.Load() {
			return nil
		}
		return &wire.Fault{
			Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED, Text: "not yours: " + cluster,
		}
	}})
	policy := &apportionv1.Policy{}
	ways := map[string]func(snapshot *apportionv1.Snapshot) error{
		"in a unary call": func(snapshot *apportionv1.Snapshot) error {
			_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: &apportionv1.Input{
				Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy},
			}})
			return err
		},
		"uploaded": func(snapshot *apportionv1.Snapshot) error {
			_, err := sendUp(t, r, snapshot)
			return err
		},
		"in a session": func(snapshot *apportionv1.Snapshot) error {
			return openWith(t, r, &apportionv1.OpenSession{Input: &apportionv1.Input{
				Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy},
			}})
		},
		"in chunks of a session": func(snapshot *apportionv1.Snapshot) error {
			return openWith(t, r, &apportionv1.OpenSession{
				Input: &apportionv1.Input{Rule: &apportionv1.Input_Policy{Policy: policy}}, Chunked: &apportionv1.UploadHeader{},
			}, snapshot)
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, send(&apportionv1.Snapshot{Cluster: "mine"}))
			for _, cluster := range []string{"", "yours", "mine2"} {
				requireFault(t, send(&apportionv1.Snapshot{Cluster: cluster}), codes.PermissionDenied, "PERMISSION_DENIED")
			}
		})
	}

	t.Run("held since it was allowed", func(t *testing.T) {
		digest, err := sendUp(t, r, &apportionv1.Snapshot{Cluster: "mine", AsOf: 1})
		require.NoError(t, err)
		ask := func() error {
			_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: &apportionv1.Input{
				Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_Policy{Policy: policy},
			}})
			return err
		}
		require.NoError(t, ask())
		allowed.Store("other")
		requireFault(t, ask(), codes.PermissionDenied, "PERMISSION_DENIED")
		_, err = sendUp(t, r, &apportionv1.Snapshot{Cluster: "mine", AsOf: 1})
		requireFault(t, err, codes.PermissionDenied, "PERMISSION_DENIED")
	})
}

// sendUp uploads a snapshot in one chunk.
func sendUp(t *testing.T, r *replica, snapshot *apportionv1.Snapshot) (string, error) {
	t.Helper()
	stream, err := r.UploadSnapshot(t.Context())
	require.NoError(t, err)
	_ = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{Header: &apportionv1.UploadHeader{}}})
	_ = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{Chunk: chunkOf(t, snapshot)}})
	response, err := stream.CloseAndRecv()
	return response.GetDigest(), err
}

func chunkOf(t *testing.T, snapshot *apportionv1.Snapshot) *apportionv1.SnapshotChunk {
	t.Helper()
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	return &apportionv1.SnapshotChunk{Data: data, Last: true}
}

// openWith opens a session, and returns what it ends with if it does not open.
func openWith(t *testing.T, r *replica, open *apportionv1.OpenSession, chunked ...*apportionv1.Snapshot) error {
	t.Helper()
	stream, err := r.RunSession(t.Context())
	require.NoError(t, err)
	_ = stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}})
	for _, snapshot := range chunked {
		_ = stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Chunk{Chunk: chunkOf(t, snapshot)}})
	}
	_, err = stream.Recv()
	_ = stream.CloseSend()
	return err
}
