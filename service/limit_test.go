package service_test

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
)

// requireLimit expects that a request was too large: asking again does not help.
func requireLimit(t *testing.T, err error, limit, maximum string) {
	t.Helper()
	requireExceeded(t, err, codes.OutOfRange, limit, maximum)
	for _, detail := range status.Convert(err).Details() {
		require.IsNotType(t, &errdetails.RetryInfo{}, detail)
	}
}

// requireFull expects that there was no room for a request, and when to ask again.
func requireFull(t *testing.T, err error, limit, maximum string) {
	t.Helper()
	requireExceeded(t, err, codes.ResourceExhausted, limit, maximum)
	details := status.Convert(err).Details()
	require.Positive(t, details[len(details)-1].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
}

func requireExceeded(t *testing.T, err error, code codes.Code, limit, maximum string) {
	t.Helper()
	fields, _ := requireFault(t, err, code, "LIMIT_EXCEEDED")
	require.Equal(t, limit, fields["limit"])
	require.Equal(t, maximum, fields["maximum"])
	require.NotEmpty(t, fields["value"])
}

func TestWhatARequestMayHoldIsBoundedAndNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		limits         setting.Limit
		steps          int
		policy         int
		limit, maximum string
	}{
		"steps":          {setting.Limit{Steps: 10}, 11, 0, "steps", "10"},
		"question bytes": {setting.Limit{QuestionBytes: 1000}, 600, 0, "question_bytes", "1000"},
		"policy bytes":   {setting.Limit{PolicyBytes: 100}, 0, 100, "policy_bytes", "100"},
		"jobs":           {setting.Limit{Jobs: 1}, 0, 0, "jobs", "1"},
		"tasks":          {setting.Limit{Tasks: 3}, 0, 0, "tasks", "3"},
		"queues":         {setting.Limit{Queues: 1}, 0, 0, "queues", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, service.Options{Limit: tc.limits})
			in := inputOf(t)
			for range tc.policy {
				in.GetPolicy().Tiers = append(in.GetPolicy().GetTiers(), &apportionv1.Tier{})
			}
			steps := make([]*apportionv1.Step, tc.steps)
			for i := range steps {
				steps[i] = &apportionv1.Step{}
			}
			_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in, Steps: steps})
			requireLimit(t, err, tc.limit, tc.maximum)

			session := startSession(t, r)
			session.send(opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
				Source: &apportionv1.Input_Snapshot{Snapshot: in.GetSnapshot()}, Rule: &apportionv1.Input_Policy{Policy: in.GetPolicy()},
			}}))
			if tc.steps > 0 {
				session.hear()
				session.send(batch(1, steps...))
			}
			_, err = session.stream.Recv()
			requireLimit(t, err, tc.limit, tc.maximum)
		})
	}
}

func TestAJobThatAStepAddsIsHeldToTheLimitsOfASnapshot(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{Tasks: 4}})
	job := &apportionv1.Job{Uid: "j", Queue: "ml", Groups: []*apportionv1.TaskGroup{{}}}
	for range 5 {
		job.Groups[0].Tasks = append(job.Groups[0].Tasks, &apportionv1.Task{})
	}
	_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: inputOf(t), Steps: []*apportionv1.Step{
		event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{job}}),
	}})
	requireLimit(t, err, "tasks", "4")
}

func TestACompressedBombIsNotInflatedBeyondTheSizeOfAMessage(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{MessageBytes: 1 << 20}})
	in := inputOf(t)
	in.GetSnapshot().Cluster = strings.Repeat("0", 8<<20)
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in}, grpc.UseCompressor(gzip.Name), grpc.MaxCallSendMsgSize(1<<30))
	requireLimit(t, err, "message_bytes", "1048576")
}

func TestASnapshotInTooManyPiecesIsRefused(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{Chunks: 3}})
	stream, err := r.UploadSnapshot(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(header("", 0)))
	for range 5 {
		_ = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{}}})
	}
	_, err = stream.CloseAndRecv()
	requireLimit(t, err, "chunks", "3")
}

