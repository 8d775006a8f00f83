package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

func TestAWholeCallIsTriedAgainWhereThatMayHelp(t *testing.T) {
	lost := status.Error(codes.Unavailable, "lost")
	busy := status.FromProto(wire.Status(&wire.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Retry: time.Second,
	})).Err()
	tooLarge := status.Error(codes.ResourceExhausted, "too large")
	for name, tc := range map[string]struct {
		errors        []error
		asked         int
		least, utmost time.Duration
		err           error
	}{
		"an answer":                      {nil, 1, 0, 0, nil},
		"a replica that was lost":        {[]error{lost}, 2, 10 * time.Millisecond, 20 * time.Millisecond, nil},
		"a replica that is busy":         {[]error{busy, busy}, 3, 2 * time.Second, 4 * time.Second, nil},
		"what no asking mends":           {[]error{tooLarge}, 1, 0, 0, tooLarge},
		"all replicas that are lost":     {[]error{lost, lost, lost, lost, lost}, 5, 150 * time.Millisecond, 300 * time.Millisecond, lost},
		"a fault of the question itself": {[]error{lost, status.Error(codes.InvalidArgument, "no")}, 2, 10 * time.Millisecond, 20 * time.Millisecond, status.Error(codes.InvalidArgument, "no")},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, asked := time.Now(), 0
			_, err := again(t.Context(), func() (int, error) {
				asked++
				if asked <= len(tc.errors) {
					return 0, tc.errors[asked-1]
				}
				return 1, nil
			})
			require.Equal(t, tc.err, err, name)
			require.Equal(t, tc.asked, asked, name)
			require.GreaterOrEqual(t, time.Since(began), tc.least, name)
			require.LessOrEqual(t, time.Since(began), tc.utmost, name)
		})
	}
}

func TestNobodyTriesAgainForACallerThatHasGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	_, err := again(ctx, func() (int, error) {
		asked++
		cancel()
		return 0, status.Error(codes.Unavailable, "lost")
	})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, 1, asked)
}
