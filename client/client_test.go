package client_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

const running = apportionv1.TaskStatus_TASK_STATUS_RUNNING

// twoTeams is a cluster of two nodes with 8 CPUs and 4 GPUs each: web holds 12 of the 16 CPUs, ml has a gang that waits for 8 GPUs.
func twoTeams(t *testing.T) *apportionv1.Snapshot {
	t.Helper()
	request := client.Resources{"cpu": "4", "memory": "4Gi"}
	snapshot, err := client.NewSnapshot().
		Node(
			client.Node{Name: "n0", Allocatable: client.Resources{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}},
			client.Node{Name: "n1", Allocatable: client.Resources{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}},
		).
		Queue(
			client.Queue{Name: "web"},
			client.Queue{Name: "ml", Guarantee: client.Resources{"nvidia.com/gpu": "4"}},
			client.Queue{Name: "attic", State: apportionv1.QueueState_QUEUE_STATE_CLOSED},
		).
		Job(
			client.Job{
				Name: "shop", Namespace: "web", Queue: "web", MinAvailable: 1, MinResources: request,
				Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING,
				Groups: []client.Group{{Role: "front", Request: request, Tasks: []client.Task{
					{Name: "shop-0", Status: running, Node: "n0"},
					{Name: "shop-1", Status: running, Node: "n0"},
					{Name: "shop-2", Status: running, Node: "n1"},
				}}},
			},
			client.Job{
				Name: "train", Namespace: "ml", Queue: "ml", MinAvailable: 2,
				MinResources: client.Resources{"cpu": "8", "nvidia.com/gpu": "8"},
				Groups: []client.Group{{
					Role: "worker", Request: client.Resources{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "4"},
					Tasks: []client.Task{{Name: "train-0"}, {Name: "train-1"}},
				}},
			},
			client.Job{Name: "old", Namespace: "attic", Queue: "attic", MinResources: client.Resources{"cpu": "1"}},
		).
		Build()
	require.NoError(t, err)
	return snapshot
}

// serve starts a service on an address until the returned function is called.
func serve(t *testing.T, address string) (string, func()) {
	t.Helper()
	policies := map[string]*apportionv1.Policy{"house": client.VolcanoDefault()}
	s, err := service.New(service.Options{Policies: policies, Drain: setting.Drain{Time: time.Millisecond}})
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(ctx, listener)
	}()
	return listener.Addr().String(), func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func dial(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.Dial(address, client.WithPlaintext())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// way is a client under test.
type way struct {
	name string
	*client.Client
}

// ways are a client that decides in process, and one that asks a service.
func ways(t *testing.T) []way {
	t.Helper()
	address, stop := serve(t, "127.0.0.1:0")
	t.Cleanup(stop)
	return []way{{"in process", client.InProcess()}, {"over gRPC", dial(t, address)}}
}

func proportional(t *testing.T) *apportionv1.Policy {
	t.Helper()
	policy, err := client.Policy(client.Tier{"gang"}, client.Tier{"proportion"})
	require.NoError(t, err)
	return policy
}

func TestAnswersAreReadByName(t *testing.T) {
	for _, c := range ways(t) {
		t.Run(c.name, func(t *testing.T) {
			in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}

			shares, err := c.Shares(t.Context(), in, client.SharesQuestion{})
			require.NoError(t, err)
			web, ok := shares.Queue("web")
			require.True(t, ok)
			require.Equal(t, client.Resources{"cpu": "12", "memory": "12Gi"}, web.Allocated)
			require.Equal(t, "cpu", web.Dominant)
			require.Equal(t, 2, web.Rank)
			ml, ok := shares.Queue("ml")
			require.True(t, ok)
			require.Equal(t, "8", ml.Deserved["nvidia.com/gpu"])
			require.Equal(t, "proportion", ml.Plugin)
			_, ok = shares.Queue("nobody")
			require.False(t, ok)

			admissions, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{Jobs: []string{"ml/train", "attic/old"}})
			require.NoError(t, err)
			require.Equal(t, "ml/train", admissions.Jobs[0].Job)
			require.True(t, admissions.Jobs[0].Permitted)
			require.False(t, admissions.Jobs[1].Permitted)
			require.Equal(t, "queue attic is not open (proportion)", admissions.Jobs[1].Why)

			allowances, err := c.Allocatable(t.Context(), in, client.AllocatableQuestion{
				Tasks: []string{"ml/train-0", "ml/train-1"}, Jointly: true, Preemptive: true,
			})
			require.NoError(t, err)
			require.True(t, allowances.Allocatable[0].Permitted, allowances.Allocatable[0].Why)
			require.Len(t, allowances.Preemptive, 1)

			victims, err := c.Victims(t.Context(), in, client.VictimsQuestion{
				Claimant: "ml/train-0", Candidates: []string{"web/shop-2", "web/shop-1", "web/shop-0"},
			})
			require.NoError(t, err)
			require.True(t, victims.Decided)
			require.Equal(t, []string{"web/shop-2", "web/shop-1"}, victims.Tasks)
			require.Equal(t, "web/shop-0", victims.Spared[0].Task)
			require.Equal(t, "its job has 1 task ready and must keep 1 (gang)", victims.Spared[0].Why)

			scores, err := c.ScoreNodes(t.Context(), in, client.NodesQuestion{Tasks: []string{"ml/train-0"}, Explain: true})
			require.NoError(t, err)
			require.Equal(t, "n0", scores.Tasks[0].Nodes[0].Node)
			require.False(t, scores.Tasks[0].Nodes[0].Fits)
			require.Equal(t, "8 of cpu used of 8, 4 more do not fit", scores.Tasks[0].Nodes[0].Why)
			require.True(t, scores.Tasks[0].Nodes[1].Fits)
		})
	}
}

