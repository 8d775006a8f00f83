package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/setting"
)

func TestASnapshotThatTheProgramHoldsIsNamedByDigest(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	snapshot := servicetest.Snapshot(1)
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	digest, err := r.Server.Hold(t.Context(), data)
	require.NoError(t, err)
	require.Equal(t, digest, r.Upload(t, snapshot), "the digest is that of an upload")
	answer, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_Policy{Policy: servicetest.Proportion()},
	}})
	require.NoError(t, err)
	require.Equal(t, digest, answer.GetBasis().GetSnapshotDigest())
}

func TestWhatIsNoSnapshotIsNotHeld(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	_, err := r.Server.Hold(t.Context(), []byte("x"))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	small := servicetest.Start(t, service.Options{Limit: setting.Limit{CacheBytes: 1 << 10}})
	data, err := proto.Marshal(servicetest.Snapshot(1))
	require.NoError(t, err)
	_, err = small.Server.Hold(t.Context(), data)
	require.Equal(t, codes.OutOfRange, status.Code(err))
}
