package client_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

func deallocate(task string) *apportionv1.Step {
	return event.Evict(&apportionv1.Selector{Names: []string{task}}, 0)
}

func allocate(task string, node uint32) *apportionv1.Step {
	return event.Place(&apportionv1.Selector{Names: []string{task}}, &apportionv1.Selector{Indices: []uint32{node}})
}

func mark() *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}
}

func rollback(to uint32) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: to}}}
}

func shares() *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
}

func TestNoLargeQuestionIsLostWithTheReplicasThatWereAsked(t *testing.T) {
	replicas := []*replica{
		startReplica(t, service.Options{}),
		startReplica(t, service.Options{}),
		startReplica(t, service.Options{}),
	}
	c := dialAll(t, replicas)
	shape := generate.Standard()
	shape.Tasks, shape.Jobs, shape.Queues = 10_000, 1_000, 50
	in := client.Input{Snapshot: generate.Snapshot(shape), Policy: proportional(t)}
	require.Greater(t, proto.Size(in.Snapshot), 512<<10, "more than gRPC keeps in order to send it again")
	var asked atomic.Int32
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 3 {
				_, err := c.Shares(t.Context(), in, client.SharesQuestion{Queues: []string{}})
				if err != nil {
					t.Error(err)
				}
				asked.Add(1)
			}
		})
	}
	for i, lost := range replicas[:2] {
		require.Eventually(t, func() bool { return int(asked.Load()) > 4*i }, 20*time.Second, time.Millisecond)
		lost.kill()
	}
	workers.Wait()
}

func TestASessionGoesOnAtAnotherReplica(t *testing.T) {
	replicas := []*replica{
		startReplica(t, service.Options{}), startReplica(t, service.Options{}),
	}
	c := dialAll(t, replicas)
	for _, uploaded := range []bool{false, true} {
		in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
		if uploaded {
			upload, err := c.Upload(t.Context(), in.Snapshot)
			require.NoError(t, err)
			in.Snapshot, in.Upload = nil, upload
		}
		session, err := c.OpenSession(t.Context(), in)
		require.NoError(t, err)
		_, err = session.Do(t.Context(), mark(), deallocate("web/shop-0"), mark(), deallocate("web/shop-1"), rollback(1))
		require.NoError(t, err)
		for range 3 {
			for _, r := range replicas {
				r.reset()
			}
			answers, err := session.Do(t.Context(), shares())
			require.NoError(t, err)
			read := client.Shares{Basis: session.Basis(), Answer: answers[0].GetShares()}
			web, _ := read.Queue("web")
			require.Equal(t, "8", web.Allocated["cpu"], "the first task is gone, the second came back")
		}
		require.NoError(t, session.Close())
		_, err = session.Do(t.Context(), shares())
		require.ErrorIs(t, err, client.ErrClosed)
	}
}

func TestASessionTakesAChangeOfItsSnapshotToAnotherReplica(t *testing.T) {
	r := startReplica(t, service.Options{})
	c := dialAll(t, []*replica{r})
	session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
	require.NoError(t, err)
	allocated := func() client.Resources {
		answers, err := session.Do(t.Context(), shares())
		require.NoError(t, err)
		read := client.Shares{Basis: session.Basis(), Answer: answers[0].GetShares()}
		web, _ := read.Queue("web")
		return web.Allocated
	}
	require.Equal(t, "12", allocated()["cpu"])
	_, err = session.Do(t.Context(), event.Change(&apportionv1.Change{RemoveJobs: []string{"web/shop"}}))
	require.NoError(t, err)
	require.Empty(t, allocated())
	r.reset()
	require.Empty(t, allocated())
	require.NoError(t, session.Close())
}

