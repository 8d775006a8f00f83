package service_test

import (
	"cmp"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

// talk is a client's side of a session.
type talk struct {
	t      require.TestingT
	stream apportionv1.DecisionService_RunSessionClient
}

func startSession(t *testing.T, r *replica) *talk {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := r.RunSession(ctx)
	require.NoError(t, err)
	return &talk{t, stream}
}

func (c *talk) send(message *apportionv1.RunSessionRequest) {
	err := c.stream.Send(message)
	if err != nil {
		require.ErrorIs(c.t, err, io.EOF)
	}
}

func (c *talk) say(t *testing.T, text string) {
	t.Helper()
	c.send(parse(t, &apportionv1.RunSessionRequest{}, text))
}

// hear receives the next message.
func (c *talk) hear() *apportionv1.RunSessionResponse {
	response, err := c.stream.Recv()
	require.NoError(c.t, err)
	return response
}

// open opens a session on the input of tests.
func (c *talk) open(t *testing.T) *apportionv1.SessionOpened {
	t.Helper()
	in := inputOf(t)
	c.send(opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: in.GetSnapshot()}, Rule: &apportionv1.Input_Policy{Policy: in.GetPolicy()},
	}}))
	return c.hear().GetOpened()
}

func opening(open *apportionv1.OpenSession) *apportionv1.RunSessionRequest {
	return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}}
}

func batch(id uint64, steps ...*apportionv1.Step) *apportionv1.RunSessionRequest {
	return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{Id: id, Steps: steps}}}
}

func TestASessionIsOpenedOnEverySource(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{PendingBatches: 7}})
	data := encoded(t)
	digest := decode.Digest([]byte(data))
	policy := &apportionv1.Input_Policy{Policy: inputOf(t).GetPolicy()}
	chunked := opening(&apportionv1.OpenSession{
		Input: &apportionv1.Input{Rule: policy}, Chunked: &apportionv1.UploadHeader{Size: uint64(len(data))},
	})
	part := func(data string, last bool) *apportionv1.RunSessionRequest {
		return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Chunk{
			Chunk: &apportionv1.SnapshotChunk{Data: []byte(data), Last: last},
		}}
	}
	for _, c := range []struct {
		name     string
		messages []*apportionv1.RunSessionRequest
		digest   string
	}{
		{"inline", []*apportionv1.RunSessionRequest{opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: inputOf(t).GetSnapshot()}, Rule: policy,
		}})}, ""},
		{"in chunks", []*apportionv1.RunSessionRequest{chunked, part(data[:7], false), part(data[7:], true)}, digest},
		{"by the digest of what came in chunks", []*apportionv1.RunSessionRequest{opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: policy,
		}})}, digest},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := startSession(t, r)
			for _, m := range c.messages {
				session.send(m)
			}
			opened := session.hear().GetOpened()
			require.Equal(t, uint32(7), opened.GetMaxPendingBatches())
			require.Equal(t, c.digest, opened.GetBasis().GetSnapshotDigest())
			session.say(t, `batch { id: 3 steps { inspect {} } steps { rollback {} } }`)
			answers := session.hear().GetAnswers()
			require.Equal(t, uint64(3), answers.GetId())
			require.Equal(t, uint32(2), answers.GetAnswers()[0].GetInspect().GetJobCount())
			require.Equal(t, int32(codes.NotFound), answers.GetAnswers()[1].GetError().GetCode())
			require.NoError(t, session.stream.CloseSend())
			_, err := session.stream.Recv()
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