func TestASnapshotThatDoesNotComeInTimeEndsTheCall(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, r *replica) grpc.ClientStream{
		"uploaded": func(t *testing.T, r *replica) grpc.ClientStream {
			t.Helper()
			stream, err := r.UploadSnapshot(t.Context())
			require.NoError(t, err)
			require.NoError(t, stream.Send(header("", 0)))
			return stream
		},
		"in a session": func(t *testing.T, r *replica) grpc.ClientStream {
			t.Helper()
			stream, err := r.RunSession(t.Context())
			require.NoError(t, err)
			require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{
				Open: parse(t, &apportionv1.OpenSession{}, `chunked {} input { policy {} }`),
			}}))
			return stream
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				r := start(t, service.Options{Limit: setting.Limit{UploadTime: time.Minute}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				stream := open(t, r)
				began := time.Now()
				err := stream.RecvMsg(&apportionv1.UploadSnapshotResponse{})
				require.Equal(t, time.Minute, time.Since(began))
				fields, _ := requireFault(t, err, codes.DeadlineExceeded, "LIMIT_EXCEEDED")
				require.Equal(t, "upload_time", fields["limit"])
				require.Equal(t, "60000", fields["maximum"])
				synctest.Wait()
				require.NotContains(t, log.String(), "level=ERROR")
			})
		})
	}
}

// TestAStreamOfWhichNothingIsHeardHoldsNoPlace begins streams and sends nothing: each would hold one of few places for ever.
func TestAStreamOfWhichNothingIsHeardHoldsNoPlace(t *testing.T) {
	for method, want := range map[string]struct {
		limit string
		code  codes.Code
	}{
		apportionv1.SnapshotService_UploadSnapshot_FullMethodName: {"upload_time", codes.DeadlineExceeded},
		apportionv1.DecisionService_RunSession_FullMethodName:     {"session_idle", codes.ResourceExhausted},
	} {
		t.Run(want.limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, service.Options{Limit: setting.Limit{UploadTime: time.Minute, SessionIdle: time.Minute}})
				stream, err := r.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
				require.NoError(t, err)
				began := time.Now()
				fields, _ := requireFault(t, stream.RecvMsg(&apportionv1.UploadSnapshotResponse{}), want.code, "LIMIT_EXCEEDED")
				require.Equal(t, want.limit, fields["limit"])
				require.Equal(t, time.Minute, time.Since(began))
			})
		})
	}
}

func TestASessionOfWhichNothingIsHeardEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{Limit: setting.Limit{SessionIdle: time.Minute}})
		session := startSession(t, r)
		session.open(t)
		began := time.Now()
		time.Sleep(40 * time.Second)
		session.send(batch(1))
		session.hear()
		_, err := session.stream.Recv()
		require.Equal(t, 100*time.Second, time.Since(began))
		requireFull(t, err, "session_idle", "60000")
	})
}

func TestASessionIsToldToMoveBeforeItsLifeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{Limit: setting.Limit{SessionTime: time.Hour, SessionIdle: -1}})
		session := startSession(t, r)
		session.open(t)
		began := time.Now()
		require.EqualValues(t, 60_000, session.hear().GetGoingAway().GetDeadlineMs())
		require.Equal(t, 59*time.Minute, time.Since(began))
		_, err := session.stream.Recv()
		require.Equal(t, time.Hour, time.Since(began))
		requireFull(t, err, "session_time", "3600000")
	})
}

func TestOneIdentityCannotTakeAllSessions(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{Sessions: 4, IdentitySessions: 1}})
	first := startSession(t, r)
	first.open(t)
	second := startSession(t, r)
	_, err := second.stream.Recv()
	requireFull(t, err, "identity_sessions", "1")
}

func TestSessionsOfOneIdentityAreBoundInMemory(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{SessionBytes: 64 << 10}})
	var err error
	opened := 0
	for range 100 {
		session := startSession(t, r)
		session.send(opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: inputOf(t).GetSnapshot()}, Rule: &apportionv1.Input_Policy{Policy: inputOf(t).GetPolicy()},
		}}))
		if _, err = session.stream.Recv(); err != nil {
			break
		}
		opened++
	}
	requireFull(t, err, "session_bytes", "65536")
	require.Positive(t, opened)
	require.LessOrEqual(t, gauge(t, r.server, "apportion_session_bytes"), 32.0*1024)
}

func TestABusyServerSaysWhenToTryAgain(t *testing.T) {
	held, release := make(chan struct{}, 1), make(chan struct{})
	r := start(t, service.Options{
		Overload: admission.Options{Running: 1, Wait: 20 * time.Millisecond}, Observers: []service.Observer{holding{held, release}},
	})
	done := make(chan error, 1)
	go func() {
		_, err := r.Simulate(t.Context(), emptyRequest())
		done <- err
	}()
	<-held
	var trailer metadata.MD
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)}, grpc.Trailer(&trailer))
	requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
	require.Equal(t, []string{"20"}, trailer.Get("grpc-retry-pushback-ms"))
	healthOf(t, r, "")
	close(release)
	require.NoError(t, <-done)
	_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	require.NoError(t, err)
}