// For any questions, and connections that break at any time, the answers are bit for bit those of a session that was never interrupted.
func TestASessionThatMovesAnswersAsOneThatStays(t *testing.T) {
	replicas := []*replica{
		startReplica(t, service.Options{}), startReplica(t, service.Options{}),
	}
	in, test := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}, t
	rapid.Check(t, func(t *rapid.T) {
		// The test shows the state that a session reaches, not how long it waits: a busy machine may take long to connect anew. Each
		// session has a client of its own, because what all lose together may be more than a client retries.
		c := dialAll(test, replicas, client.WithAttempts(8), client.WithDeadline(10*time.Minute, client.KindBatch))
		moving, err := c.OpenSession(t.Context(), in)
		require.NoError(t, err)
		defer func() { require.NoError(t, moving.Close()) }()
		staying, err := client.InProcess().OpenSession(t.Context(), in)
		require.NoError(t, err)
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 12).Draw(t, "steps")
			if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				for _, r := range replicas {
					r.reset()
				}
			}
			got, err := moving.Do(t.Context(), steps...)
			require.NoError(t, err)
			want, err := staying.Do(t.Context(), steps...)
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for i := range want {
				require.True(t, proto.Equal(want[i], got[i]), "%v\nstaying: %v\nmoving: %v", steps[i], want[i], got[i])
			}
		}
	})
}

func TestASessionDoesNotGoOnUnderAnotherPolicy(t *testing.T) {
	capacity, ok := client.Preset("capacity")
	require.True(t, ok)
	before := startReplica(t, house(t, proportional(t)))
	after := startReplica(t, house(t, capacity))
	c, names := dialNamed(t, []*replica{before})
	session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), PolicyName: "house"})
	require.NoError(t, err)
	names.UpdateState(addresses(after))
	before.kill()
	for range 2 {
		_, err = session.Do(t.Context(), shares())
		require.ErrorIs(t, err, client.ErrMoved)
		require.ErrorContains(t, err, "policy "+session.Basis().GetPolicyDigest()+", and sha256:")
	}
	require.NoError(t, session.Close())
}

func TestASessionWhoseStepsWereTooManyEndsWithItsReplica(t *testing.T) {
	r := startReplica(t, service.Options{})
	c := dialAll(t, []*replica{r}, client.WithSessionLog(1000))
	in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	session, err := c.OpenSession(t.Context(), in)
	require.NoError(t, err)
	do := func(steps ...*apportionv1.Step) error {
		_, err := session.Do(t.Context(), steps...)
		return err
	}
	for range 50 {
		require.NoError(t, do(mark(), deallocate("web/shop-0"), allocate("web/shop-0", 0), rollback(0), shares()))
	}
	r.reset()
	require.NoError(t, do(shares()), "what was rolled back, and what only asks, is not kept")
	for range 50 {
		require.NoError(t, do(deallocate("web/shop-0"), allocate("web/shop-0", 0)))
	}
	r.reset()
	err = do(shares())
	require.ErrorIs(t, err, client.ErrLogFull)
	require.ErrorContains(t, err, "1000 bytes")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorIs(t, do(shares()), client.ErrLogFull)
	require.NoError(t, session.Close())
}

func TestASessionLeavesAReplicaThatGoesAway(t *testing.T) {
	slow := service.Options{Drain: setting.Drain{Time: time.Minute}}
	ending, staying := startReplica(t, slow), startReplica(t, service.Options{})
	c, names := dialNamed(t, []*replica{ending})
	session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
	require.NoError(t, err)
	_, err = session.Do(t.Context(), deallocate("web/shop-0"))
	require.NoError(t, err)
	names.UpdateState(addresses(ending, staying))

	ending.leave()
	select {
	case err := <-ending.served:
		require.NoError(t, err)
		ending.served <- nil
	case <-time.After(20 * time.Second):
		require.Fail(t, "the replica waits for a session that does not move")
	}
	answers, err := session.Do(t.Context(), shares())
	require.NoError(t, err)
	read := client.Shares{Basis: session.Basis(), Answer: answers[0].GetShares()}
	web, _ := read.Queue("web")
	require.Equal(t, "8", web.Allocated["cpu"])
	require.NoError(t, session.Close())
}

