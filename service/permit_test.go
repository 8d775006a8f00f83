package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service"
)

func TestNoWayLeadsToAClusterThatTheCallerMayNotName(t *testing.T) {
	var allowed atomic.Value
	allowed.Store("mine")
	r := start(t, service.Options{Permit: func(_ context.Context, cluster string) error {
		if cluster == allowed.Load() {
			return nil
		}
		return &decode.Fault{
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

type tapKey struct{}

func TestATapRefusesACallAndHealthPassesIt(t *testing.T) {
	refused := status.Error(codes.ResourceExhausted, "not today")
	r := start(t, service.Options{Tap: []tap.ServerInHandle{
		func(context.Context, *tap.Info) (context.Context, error) { return nil, refused },
	}})
	_, err := r.Simulate(t.Context(), emptyRequest())
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, healthOf(t, r, ""))
	require.Error(t, r.conn.Invoke(t.Context(), "/made.up/Name", emptyRequest(), emptyRequest()))

	requireCount(t, r.server.Registry(), 1, "/apportion.v1.DecisionService/Simulate", "ResourceExhausted")
	requireCount(t, r.server.Registry(), 1, "other", "ResourceExhausted")
}

func requireCount(t *testing.T, registry *prometheus.Registry, want int, labels ...string) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	got := 0
	for _, family := range families {
		if family.GetName() != "apportion_calls_refused_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			values := map[string]bool{}
			for _, l := range m.GetLabel() {
				values[l.GetValue()] = true
			}
			if values[labels[0]] && values[labels[1]] {
				got += int(m.GetCounter().GetValue())
			}
		}
	}
	require.Equal(t, want, got, labels)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestTapsAreAskedInOrderAndPassAContextOn(t *testing.T) {
	var seen any
	r := start(t, service.Options{
		Tap: []tap.ServerInHandle{
			func(ctx context.Context, _ *tap.Info) (context.Context, error) {
				return context.WithValue(ctx, tapKey{}, 7), nil
			},
			func(ctx context.Context, _ *tap.Info) (context.Context, error) {
				if ctx.Value(tapKey{}) != 7 {
					return nil, errors.New("the first tap is not heard")
				}
				return ctx, nil
			},
		},
		Unary: []grpc.UnaryServerInterceptor{
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				seen = ctx.Value(tapKey{})
				return handle(ctx, request)
			},
		},
	})
	_, err := r.Simulate(t.Context(), emptyRequest())
	require.NoError(t, err)
	require.Equal(t, 7, seen)
}
