package service_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
)

// TestCallsAreMeasuredAsGRPCMeasuresThem lets gRPC's own instrumentation measure the same calls.
func TestCallsAreMeasuredAsGRPCMeasuresThem(t *testing.T) {
	theirs := prometheus.NewRegistry()
	meter, err := service.NewMeter(theirs)
	require.NoError(t, err)
	r := start(t, service.Options{
		Transport: []grpc.ServerOption{opentelemetry.ServerOption(opentelemetry.Options{
			MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: meter, Metrics: opentelemetry.DefaultMetrics()},
		})},
		Stream: []grpc.StreamServerInterceptor{
			func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				if err := handle(service, stream); err != nil {
					return status.Error(codes.Aborted, "an interceptor replaces the error")
				}
				return nil
			},
		},
		Unary: []grpc.UnaryServerInterceptor{
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				if _, ok := request.(*apportionv1.ExplainRequest); ok {
					panic("an interceptor panics")
				}
				return handle(ctx, request)
			},
		},
	})
	everyKindOfCall(t, r)
	r.end()
	require.NoError(t, <-r.served)
	close(r.served)

	own, others := gathered(t, r.server.Registry()), gathered(t, theirs)
	require.Len(t, own, 3)
	require.Equal(t, others, own)
}

// everyKindOfCall makes calls that end in different ways, of methods of the contract, of health, of reflection, and of no service.
func everyKindOfCall(t *testing.T, r *replica) {
	t.Helper()
	ctx := t.Context()
	for range 3 {
		_, err := r.EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
		require.NoError(t, err)
	}
	_, err := r.EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: inputOf(t)}, grpc.UseCompressor(gzip.Name))
	require.NoError(t, err)
	_, err = r.CheckEnqueue(ctx, &apportionv1.CheckEnqueueRequest{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = r.Explain(ctx, &apportionv1.ExplainRequest{Input: inputOf(t)})
	require.Equal(t, codes.Internal, status.Code(err))

	talk := startSession(t, r)
	talk.open(t)
	talk.say(t, `batch { id: 1 steps { inspect {} } } `)
	talk.hear()
	require.NoError(t, talk.stream.CloseSend())
	_, err = talk.stream.Recv()
	require.Error(t, err)
	bad := startSession(t, r)
	bad.say(t, `batch { id: 1 }`)
	_, err = bad.stream.Recv()
	require.Equal(t, codes.Aborted, status.Code(err))

	_, err = healthv1.NewHealthClient(r.conn).Check(ctx, &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = healthv1.NewHealthClient(r.conn).Check(ctx, &healthv1.HealthCheckRequest{Service: "of another"})
	require.Equal(t, codes.NotFound, status.Code(err))
	reflection, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	require.NoError(t, reflection.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}))
	_, err = reflection.Recv()
	require.NoError(t, err)
	require.NoError(t, reflection.CloseSend())
	_, err = reflection.Recv()
	require.Error(t, err)
	for _, method := range []string{"/of.another/Service", "/apportion.v1.DecisionService/Unheard"} {
		require.Equal(t, codes.Unimplemented, status.Code(r.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})))
	}
}

// series is the value of a metric for some labels. Times differ from run to run, so only their number counts.
type series struct {
	count  uint64
	value  float64
	bounds []float64
}

// gathered returns the metrics of calls, by name and labels, without what calls received: gRPC does not see the messages of the contract.
func gathered(t *testing.T, from *prometheus.Registry) map[string]map[string]series {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	all := map[string]map[string]series{}
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "grpc_server_call_") || strings.Contains(name, "_rcvd_") {
			continue
		}
		of := map[string]series{}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.String())
			}
			s := series{value: m.GetCounter().GetValue(), count: m.GetHistogram().GetSampleCount()}
			if !strings.HasSuffix(name, "_seconds") {
				s.value += m.GetHistogram().GetSampleSum()
			}
			for _, b := range m.GetHistogram().GetBucket() {
				s.bounds = append(s.bounds, b.GetUpperBound())
			}
			of[strings.Join(labels, " ")] = s
		}
		all[family.GetName()+": "+family.GetHelp()] = of
	}
	return all
}

func TestAUnaryCallWhoseMessageDoesNotComeIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{Deadline: setting.Deadline{Call: 10 * time.Second, Message: 20 * time.Second}})
		began := time.Now()
		// A stream to a unary method that sends nothing.
		stream, err := r.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, apportionv1.DecisionService_Simulate_FullMethodName)
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
		framer := begin(t, conn, apportionv1.DecisionService_Simulate_FullMethodName, nil, nil, http2.Setting{ID: http2.SettingInitialWindowSize})
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