func TestStepsAreAnsweredOnTheStateThatEarlierOnesLeft(t *testing.T) {
	for _, c := range ways(t) {
		t.Run(c.name, func(t *testing.T) {
			in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
			steps := []*apportionv1.Step{
				{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
				event.Evict(&apportionv1.Selector{Names: []string{"web/shop-0"}}, 0),
				{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
				{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: 7}}},
			}
			simulation, err := c.Simulate(t.Context(), in, steps...)
			require.NoError(t, err)
			shares := client.Shares{Basis: simulation.Basis, Answer: simulation.Answers[2].GetShares()}
			web, _ := shares.Queue("web")
			require.Equal(t, "8", web.Allocated["cpu"])
			require.NoError(t, simulation.Err(2))
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_MARK_NOT_FOUND, client.Reason(simulation.Err(3)))

			session, err := c.OpenSession(t.Context(), in)
			require.NoError(t, err)
			for i, step := range steps {
				answers, err := session.Do(t.Context(), step)
				require.NoError(t, err)
				require.Len(t, answers, 1)
				require.Equal(t, i == 3, answers[0].GetError() != nil)
			}
			require.NotEmpty(t, session.Basis().GetPolicyDigest())
			require.NoError(t, session.Close())
		})
	}
}

func TestFaultsOfTheInputAreTheSameEverywhere(t *testing.T) {
	for _, c := range ways(t) {
		t.Run(c.name, func(t *testing.T) {
			snapshot, err := client.NewSnapshot().
				Queue(client.Queue{Name: "a"}, client.Queue{Name: "a"}).
				Job(client.Job{Name: "j", Queue: "b"}).
				Build()
			require.NoError(t, err)
			_, err = c.Shares(t.Context(), client.Input{Snapshot: snapshot, Policy: proportional(t)}, client.SharesQuestion{})
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, client.Reason(err))
			listed, total := client.Violations(err)
			require.Equal(t, 2, total)
			require.Contains(t, listed, client.Violation{Path: "input.snapshot.jobs[0].queue", Detail: `no queue "b"`})
			require.Contains(t, client.Describe(err), `input.snapshot.jobs[0].queue: no queue "b"`)

			_, err = c.Shares(t.Context(), client.Input{Snapshot: snapshot}, client.SharesQuestion{})
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, client.Reason(err))
			_, err = c.Shares(t.Context(), client.Input{Snapshot: snapshot, PolicyName: "castle"}, client.SharesQuestion{})
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_POLICY_NOT_FOUND, client.Reason(err))
		})
	}
}

func TestAnUploadedSnapshotIsAskedAboutByItsDigest(t *testing.T) {
	for _, c := range ways(t) {
		t.Run(c.name, func(t *testing.T) {
			upload, err := c.Upload(t.Context(), twoTeams(t))
			require.NoError(t, err)
			in := client.Input{Upload: upload, Policy: proportional(t)}
			for range 2 {
				admissions, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{Jobs: []string{"attic/old"}})
				require.NoError(t, err)
				require.Equal(t, "queue attic is not open (proportion)", admissions.Jobs[0].Why)
				require.Equal(t, upload.Digest(), admissions.Basis.GetSnapshotDigest())
			}
		})
	}
}

func TestAReplicaThatDoesNotHoldTheSnapshotGetsIt(t *testing.T) {
	address, stop := serve(t, "127.0.0.1:0")
	c := dial(t, address)
	upload, err := c.Upload(t.Context(), twoTeams(t))
	require.NoError(t, err)
	stop()
	_, stop = serve(t, address)

	in := client.Input{Upload: upload, PolicyName: "house"}
	require.Eventually(t, func() bool {
		_, err = c.Shares(t.Context(), in, client.SharesQuestion{})
		return status.Code(err) != codes.Unavailable
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, err)
	stop()

	_, stop = serve(t, address)
	defer stop()
	var session *client.Session
	require.Eventually(t, func() bool {
		session, err = c.OpenSession(t.Context(), in)
		return status.Code(err) != codes.Unavailable
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, upload.Digest(), session.Basis().GetSnapshotDigest())
	require.NoError(t, session.Close())
}

func TestPresetsAreDecidedBy(t *testing.T) {
	for _, name := range client.Presets() {
		policy, ok := client.Preset(name)
		require.True(t, ok)
		_, err := client.InProcess().Shares(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: policy}, client.SharesQuestion{})
		require.NoError(t, err, name)
	}
	_, ok := client.Preset("unknown")
	require.False(t, ok)
	_, err := client.Policy(client.Tier{"unknown"})
	require.ErrorContains(t, err, `no plugin "unknown"; there are backfill`)
}

func TestDialRefusesWhatIsNoTarget(t *testing.T) {
	_, err := client.Dial("unknown-scheme:///\x00")
	require.Error(t, err)
}

func TestAHorizonThatIsTooLongOrNegativeIsRefusedAndNotCutToAnother(t *testing.T) {
	in := client.Input{Snapshot: twoTeams(t), Policy: client.VolcanoDefault()}
	for _, horizon := range []time.Duration{-time.Hour, (1<<32 + 3600) * time.Second} {
		_, err := client.InProcess().Forecast(t.Context(), in, client.ForecastQuestion{Job: "ml/train", Runs: 1, Horizon: horizon})
		require.ErrorContains(t, err, "horizon", horizon.String())
	}
}
