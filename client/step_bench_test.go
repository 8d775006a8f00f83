package client_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// One step on an open session: through the client, which keeps a log and can move, and on the bare stream.
func BenchmarkStep(b *testing.B) {
	s, err := service.New(service.Options{})
	require.NoError(b, err)
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	defer func() {
		cancel()
		require.NoError(b, <-served)
	}()
	in := client.Input{Snapshot: office(), Policy: client.VolcanoDefault()}
	step := &apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{
		Tasks: &apportionv1.Tasks{Uid: []string{"suite-0"}},
	}}}
	b.Run("client", func(b *testing.B) {
		c, err := client.Dial(listener.Addr().String(), client.WithPlaintext())
		require.NoError(b, err)
		session, err := c.OpenSession(b.Context(), in)
		require.NoError(b, err)
		for b.Loop() {
			if _, err := session.Do(b.Context(), step); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, session.Close())
		require.NoError(b, c.Close())
	})
	b.Run("stream", func(b *testing.B) {
		connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(b, err)
		stream, err := apportionv1.NewApportionServiceClient(connection).RunSession(b.Context())
		require.NoError(b, err)
		require.NoError(b, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: in.Snapshot}, Rule: &apportionv1.Input_Policy{Policy: in.Policy},
		}}}}))
		_, err = stream.Recv()
		require.NoError(b, err)
		batch := &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{
			Batch: &apportionv1.StepBatch{Id: 1, Steps: []*apportionv1.Step{step}},
		}}
		for b.Loop() {
			require.NoError(b, stream.Send(batch))
			_, err := stream.Recv()
			require.NoError(b, err)
		}
		require.NoError(b, stream.CloseSend())
		require.NoError(b, connection.Close())
	})
}
