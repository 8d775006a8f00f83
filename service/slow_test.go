package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

func TestAUnaryCallWhoseMessageDoesNotComeIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{CallTime: 10 * time.Second}, service.ServerOptions{MessageTime: 20 * time.Second})
		began := time.Now()
		// A stream to a unary method that sends nothing.
		stream, err := r.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, apportionv1.ApportionService_Simulate_FullMethodName)
		require.NoError(t, err)
		fields, _ := requireFault(t, stream.RecvMsg(&apportionv1.SimulateResponse{}), codes.DeadlineExceeded, "LIMIT_EXCEEDED")
		require.Equal(t, "deadline.message", fields["limit"])
		require.Equal(t, 20*time.Second, time.Since(began))
	})
}

func TestASessionIsNotBoundAsUnaryCallsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{CallTime: time.Second}, service.ServerOptions{MessageTime: time.Second})
		stream, err := r.RunSession(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.NoError(t, stream.Send(parse(t, &apportionv1.RunSessionRequest{}, `open { snapshot {} policy {} }`)))
		opened, err := stream.Recv()
		require.NoError(t, err)
		require.NotNil(t, opened.GetOpened())
		require.NoError(t, stream.CloseSend())
	})
}
