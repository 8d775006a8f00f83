package service_test

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/setting"
)

func TestAUnaryCallWhoseMessageDoesNotComeIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{Deadline: setting.Deadline{Call: 10 * time.Second, Message: 20 * time.Second}})
		began := time.Now()
		// A stream to a unary method that sends nothing.
		stream, err := r.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, apportionv1.ApportionService_Simulate_FullMethodName)
		require.NoError(t, err)
		fields, _ := requireFault(t, stream.RecvMsg(&apportionv1.SimulateResponse{}), codes.DeadlineExceeded, "LIMIT_EXCEEDED")
		require.Equal(t, "deadline.message", fields["limit"])
		require.Equal(t, 20*time.Second, time.Since(began))
	})
}

func TestACallWhoseAnswerIsNotReadHoldsNoPlace(t *testing.T) {
	_, address := listen(t, service.Options{Overload: admission.Options{Running: 1, Calls: 1}, Drain: setting.Drain{Time: time.Millisecond}})
	request, err := proto.Marshal(largeAnswer(t))
	require.NoError(t, err)
	message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(request))), request...)
	for range 3 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		framer := begin(t, conn, apportionv1.ApportionService_Simulate_FullMethodName, nil, nil, http2.Setting{ID: http2.SettingInitialWindowSize})
		require.NoError(t, framer.WriteData(1, true, message))
	}
	client := connect(t, address)
	require.Eventually(t, func() bool {
		_, err := client.Simulate(t.Context(), emptyRequest())
		return err == nil
	}, 5*time.Second, 10*time.Millisecond)
}

func TestASessionIsNotBoundAsUnaryCallsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{Deadline: setting.Deadline{Call: time.Second, Message: time.Second}})
		stream, err := r.RunSession(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.NoError(t, stream.Send(parse(t, &apportionv1.RunSessionRequest{}, `open { input { snapshot {} policy {} } }`)))
		opened, err := stream.Recv()
		require.NoError(t, err)
		require.NotNil(t, opened.GetOpened())
		require.NoError(t, stream.CloseSend())
	})
}
