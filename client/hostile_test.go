package client_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

type sessionStream = grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]

// TestASessionBearsAServerThatSendsWithoutEnd has a server that says that it ends, again and again, with the longest time there is.
func TestASessionBearsAServerThatSendsWithoutEnd(t *testing.T) {
	const notices = 50_000
	s := &scripted{session: func(stream sessionStream) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		if err := stream.Send(opened("1")); err != nil {
			return err
		}
		for i := range notices {
			going := &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_GoingAway{
				GoingAway: &apportionv1.GoingAway{DeadlineMs: math.MaxUint64 - uint64(i%2)*math.MaxInt64},
			}}
			if err := stream.Send(going); err != nil {
				return err
			}
		}
		return answering(stream, 1000)
	}}
	c, stop := s.play(t)
	defer stop()
	before := runtime.NumGoroutine()
	session, err := c.OpenSession(t.Context(), client.Input{Snapshot: &apportionv1.Snapshot{}, PolicyName: "p"})
	require.NoError(t, err)
	for range 20 {
		_, err = session.Do(t.Context(), shares())
		require.NoError(t, err)
		require.Less(t, runtime.NumGoroutine(), before+200)
	}
	require.NoError(t, session.Close())
}

// TestAServerMayAskToWaitForAnyTime has a server that is busy for hundreds of years.
func TestAServerMayAskToWaitForAnyTime(t *testing.T) {
	for name, delay := range map[string]*durationpb.Duration{
		"the longest time":   {Seconds: math.MaxInt64, Nanos: math.MaxInt32},
		"almost the longest": durationpb.New(math.MaxInt64 / 2),
		"a negative time":    {Seconds: math.MinInt64},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy, err := status.New(codes.ResourceExhausted, "busy").WithDetails(
					&errdetails.ErrorInfo{Reason: "OVERLOADED", Domain: "apportion.dev"}, &errdetails.RetryInfo{RetryDelay: delay})
				require.NoError(t, err)
				s := &scripted{shares: func(context.Context, int) error { return busy.Err() }}
				c, stop := s.play(t, client.WithDeadline(time.Second))
				defer stop()
				for range 200 {
					_, err := c.Shares(t.Context(), client.Input{Snapshot: &apportionv1.Snapshot{}, PolicyName: "p"}, client.SharesQuestion{})
					require.Contains(t, []codes.Code{codes.ResourceExhausted, codes.DeadlineExceeded}, status.Code(err))
				}
			})
		})
	}
}