func TestStateLastsFromBatchToBatchAndNoLonger(t *testing.T) {
	r := start(t, service.Options{})
	first, second := startSession(t, r), startSession(t, r)
	first.open(t)
	second.open(t)
	first.say(t, `batch { steps { mark {} } steps { event { change { remove_jobs: "train" } } } }`)
	require.NotNil(t, first.hear().GetAnswers().GetAnswers()[1].GetEvent())
	jobs := func(c *talk) uint32 {
		c.say(t, `batch { steps { inspect {} } }`)
		return c.hear().GetAnswers().GetAnswers()[0].GetInspect().GetJobCount()
	}
	require.Equal(t, uint32(1), jobs(first))
	require.Equal(t, uint32(2), jobs(second))
	first.say(t, `batch { steps { rollback {} } }`)
	first.hear()
	require.Equal(t, uint32(2), jobs(first))
}

func TestWhatBreaksTheProtocolEndsTheSession(t *testing.T) {
	for _, c := range []struct {
		name     string
		opened   bool
		messages []string
		code     codes.Code
		reason   string
	}{
		{"a batch before it is open", false, []string{`batch {}`}, codes.InvalidArgument, "PROTOCOL"},
		{"an empty message", false, []string{``}, codes.InvalidArgument, "PROTOCOL"},
		{"no source", false, []string{`open { input { policy {} } }`}, codes.InvalidArgument, "INVALID_REQUEST"},
		{"no policy", false, []string{`open { input { snapshot {} } }`}, codes.InvalidArgument, "INVALID_REQUEST"},
		{"an unknown policy", false, []string{`open { input { snapshot {} policy_name: "x" } }`}, codes.NotFound, "POLICY_NOT_FOUND"},
		{"a faulty snapshot", false, []string{`open { input { snapshot { queues {} } policy {} } }`}, codes.InvalidArgument, "INVALID_SNAPSHOT"},
		{"no digest", false, []string{`open { input { snapshot_digest: "x" policy {} } }`}, codes.InvalidArgument, "INVALID_REQUEST"},
		{
			"an unknown digest", false,
			[]string{`open { input { snapshot_digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000" policy {} } }`},
			codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND",
		},
		{"chunks beside a snapshot", false, []string{`open { chunked {} input { snapshot {} policy {} } }`}, codes.InvalidArgument, "INVALID_REQUEST"},
		{"a batch among chunks", false, []string{`open { chunked {} input { policy {} } }`, `batch {}`}, codes.InvalidArgument, "PROTOCOL"},
		{"an opening twice", true, []string{`open {}`}, codes.InvalidArgument, "PROTOCOL"},
		{"a chunk that was not announced", true, []string{`chunk {}`}, codes.InvalidArgument, "PROTOCOL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, service.Options{})
			session := startSession(t, r)
			if c.opened {
				session.open(t)
			}
			for _, m := range c.messages {
				session.say(t, m)
			}
			_, err := session.stream.Recv()
			requireFault(t, err, c.code, c.reason)
		})
	}
}

func TestAsManyBatchesAsPromisedMayBeSentBeforeAnyAnswerIsRead(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{PendingBatches: 50}})
	session := startSession(t, r)
	opened := session.open(t)
	steps := make([]*apportionv1.Step, 300)
	for i := range steps {
		steps[i] = &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Nodes: true, Jobs: true, Tasks: true}}}
	}
	for i := range opened.GetMaxPendingBatches() {
		session.send(batch(uint64(i), steps...))
	}
	for i := range opened.GetMaxPendingBatches() {
		require.Equal(t, uint64(i), session.hear().GetAnswers().GetId())
	}
}

func TestTooManySessionsAreRefused(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{Sessions: 1}})
	first := startSession(t, r)
	first.open(t)
	second := startSession(t, r)
	_, err := second.stream.Recv()
	requireFull(t, err, "sessions", "1")
	require.NoError(t, first.stream.CloseSend())
	_, err = first.stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	startSession(t, r).open(t)
}

