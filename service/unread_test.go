package service_test

import (
	"context"
	"net"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/servicetest"
)

// largeAnswer is a request of about 5 KB whose answer has more than 400 KB.
func largeAnswer(t *testing.T) *apportionv1.SimulateRequest {
	t.Helper()
	request := parse(t, &apportionv1.SimulateRequest{}, `input { policy { tiers { plugins { proportion {} } } } snapshot { dimensions: "cpu" } }`)
	snapshot := request.GetInput().GetSnapshot()
	for i := range 300 {
		snapshot.Queues = append(snapshot.GetQueues(), &apportionv1.Queue{Name: "queue-" + strconv.Itoa(i)})
	}
	for range 40 {
		request.Steps = append(request.GetSteps(), &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
	}
	return request
}

// byHeader names the caller by a header before its message is read.
func byHeader(ctx context.Context, call *tap.Info) (context.Context, error) {
	if who := call.Header.Get("who"); len(who) > 0 {
		return service.WithIdentity(ctx, who[0]), nil
	}
	return ctx, nil
}

func as(t *testing.T, who string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "who", who)
}

// reader is a client whose streams have a window of 64 KiB, however little is read.
func reader(t *testing.T, dial func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial), grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<20))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// askUnread sends a request and reads no answer. It returns the error of a refused call.
func askUnread(ctx context.Context, t *testing.T, conn *grpc.ClientConn, request proto.Message, options ...grpc.CallOption) error {
	t.Helper()
	method := apportionv1.DecisionService_Simulate_FullMethodName
	if _, whole := request.(*apportionv1.DownloadSnapshotRequest); whole {
		method = apportionv1.SnapshotService_DownloadSnapshot_FullMethodName
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, options...)
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(request))
	require.NoError(t, stream.CloseSend())
	headers, err := stream.Header()
	if err == nil && len(headers) == 0 {
		err = stream.RecvMsg(&apportionv1.SimulateResponse{})
	}
	return err
}

// inMemory serves over memory and returns how to reach the server.
//
//nolint:gocritic // Once a test.
func inMemory(t *testing.T, options service.Options) (*service.Server, func(context.Context, string) (net.Conn, error)) {
	t.Helper()
	server, err := service.New(options)
	require.NoError(t, err)
	listener := bufconn.Listen(256 << 10)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-served)
	})
	return server, func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
}

func TestUnreadAnswersAreBoundForAllAndForEachIdentity(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"plain": nil, "compressed": {grpc.UseCompressor(gzip.Name)}} {
		t.Run(name, func(t *testing.T) {
			const bound = 8 << 20
			server, dial := inMemory(t, service.Options{
				Tap: []tap.ServerInHandle{byHeader}, Limit: setting.Limit{AnswerBytes: 4 << 20}, Drain: setting.Drain{Time: time.Millisecond},
				Overload: admission.Options{Answers: bound, Wait: 10 * time.Millisecond},
			})
			unread := reader(t, dial)
			taken, refused := 0, 0
			for range 40 {
				err := askUnread(as(t, "greedy"), t, unread, largeAnswer(t), options...)
				if err == nil {
					taken++
				} else {
					fields, _ := requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
					require.Equal(t, "overload.answers", fields["limit"])
					refused++
				}
				require.LessOrEqual(t, gauge(t, server, "apportion_answer_bytes"), float64(bound/2), "one identity has a half")
			}
			require.Greater(t, gauge(t, server, "apportion_answer_bytes"), float64(taken*360_000), "all that is unread is booked")
			require.InDelta(t, 8, taken, 3)
			require.Positive(t, refused)

			modest := apportionv1.NewDecisionServiceClient(reader(t, dial))
			answer, err := modest.Simulate(as(t, "modest"), largeAnswer(t), options...)
			require.NoError(t, err, "there is something left for others")
			require.Len(t, answer.GetAnswers(), 40)

			require.NoError(t, unread.Close())
			require.Eventually(t, func() bool { return gauge(t, server, "apportion_answer_bytes") == 0 }, 10*time.Second, time.Millisecond)
			_, err = modest.Simulate(as(t, "greedy"), largeAnswer(t))
			require.NoError(t, err)
		})
	}
}