func TestAClientThatGoesOnThoughItWasToldToWaitIsRefusedByItsHeaders(t *testing.T) {
	held, release := make(chan struct{}, 2), make(chan struct{})
	r := start(t, service.Options{
		Overload:  admission.Options{Running: 1, Waiting: 1, Wait: time.Minute, Memory: 1 << 20},
		Observers: []service.Observer{holding{held, release}},
	})
	done := make(chan error, 2)
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	for range 2 {
		go func() {
			_, err := r.Simulate(t.Context(), emptyRequest())
			done <- err
		}()
	}
	<-held
	require.Eventually(t, func() bool { return gauge(t, r.server, "apportion_work_waiting") == 1 }, 10*time.Second, time.Millisecond)
	for _, told := range [][]string{{"60000"}, nil, nil} {
		var trailer metadata.MD
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)}, grpc.Trailer(&trailer))
		fields, _ := requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
		require.Equal(t, "overload.wait", fields["limit"])
		require.Equal(t, told, trailer.Get("grpc-retry-pushback-ms"), "from the second call on by the tap, which sends no trailer")
	}
	require.Equal(t, 3.0, metric(t, r, "apportion_calls_refused_total", "code", "ResourceExhausted"))
	healthOf(t, r, "")
	free()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	require.NoError(t, err, "there is room again, whatever the client was told")
}

func TestACallBeyondThoseThatMayBeginIsRefusedUnreadWithAllThatHelps(t *testing.T) {
	held, release := make(chan struct{}, 1), make(chan struct{})
	r := start(t, service.Options{
		Overload: admission.Options{Calls: 1, Wait: 30 * time.Millisecond}, Observers: []service.Observer{holding{held, release}},
	})
	done := make(chan error, 1)
	go func() {
		_, err := r.Simulate(t.Context(), emptyRequest())
		done <- err
	}()
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	<-held
	var trailer metadata.MD
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)}, grpc.Trailer(&trailer))
	requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
	require.Equal(t, []string{"30"}, trailer.Get("grpc-retry-pushback-ms"))
	require.Equal(t, 1.0, metric(t, r, "apportion_calls_refused_total", "code", "ResourceExhausted"))
	free()
	require.NoError(t, <-done)
}

func TestWhatTakesMoreMemoryThanThereIsIsRefusedBeforeItIsDecoded(t *testing.T) {
	r := start(t, service.Options{Overload: admission.Options{Memory: 1000}})
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	requireLimit(t, err, "overload.memory", "875")
	require.Positive(t, proto.Size(inputOf(t)))
}

// TestWhatASnapshotInPartsAndAQuestionTakeIsBookedToo asks through the path of snapshots that are written in several parts, whose bytes are
// not taken out, and a question that takes far more than its snapshot.
func TestWhatASnapshotInPartsAndAQuestionTakeIsBookedToo(t *testing.T) {
	r := start(t, service.Options{Overload: admission.Options{Memory: 16 << 20}})
	snapshot := &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "q"}}}
	for i := range 1000 {
		snapshot.Jobs = append(snapshot.GetJobs(), &apportionv1.Job{Name: strconv.Itoa(i), Queue: "q"})
	}
	order := &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{}}}
	request := &apportionv1.SimulateRequest{
		Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: &apportionv1.Policy{}},
		},
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Order{Order: order}}},
	}
	ask := func() error {
		_, err := r.Simulate(t.Context(), request)
		return err
	}
	askInParts := func() error {
		_, err := r.server.Direct().Simulate(t.Context(), request)
		return err
	}
	require.NoError(t, ask())
	require.NoError(t, askInParts())
	order.Pairs = true
	requireLimit(t, ask(), "overload.memory", "14680064")
	requireLimit(t, askInParts(), "overload.memory", "14680064")
	order.Pairs = false
	for i := range 10_000 {
		snapshot.Queues = append(snapshot.GetQueues(), &apportionv1.Queue{Name: strconv.Itoa(i)})
	}
	requireLimit(t, ask(), "overload.memory", "14680064")
	requireLimit(t, askInParts(), "overload.memory", "14680064")
}