func TestABatchWhoseAnswersAreTooLargeEndsTheSession(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{AnswerBytes: 450}})
	session := startSession(t, r)
	session.open(t)
	session.say(t, `batch { steps { inspect { tasks: true } } }`)
	failed := session.hear().GetAnswers().GetAnswers()[0].GetError()
	require.Equal(t, int32(codes.OutOfRange), failed.GetCode(), "one step that is too large is an answer like any other")
	steps := make([]*apportionv1.Step, 60)
	for i := range steps {
		steps[i] = &apportionv1.Step{Step: &apportionv1.Step_Mark{}}
	}
	session.send(batch(1, steps...))
	_, err := session.stream.Recv()
	requireFault(t, err, codes.OutOfRange, "ANSWER_TOO_LARGE")
}

func TestADrainAsksSessionsToGoAndEndsThemInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, service.Options{Drain: setting.Drain{Delay: 2 * time.Second, Time: 10 * time.Second}})
		polite, deaf := startSession(t, r), startSession(t, r)
		polite.open(t)
		deaf.open(t)
		began := time.Now()
		r.end()
		for _, session := range []*talk{polite, deaf} {
			require.Equal(t, uint64(12_000), session.hear().GetGoingAway().GetDeadlineMs())
		}
		polite.say(t, `batch { id: 1 steps { mark {} } }`)
		require.Equal(t, uint64(1), polite.hear().GetAnswers().GetId(), "what is under way is finished")
		require.NoError(t, polite.stream.CloseSend())
		_, err := polite.stream.Recv()
		require.ErrorIs(t, err, io.EOF)

		_, err = deaf.stream.Recv()
		require.Error(t, err)
		require.Equal(t, 12*time.Second, time.Since(began))
		require.NoError(t, <-r.served)
		r.served <- nil
	})
}

func TestABatchThatTakesTooLongEndsTheSession(t *testing.T) {
	r := start(t, service.Options{Deadline: setting.Deadline{Call: 30 * time.Millisecond}})
	session := startSession(t, r)
	session.open(t)
	steps := make([]*apportionv1.Step, 100_000)
	for i := range steps {
		steps[i] = &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Jobs: true, Tasks: true}}}
	}
	session.send(batch(1, steps...))
	_, err := session.stream.Recv()
	requireFault(t, err, codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
}

// drawSteps draws questions and changes about a small generated cluster.
func drawSteps(t *rapid.T, snapshot *apportionv1.Snapshot) []*apportionv1.Step {
	tasks := uint32(0)
	for _, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			tasks += uint32(len(g.GetTasks()))
		}
	}
	task := func() *apportionv1.Selector {
		return &apportionv1.Selector{Indices: []uint32{rapid.Uint32Range(0, tasks).Draw(t, "task")}}
	}
	jobs := func() *apportionv1.Selector {
		return &apportionv1.Selector{Indices: []uint32{rapid.Uint32Range(0, uint32(len(snapshot.GetJobs()))).Draw(t, "job")}}
	}
	one := func() *apportionv1.Step {
		switch rapid.IntRange(0, 13).Draw(t, "step") {
		case 0:
			return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}}}}
		case 1:
			return &apportionv1.Step{Step: &apportionv1.Step_Jobs{}}
		case 2:
			return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobs()}}}
		case 3:
			return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}}
		case 4:
			return &apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: task()}}}
		case 5:
			return &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: task()}}}
		case 6:
			return &apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{Claimant: task()}}}
		case 7:
			return &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Nodes: true, Jobs: true, Tasks: true}}}
		case 8:
			return event.Place(task(), nil)
		case 9:
			return event.Evict(task(), 0)
		case 10:
			return &apportionv1.Step{Step: &apportionv1.Step_Mark{}}
		case 11:
			mark := rapid.Uint32Range(0, 2).Draw(t, "mark")
			return &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}}
		case 12:
			gone := rapid.SampledFrom(snapshot.GetJobs()).Draw(t, "gone")
			return event.Change(&apportionv1.Change{RemoveJobs: []string{cmp.Or(gone.GetUid(), gone.GetNamespace()+"/"+gone.GetName())}})
		default:
			job := proto.CloneOf(snapshot.GetJobs()[rapid.IntRange(0, len(snapshot.GetJobs())-1).Draw(t, "like")])
			job.Uid = rapid.StringMatching("new[a-c]").Draw(t, "uid")
			for _, g := range job.GetGroups() {
				for _, task := range g.GetTasks() {
					task.Uid = ""
				}
			}
			return event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{job}})
		}
	}
	return rapid.SliceOfN(rapid.Custom(func(*rapid.T) *apportionv1.Step { return one() }), 1, 25).Draw(t, "steps")
}

