package client_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/service"
)

// mirrored returns a mirror of so many tasks and the uids of all that run, each with its node.
func mirrored(b *testing.B, tasks int) (m *client.Mirror, uids, nodes []string, whole *apportionv1.Snapshot) {
	b.Helper()
	return mirroredBy(b, client.InProcess(), tasks)
}

func mirroredBy(b *testing.B, c *client.Client, tasks int) (m *client.Mirror, uids, nodes []string, whole *apportionv1.Snapshot) {
	b.Helper()
	shape := generate.Standard()
	shape.Jobs, shape.Tasks, shape.UIDs = tasks/10, tasks, true
	whole = generate.Snapshot(shape)
	m = client.NewMirror(c)
	require.NoError(b, m.Replace(whole))
	for _, job := range whole.GetJobs() {
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				if task.GetUid() != "" && task.Node != nil {
					uids, nodes = append(uids, task.GetUid()), append(nodes, whole.GetNodes()[task.GetNode()].GetName())
				}
			}
		}
	}
	return m, uids, nodes, whole
}

// What a mirror pays for 100 tasks that changed: setting them, taking a State, and encoding the change of the State before; beside that the
// encoding of the whole.
func BenchmarkMirrorOfHundredTasksChanged(b *testing.B) {
	for _, tasks := range []int{10_000, 100_000, 1_000_000} {
		m, uids, nodes, whole := mirrored(b, tasks)
		b.Run(fmt.Sprintf("change/tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			var bytes int
			state := m.State()
			_, at := state.Encode()
			statuses := []apportionv1.TaskStatus{apportionv1.TaskStatus_TASK_STATUS_RELEASING, apportionv1.TaskStatus_TASK_STATUS_RUNNING}
			n := 0
			for b.Loop() {
				for i := range 100 {
					k := i * (len(uids) / 100)
					if err := m.SetTask(uids[k], statuses[n%2], nodes[k]); err != nil {
						b.Fatal(err)
					}
				}
				n++
				next := m.State()
				bytes = len(next.Change(state, at))
				state = next
			}
			b.ReportMetric(float64(bytes), "change-B")
		})
		b.Run(fmt.Sprintf("whole/tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			var bytes int
			for b.Loop() {
				data, _ := m.State().Encode()
				bytes = len(data)
			}
			b.ReportMetric(float64(bytes), "whole-B")
		})
		b.Run(fmt.Sprintf("proto.Marshal/tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := proto.Marshal(whole); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A question about ten queues after all tasks of one job in a hundred changed, from a service: by a mirror, and with the whole snapshot.
func BenchmarkMirrorOfAService(b *testing.B) {
	const tasks = 100_000
	server, err := service.New(service.Options{})
	require.NoError(b, err)
	listener := bufconn.Listen(1 << 20)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	asked, err := client.Dial("passthrough:///memory", client.WithPlaintext(), client.WithDialOptions(
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })))
	require.NoError(b, err)
	defer func() {
		require.NoError(b, asked.Close())
		end()
		require.NoError(b, <-served)
	}()
	m, uids, nodes, whole := mirroredBy(b, asked, tasks)
	question := client.SharesQuestion{
		Queues: []string{}, Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_DESERVED},
	}
	for _, queue := range whole.GetQueues()[:10] {
		question.Queues = append(question.Queues, queue.GetName())
	}
	statuses := []apportionv1.TaskStatus{apportionv1.TaskStatus_TASK_STATUS_RELEASING, apportionv1.TaskStatus_TASK_STATUS_RUNNING}
	ask := func(b *testing.B, in client.Input) {
		b.Helper()
		in.Policy = proportionOnly(b)
		if _, err := asked.Shares(b.Context(), in, question); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("mirror", func(b *testing.B) {
		b.ReportAllocs()
		ask(b, client.Input{State: m.State()})
		n := 0
		for b.Loop() {
			for k := range tasks / 100 {
				if err := m.SetTask(uids[k], statuses[n%2], nodes[k]); err != nil {
					b.Fatal(err)
				}
			}
			n++
			ask(b, client.Input{State: m.State()})
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ask(b, client.Input{Snapshot: whole})
		}
	})
}

func proportionOnly(b *testing.B) *apportionv1.Policy {
	b.Helper()
	policy, err := client.Policy(client.Tier{"proportion"})
	require.NoError(b, err)
	return policy
}

// What a mirror keeps for a task.
func BenchmarkMirrorMemory(b *testing.B) {
	const tasks = 100_000
	for b.Loop() {
		_, _, _, whole := mirrored(b, tasks)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := client.NewMirror(client.InProcess())
		require.NoError(b, m.Replace(whole))
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/tasks, "B/task")
		runtime.KeepAlive(m)
		runtime.KeepAlive(whole)
	}
}

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
		Tasks: &apportionv1.Selector{Names: []string{"suite-0"}},
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
		stream, err := apportionv1.NewDecisionServiceClient(connection).RunSession(b.Context())
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
