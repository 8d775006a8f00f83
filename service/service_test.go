package service_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is a server and a client of it, joined by memory.
type replica struct {
	servicetest.Calls

	server *service.Server
	conn   *grpc.ClientConn
	// end begins the drain; served receives the result of Serve.
	end    context.CancelFunc
	served chan error
}

// start starts a replica that ends with the test.
//
//nolint:gocritic // Options are given once.
func start(t *testing.T, options service.Options) *replica {
	t.Helper()
	s, err := service.New(options)
	require.NoError(t, err)
	r := &replica{server: s, served: make(chan error, 1)}
	listener := bufconn.Listen(1 << 20)
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	go func() { r.served <- r.server.Serve(ctx, listener) }()
	r.conn, err = grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	require.NoError(t, err)
	r.Calls = servicetest.Over(r.conn)
	t.Cleanup(func() {
		require.NoError(t, r.conn.Close())
		end()
		<-r.served
	})
	return r
}

// parse adds to a message what a text says.
func parse[M proto.Message](t *testing.T, m M, text string) M {
	t.Helper()
	added := m.ProtoReflect().New().Interface()
	require.NoError(t, prototext.Unmarshal([]byte(text), added), text)
	proto.Merge(m, added)
	return m
}

// requireFault requires an error of the contract, and returns its ErrorInfo's metadata and the violations of its BadRequest.
func requireFault(t *testing.T, err error, code codes.Code, reason string) (metadata map[string]string, violations []string) {
	t.Helper()
	st, ok := status.FromError(err)
	require.True(t, ok, err)
	require.Equal(t, code, st.Code(), st.Message())
	require.NotEmpty(t, st.Details(), st.Message())
	info, ok := st.Details()[0].(*errdetails.ErrorInfo)
	require.True(t, ok)
	require.Equal(t, "apportion.dev", info.GetDomain())
	require.Equal(t, reason, info.GetReason())
	for _, detail := range st.Details()[1:] {
		bad, _ := detail.(*errdetails.BadRequest)
		for _, v := range bad.GetFieldViolations() {
			violations = append(violations, v.GetField()+": "+v.GetDescription())
		}
	}
	return info.GetMetadata(), violations
}

const input = `
snapshot {
  dimensions: "cpu"
  nodes { name: "n0" allocatable { dimensions: 0 amounts: 10000 } }
  queues { name: "ml" } queues { name: "web" }
  jobs { uid: "train" queue: "ml" phase: JOB_PHASE_RUNNING groups { request { dimensions: 0 amounts: 3000 }
    tasks { uid: "t0" status: TASK_STATUS_RUNNING node: 0 } tasks { uid: "t1" status: TASK_STATUS_RUNNING node: 0 }
    tasks { uid: "t2" status: TASK_STATUS_RUNNING node: 0 } } }
  jobs { uid: "serve" queue: "web" min_resources { dimensions: 0 amounts: 1000 } groups { request { dimensions: 0 amounts: 1000 } tasks { uid: "s0" } } }
}
policy { tiers { plugins { proportion {} } } }`

func inputOf(t *testing.T) *apportionv1.Input {
	t.Helper()
	return parse(t, &apportionv1.Input{}, input)
}

func TestEachTypedCallAnswersItsQuestion(t *testing.T) {
	r := start(t, service.Options{})
	ctx := t.Context()

	shares, err := r.EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	require.NoError(t, err)
	require.Equal(t, []float64{9000, 0}, shares.GetShares().GetPlugins()[0].GetQueues()[0].GetDeserved().GetAmounts())
	require.Equal(t, []string{"cpu", "memory"}, shares.GetBasis().GetDimensions())
	require.Empty(t, shares.GetBasis().GetSnapshotDigest())
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", shares.GetBasis().GetPolicyDigest())

	enqueue, err := r.CheckEnqueue(ctx, &apportionv1.CheckEnqueueRequest{Input: inputOf(t)})
	require.NoError(t, err)
	require.Len(t, enqueue.GetEnqueue().GetJobs(), 2)

	simulation, err := r.Simulate(ctx, parse(t, &apportionv1.SimulateRequest{Input: inputOf(t)},
		`steps { inspect {} } steps { rollback { mark: 7 } } steps { jobs {} } steps { allocatable { tasks { names: "s0" } } }
		steps { preemptive { tasks { names: "s0" } } } steps { reclaim { claimant { names: "s0" } } } steps { nodes { tasks { names: "s0" } } }`))
	require.NoError(t, err)
	require.Len(t, simulation.GetAnswers(), 7)
	require.Equal(t, apportionv1.Vote_VOTE_PERMIT, simulation.GetAnswers()[3].GetAllocatable().GetTasks()[0].GetVerdict().GetVote())
	require.Equal(t, apportionv1.Vote_VOTE_PERMIT, simulation.GetAnswers()[4].GetPreemptive().GetTasks()[0].GetVerdict().GetVote())
	require.True(t, simulation.GetAnswers()[5].GetReclaim().GetDecided())
	require.Equal(t, []bool{true}, simulation.GetAnswers()[6].GetNodes().GetTasks()[0].GetFits())
	require.Equal(t, uint32(4), simulation.GetAnswers()[0].GetInspect().GetTaskCount())
	require.Equal(t, int32(codes.NotFound), simulation.GetAnswers()[1].GetError().GetCode())
	require.Len(t, simulation.GetAnswers()[2].GetJobs().GetJobs(), 2)
}

