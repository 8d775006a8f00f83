package service_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

// slow is an interceptor that holds a call for a while, or until its context ends.
func slow(d time.Duration) service.Options {
	return service.Options{Unary: []grpc.UnaryServerInterceptor{
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if info.FullMethod != apportionv1.DecisionService_Simulate_FullMethodName {
				return handle(ctx, request)
			}
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
			return handle(ctx, request)
		},
	}}
}

func emptyRequest() *apportionv1.SimulateRequest {
	return &apportionv1.SimulateRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{}}, Rule: &apportionv1.Input_Policy{Policy: &apportionv1.Policy{}},
	}}
}

func healthOf(t *testing.T, r *replica, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	response, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	require.NoError(t, err)
	return response.GetStatus()
}

func TestHealthSaysServingForTheServerAndTheService(t *testing.T) {
	r := start(t, service.Options{})
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, healthOf(t, r, ""))
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, healthOf(t, r, "apportion.v1.DecisionService"))
}

func TestADrainSaysSoFirstAndLosesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := slow(10 * time.Second)
		options.Drain.Delay = 5 * time.Second
		r := start(t, options)
		watch, err := healthv1.NewHealthClient(r.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
		state, err := watch.Recv()
		require.NoError(t, err)
		require.Equal(t, healthv1.HealthCheckResponse_SERVING, state.GetStatus())

		early := make(chan error, 1)
		go func() {
			_, err := r.Simulate(t.Context(), emptyRequest())
			early <- err
		}()
		synctest.Wait()
		began := time.Now()
		r.end()

		state, err = watch.Recv()
		require.NoError(t, err)
		require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, state.GetStatus())
		require.Zero(t, time.Since(began))

		// Within the delay calls are still taken.
		time.Sleep(4 * time.Second)
		_, err = r.Simulate(t.Context(), emptyRequest())
		require.NoError(t, err)
		require.NoError(t, <-early)
		require.NoError(t, <-r.served)
		r.served <- nil
		require.Equal(t, 30*time.Second, time.Since(began), "the stream that watches health ends by force after the delay and the drain time")
	})
}

func TestACallThatDoesNotEndIsEndedAfterTheDrainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := slow(time.Hour)
		options.Drain.Time = 3 * time.Second
		r := start(t, options)
		result := make(chan error, 1)
		go func() {
			_, err := r.Simulate(t.Context(), emptyRequest())
			result <- err
		}()
		synctest.Wait()
		began := time.Now()
		r.end()
		require.NoError(t, <-r.served)
		r.served <- nil
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, codes.Unavailable, status.Code(<-result))
	})
}

func TestAnIdleServerDrainsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{})
		_, err := r.Simulate(t.Context(), emptyRequest())
		require.NoError(t, err)
		began := time.Now()
		r.end()
		require.NoError(t, <-r.served)
		r.served <- nil
		require.Zero(t, time.Since(began))
	})
}

func TestTheServersOwnDeadlineHoldsWhereTheCallerSetsNone(t *testing.T) {
	s, err := service.New(service.Options{Deadline: setting.Deadline{Call: time.Nanosecond}})
	require.NoError(t, err)
	request := emptyRequest()
	request.Steps = make([]*apportionv1.Step, 100_000)
	_, err = s.Direct().Simulate(t.Context(), request)
	requireFault(t, err, codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
}

func TestADeadlineThatPassesEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan error, 1)
		options := slow(time.Hour)
		options.Unary = append([]grpc.UnaryServerInterceptor{
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				response, err := handle(ctx, request)
				seen <- err
				return response, err
			},
		}, options.Unary...)
		r := start(t, options)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		request := parse(t, emptyRequest(), `steps { rollback {} }`)
		request.Steps = append(request.GetSteps(), make([]*apportionv1.Step, 2000)...)
		_, err := r.Simulate(ctx, request)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, time.Second, time.Since(began))
		requireFault(t, <-seen, codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
	})
}

func TestACallerThatHasGoneIsNotComputedFor(t *testing.T) {
	s, err := service.New(service.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := emptyRequest()
	request.Steps = make([]*apportionv1.Step, 5000)
	_, err = s.Direct().Simulate(ctx, request)
	requireFault(t, err, codes.Canceled, "DEADLINE_EXCEEDED")
}

func TestReflectionListsTheServiceUnlessItIsSwitchedOff(t *testing.T) {
	list := func(r *replica) error {
		stream, err := grpc_reflection_v1.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context())
		require.NoError(t, err)
		_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
		})
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		require.NoError(t, stream.CloseSend())
		var names []string
		for _, s := range response.GetListServicesResponse().GetService() {
			names = append(names, s.GetName())
		}
		require.Contains(t, names, "apportion.v1.DecisionService")
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF)
		return nil
	}
	require.NoError(t, list(start(t, service.Options{})))
	require.Equal(t, codes.Unimplemented, status.Code(list(start(t, service.Options{NoReflection: true}))))
}

func TestTheConnectionOfASilentPeerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := service.New(service.Options{Connection: setting.Connection{Ping: time.Minute}})
		require.NoError(t, err)
		listener := bufconn.Listen(1 << 20)
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, listener) }()
		conn, err := listener.DialContext(t.Context())
		require.NoError(t, err)
		_, err = conn.Write([]byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		require.NoError(t, err)
		began := time.Now()
		_, _ = io.Copy(io.Discard, conn)
		require.InDelta(t, 80, time.Since(began).Seconds(), 1, "asked after a minute, given up 20 seconds later")
		require.NoError(t, conn.Close())
		end()
		require.NoError(t, <-served)
	})
}