func drawCluster(t *rapid.T) *apportionv1.Snapshot {
	return generate.Snapshot(generate.Shape{
		Queues: rapid.IntRange(1, 6).Draw(t, "queues"), Jobs: rapid.IntRange(1, 8).Draw(t, "jobs"),
		Tasks: rapid.IntRange(1, 30).Draw(t, "tasks"), Nodes: rapid.IntRange(1, 3).Draw(t, "nodes"), UIDs: true,
		Seed: rapid.Uint64().Draw(t, "seed"),
	})
}

const manyPlugins = `tiers { plugins { priority {} } plugins { gang {} } plugins { conformance {} } }
	tiers { plugins { drf {} } plugins { proportion {} } plugins { capacity {} } plugins { binpack {} } }`

// TestEveryTransportGivesTheSameAnswers asks the same steps of one call, of a session in batches of any size, and again and again by digest,
// where one opened session serves caller after caller.
func TestEveryTransportGivesTheSameAnswers(t *testing.T) {
	r := start(t, service.Options{})
	policy := parse(t, &apportionv1.Policy{}, manyPlugins)
	rapid.Check(t, func(rt *rapid.T) {
		snapshot := drawCluster(rt)
		steps := drawSteps(rt, snapshot)
		rule := &apportionv1.Input_Policy{Policy: policy}
		inline, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{
			Input: &apportionv1.Input{Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: rule}, Steps: steps,
		})
		require.NoError(rt, err)
		data, err := proto.Marshal(snapshot)
		require.NoError(rt, err)
		uploaded, err := upload(t.Context(), t, r, header("", 0), chunk(string(data), true))
		require.NoError(rt, err)
		for range 2 {
			named, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Steps: steps, Input: &apportionv1.Input{
				Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: uploaded.GetDigest()}, Rule: rule,
			}})
			require.NoError(rt, err)
			requireSameAnswers(rt, inline.GetAnswers(), named.GetAnswers())
		}
		stream, err := r.RunSession(t.Context())
		require.NoError(rt, err)
		session := &talk{rt, stream}
		session.send(opening(&apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: uploaded.GetDigest()},
			Rule:   &apportionv1.Input_Policy{Policy: policy},
		}}))
		session.hear()
		var answers []*apportionv1.Answer
		for len(answers) < len(steps) {
			n := rapid.IntRange(1, len(steps)-len(answers)).Draw(rt, "batch")
			session.send(batch(0, steps[len(answers):len(answers)+n]...))
			answers = append(answers, session.hear().GetAnswers().GetAnswers()...)
		}
		require.NoError(rt, stream.CloseSend())
		_, err = stream.Recv()
		require.ErrorIs(rt, err, io.EOF)
		requireSameAnswers(rt, inline.GetAnswers(), answers)
	})
}

// requireSameAnswers compares answers but for the texts of errors, which hold the position within a batch.
func requireSameAnswers(t *rapid.T, want, got []*apportionv1.Answer) {
	require.Len(t, got, len(want))
	for i := range want {
		if want[i].GetError() != nil {
			require.Equal(t, want[i].GetError().GetCode(), got[i].GetError().GetCode(), "%d", i)
			continue
		}
		require.True(t, proto.Equal(want[i], got[i]), "step %d:\n%v\n%v", i, want[i], got[i])
	}
}