func TestAnErrorOfABatchChangesNothing(t *testing.T) {
	r := startReplica(t, service.Options{Limit: setting.Limit{AnswerBytes: 300}})
	c := dialAll(t, []*replica{r})
	session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
	require.NoError(t, err)
	inspect := &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Tasks: true, Jobs: true, Nodes: true}}}
	_, err = session.Do(t.Context(), deallocate("web/shop-0"), inspect, inspect, inspect)
	require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, client.Reason(err))
	answers, err := session.Do(t.Context(), deallocate("web/shop-0"))
	require.NoError(t, err)
	require.NoError(t, status.FromProto(answers[0].GetError()).Err(), "the task was still there")
	require.NoError(t, session.Close())
}

func TestEveryReplicaLearnsAnUploadedSnapshotInItsTurn(t *testing.T) {
	for n := 1; n <= 4; n++ {
		var replicas []*replica
		for range n {
			replicas = append(replicas, startReplica(t, service.Options{}))
		}
		c := dialAll(t, replicas)
		upload, err := c.Upload(t.Context(), twoTeams(t))
		require.NoError(t, err)
		in := client.Input{Upload: upload, Policy: proportional(t)}
		for range 2 * n {
			answer, err := c.Shares(t.Context(), in, client.SharesQuestion{})
			require.NoError(t, err)
			require.Equal(t, upload.Digest(), answer.Basis.GetSnapshotDigest(), "the snapshot was not sent along")
			session, err := c.OpenSession(t.Context(), in)
			require.NoError(t, err)
			require.NoError(t, session.Close())
		}
	}
}

func TestWhoSaysThatItDoesNotServeIsNotAsked(t *testing.T) {
	counting := func(n *atomic.Int32) []grpc.UnaryServerInterceptor {
		return []grpc.UnaryServerInterceptor{func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			n.Add(1)
			return handle(ctx, request)
		}}
	}
	var atLeaving, atStaying atomic.Int32
	leaving := startReplica(t, service.Options{Unary: counting(&atLeaving), Drain: setting.Drain{Delay: 300 * time.Millisecond}})
	staying := startReplica(t, service.Options{Unary: counting(&atStaying)})
	c := dialAll(t, []*replica{leaving, staying}, client.WithAttempts(1))
	in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	ask := func() {
		_, err := c.Shares(t.Context(), in, client.SharesQuestion{})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { ask(); return atLeaving.Load() > 0 && atStaying.Load() > 0 }, 10*time.Second, time.Millisecond)
	leaving.leave()
	for ended := false; !ended; {
		ask()
		select {
		case err := <-leaving.served:
			leaving.served <- err
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	before := atLeaving.Load()
	for range 10 {
		ask()
	}
	require.Equal(t, before, atLeaving.Load())
}

// TestRemediesDoNotDependOnStepsThatFailedOrOnPermits asks for remedies after steps that leave the cluster as it is.
func TestRemediesDoNotDependOnStepsThatFailedOrOnPermits(t *testing.T) {
	failing := event.Place(&apportionv1.Selector{Names: []string{"ml/train-0", "web/shop-0"}}, nil)
	permits := &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{}}}
	remedies := &apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: &apportionv1.RemediesStep{
		Job: &apportionv1.Selector{Names: []string{"ml/train"}},
	}}}
	var want string
	for _, before := range [][]*apportionv1.Step{
		{}, {permits}, {failing}, {failing, permits}, {permits, failing}, {mark(), permits, rollback(0)}, {permits, mark(), failing},
	} {
		s, err := client.InProcess().OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
		require.NoError(t, err)
		answers, err := s.Do(t.Context(), append(before, remedies)...)
		require.NoError(t, err)
		got := prototext.Format(answers[len(answers)-1])
		if want == "" {
			want = got
		}
		require.Equal(t, want, got)
	}
}