func TestAnEmptySnapshotIsValid(t *testing.T) {
	r := start(t, service.Options{})
	in := &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{}}, Rule: &apportionv1.Input_Policy{Policy: &apportionv1.Policy{}},
	}
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	require.NoError(t, err)
}

func TestNamedPoliciesAreReplacedTogetherOrNotAtAll(t *testing.T) {
	proportion := parse(t, &apportionv1.Policy{}, `tiers { plugins { proportion {} } }`)
	capacity := parse(t, &apportionv1.Policy{}, `tiers { plugins { capacity {} } }`)
	faulty := parse(t, &apportionv1.Policy{}, `tiers { plugins {} }`)
	s, err := service.New(service.Options{Policies: map[string]*apportionv1.Policy{"a": proportion}})
	require.NoError(t, err)
	digest := func(name string) (string, error) {
		r := emptyRequest()
		r.Input.Rule = &apportionv1.Input_PolicyName{PolicyName: name}
		response, err := s.Direct().Simulate(t.Context(), r)
		return response.GetBasis().GetPolicyDigest(), err
	}
	first, err := digest("a")
	require.NoError(t, err)

	err = s.SetPolicies(map[string]*apportionv1.Policy{"a": capacity, "b": faulty, "c": faulty})
	require.ErrorContains(t, err, `policy "b"`)
	require.ErrorContains(t, err, `policy "c"`)
	same, err := digest("a")
	require.NoError(t, err)
	require.Equal(t, first, same)

	var asking sync.WaitGroup
	asking.Go(func() {
		for range 200 {
			_, err := digest("a")
			require.NoError(t, err)
		}
	})
	require.NoError(t, s.SetPolicies(map[string]*apportionv1.Policy{"a": capacity, "b": proportion}))
	second, err := digest("a")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	moved, err := digest("b")
	require.NoError(t, err)
	require.Equal(t, first, moved)
	asking.Wait()

	require.NoError(t, s.SetPolicies(nil))
	_, err = digest("a")
	requireFault(t, err, codes.NotFound, "POLICY_NOT_FOUND")
}

// textOf returns the text of the first reason of a job that may not enter.
func textOf(answer *apportionv1.EnqueueAnswer) (text string, refused bool) {
	for _, job := range answer.GetJobs() {
		if reasons := job.GetVerdict().GetCauses(); len(reasons) > 0 {
			return reasons[0].GetText(), true
		}
	}
	return "", false
}

func TestReasonsCarryTextsInEveryKindOfCall(t *testing.T) {
	r := servicetest.Start(t, service.Options{Policies: map[string]*apportionv1.Policy{"p": servicetest.Proportion()}})
	snapshot := servicetest.Snapshot(1)
	digest := r.Upload(t, snapshot)
	byDigest := func(texts bool) *apportionv1.Input {
		return &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "p"}, Texts: texts,
		}
	}
	inline := servicetest.Named(snapshot, "p")
	inline.Texts = true
	for name, c := range map[string]struct {
		input *apportionv1.Input
		texts bool
	}{
		"inline": {inline, true}, "by digest": {byDigest(true), true}, "without, after one with": {byDigest(false), false},
	} {
		for range 2 { // the second call by digest gets the session of the first
			answered, err := r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: c.input})
			require.NoError(t, err, name)
			text, refused := textOf(answered.GetEnqueue())
			require.True(t, refused, name)
			require.Equal(t, c.texts, text != "", name)
		}
	}

	stream, err := r.RunSession(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{
		Open: &apportionv1.OpenSession{Input: byDigest(true)},
	}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{}}}},
	}}}))
	answered, err := stream.Recv()
	require.NoError(t, err)
	text, refused := textOf(answered.GetAnswers().GetAnswers()[0].GetEnqueue())
	require.True(t, refused)
	require.NotEmpty(t, text)
	require.NoError(t, stream.CloseSend())
}