func TestADownloadThatIsNotReadHoldsAFewChunks(t *testing.T) {
	const bound = 64 << 20
	server, dial := inMemory(t, service.Options{
		Tap: []tap.ServerInHandle{byHeader}, Drain: setting.Drain{Time: time.Millisecond},
		Overload: admission.Options{Answers: bound, Wait: 10 * time.Millisecond},
	})
	shape := generate.Standard()
	shape.Jobs, shape.Tasks, shape.UIDs = 2000, 40_000, true
	keep(t, server.Keep("cluster", "", asOfAnHourAgo), generate.Snapshot(shape))
	request := &apportionv1.DownloadSnapshotRequest{Source: &apportionv1.DownloadSnapshotRequest_Name{Name: "cluster"}}
	unread := reader(t, dial)
	before, taken := heap(), 0
	for range 40 {
		if err := askUnread(as(t, "greedy"), t, unread, request); err != nil {
			requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
			continue
		}
		taken++
	}
	require.Greater(t, taken, 4)
	require.LessOrEqual(t, gauge(t, server, "apportion_answer_bytes"), float64(bound/2), "one caller has a half")
	require.Less(t, heap()-before, int64(bound), "the bytes of the version are there once")
	answer, err := servicetest.Over(reader(t, dial)).Named(as(t, "modest"), "cluster")
	require.NoError(t, err, "there is something left for others")
	require.Len(t, answer.Snapshot.GetJobs(), 2000)
	require.NoError(t, unread.Close())
	require.Eventually(t, func() bool { return gauge(t, server, "apportion_answer_bytes") == 0 }, 10*time.Second, time.Millisecond)
}

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAnAnswerThatIsNotReadInTimeEndsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dial := inMemory(t, service.Options{Deadline: setting.Deadline{Answer: time.Minute}})
		good, bad := reader(t, dial), reader(t, dial)
		for range 3 {
			require.NoError(t, askUnread(t.Context(), t, bad, largeAnswer(t)))
			time.Sleep(10 * time.Second)
			_, err := apportionv1.NewDecisionServiceClient(good).Simulate(t.Context(), largeAnswer(t))
			require.NoError(t, err)
		}
		last, err := bad.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, apportionv1.DecisionService_Simulate_FullMethodName)
		require.NoError(t, err)
		require.NoError(t, last.SendMsg(largeAnswer(t)))
		began := time.Now()
		_, err = last.Header()
		require.NoError(t, err)
		time.Sleep(30*time.Second - time.Millisecond)
		synctest.Wait()
		require.Positive(t, gauge(t, server, "apportion_answer_bytes"))
		require.Zero(t, gauge(t, server, "apportion_answers_untaken_total"))
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Less(t, time.Since(began), 31*time.Second, "a minute after the first answer")
		require.Zero(t, gauge(t, server, "apportion_answer_bytes"))
		require.EqualValues(t, 1, gauge(t, server, "apportion_answers_untaken_total"))
		require.Equal(t, codes.Unavailable, status.Code(last.RecvMsg(&apportionv1.SimulateResponse{})))
		_, err = apportionv1.NewDecisionServiceClient(good).Simulate(t.Context(), largeAnswer(t))
		require.NoError(t, err, "other connections go on")
		require.NoError(t, bad.Close())
		require.NoError(t, good.Close())
	})
}

func TestASessionWhoseAnswersAreNotReadHoldsNoTurn(t *testing.T) {
	server, dial := inMemory(t, service.Options{
		Overload: admission.Options{Running: 1, Reserve: 1, Wait: 50 * time.Millisecond}, Drain: setting.Drain{Time: time.Millisecond},
	})
	unread := reader(t, dial)
	stream, err := apportionv1.NewDecisionServiceClient(unread).RunSession(t.Context())
	require.NoError(t, err)
	request := largeAnswer(t)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{
		Open: &apportionv1.OpenSession{Input: request.GetInput()},
	}}))
	for i := range 4 {
		require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{
			Batch: &apportionv1.StepBatch{Id: uint64(i), Steps: request.GetSteps()},
		}}))
	}
	// Two answers of 365 KB, in memory of their own or in memory that is used again, which has an eighth more.
	require.Eventually(t, func() bool { return gauge(t, server, "apportion_answer_bytes") > 2*360_000 }, 10*time.Second, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.Zero(t, gauge(t, server, "apportion_work_running"))
	require.Less(t, gauge(t, server, "apportion_answer_bytes"), float64(1500<<10), "what is not read holds back what follows")
	_, err = apportionv1.NewDecisionServiceClient(reader(t, dial)).Simulate(t.Context(), request)
	require.NoError(t, err)
	for range 5 {
		_, err := stream.Recv()
		require.NoError(t, err, "the session goes on where it was")
	}
	require.NoError(t, stream.CloseSend())
}
