package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// scripted is a service whose sessions do what a test says.
type scripted struct {
	apportionv1.UnimplementedDecisionServiceServer

	session func(grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]) error
	calls   atomic.Int32
	shares  func(ctx context.Context, call int) error
}

func (s *scripted) RunSession(stream grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]) error {
	return s.session(stream)
}

func (s *scripted) EvaluateShares(ctx context.Context, _ *apportionv1.EvaluateSharesRequest) (*apportionv1.EvaluateSharesResponse, error) {
	return &apportionv1.EvaluateSharesResponse{}, s.shares(ctx, int(s.calls.Add(1)))
}

// play serves the scripted answers to a client that is connected in memory.
func (s *scripted) play(t *testing.T, options ...client.Option) (c *client.Client, stop func()) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	apportionv1.RegisterDecisionServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
	c, err := client.Dial("passthrough:///memory", append([]client.Option{client.WithPlaintext(), client.WithDialOptions(dialer)}, options...)...)
	require.NoError(t, err)
	return c, func() {
		require.NoError(t, c.Close())
		server.Stop()
		require.NoError(t, <-served)
	}
}

func opened(version string) *apportionv1.RunSessionResponse {
	return &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_Opened{Opened: &apportionv1.SessionOpened{
		Basis: &apportionv1.Basis{EngineVersion: version, PolicyDigest: "sha256:aa"},
	}}}
}

// answering answers every batch with empty answers, until it has answered so many.
func answering(stream grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse], batches int) error {
	for range batches {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		batch := request.GetBatch()
		answers := &apportionv1.AnswerBatch{Id: batch.GetId(), Answers: make([]*apportionv1.Answer, len(batch.GetSteps()))}
		for i := range answers.Answers {
			answers.Answers[i] = &apportionv1.Answer{}
		}
		if err := stream.Send(&apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_Answers{Answers: answers}}); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "gone")
}

func TestASessionDoesNotGoOnWithAnotherEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions := []string{"1.0.0", "1.0.1"}
		var n atomic.Int32
		c, stop := (&scripted{session: func(stream grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]) error {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			if err := stream.Send(opened(versions[n.Add(1)-1])); err != nil {
				return err
			}
			return answering(stream, 1)
		}}).play(t)
		defer stop()
		session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
		require.NoError(t, err)
		_, err = session.Do(t.Context(), deallocate("web/shop-0"))
		require.NoError(t, err)
		_, err = session.Do(t.Context(), shares())
		require.ErrorIs(t, err, client.ErrMoved)
		require.ErrorContains(t, err, "engine 1.0.0, and 1.0.1 now")
		require.NoError(t, session.Close())
	})
}

// A server that asks every session to leave at once, forever, is not asked in circles without a pause, and keeps being asked.
func TestASessionThatIsSentAwayEverywhereStillAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sessions atomic.Int32
		away := &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_GoingAway{
			GoingAway: &apportionv1.GoingAway{DeadlineMs: 10_000},
		}}
		c, stop := (&scripted{session: func(stream grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]) error {
			sessions.Add(1)
			if _, err := stream.Recv(); err != nil {
				return err
			}
			for _, message := range []*apportionv1.RunSessionResponse{opened("1"), away} {
				if err := stream.Send(message); err != nil {
					return err
				}
			}
			return answering(stream, 1000)
		}}).play(t)
		defer stop()
		session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
		require.NoError(t, err)
		for range 20 {
			time.Sleep(time.Second)
			_, err = session.Do(t.Context(), deallocate("web/shop-0"))
			require.NoError(t, err)
		}
		require.Greater(t, sessions.Load(), int32(5))
		require.Less(t, sessions.Load(), int32(50))
		require.NoError(t, session.Close())
	})
}

func TestABatchThatIsNotAnsweredInTimeIsGivenUpAndTheSessionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sessions atomic.Int32
		c, stop := (&scripted{session: func(stream grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]) error {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			if err := stream.Send(opened("1")); err != nil {
				return err
			}
			if sessions.Add(1) == 1 {
				<-stream.Context().Done()
			}
			return answering(stream, 10)
		}}).play(t)
		defer stop()
		session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
		require.NoError(t, err)
		began := time.Now()
		_, err = session.Do(t.Context(), shares())
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, 30*time.Second, time.Since(began), "what a batch has by default")
		_, err = session.Do(t.Context(), shares())
		require.NoError(t, err)
		require.NoError(t, session.Close())
	})
}

func TestDeadlinesReachTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		service := &scripted{shares: func(ctx context.Context, _ int) error {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline).Round(time.Second)
			return nil
		}}
		in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
		ask := func(ctx context.Context, options ...client.Option) time.Duration {
			c, stop := service.play(t, options...)
			defer stop()
			_, err := c.Shares(ctx, in, client.SharesQuestion{})
			require.NoError(t, err)
			return left
		}
		hour, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.Equal(t, 30*time.Second, ask(t.Context()))
		require.Equal(t, time.Hour, ask(hour), "the caller knows")
		require.Equal(t, 3*time.Second, ask(hour, client.WithDeadline(3*time.Second)))
		require.Equal(t, 30*time.Second, ask(t.Context(), client.WithDeadline(3*time.Second, client.KindUpload)))
	})
}
