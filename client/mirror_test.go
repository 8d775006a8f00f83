package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

// memory are replicas that are joined to their client by memory.
type memory struct {
	client    *client.Client
	listeners []*bufconn.Listener
	links     []*freezing
	stops     []func()
}

// startMemory starts replicas, for synctest. stop ends them all.
func startMemory(t *testing.T, n int, options service.Options, more ...client.Option) (r *memory, stop func()) { //nolint:gocritic // Once a test.
	t.Helper()
	r = &memory{}
	names := manual.NewBuilderWithScheme("memory")
	state := resolver.State{}
	for i := range n {
		s, err := service.New(options)
		require.NoError(t, err)
		listener := bufconn.Listen(1 << 20)
		ctx, end := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, listener) }()
		r.listeners = append(r.listeners, listener)
		r.links = append(r.links, &freezing{})
		r.stops = append(r.stops, sync.OnceFunc(func() {
			end()
			require.NoError(t, <-served)
		}))
		state.Addresses = append(state.Addresses, resolver.Address{Addr: fmt.Sprint(i)})
	}
	names.InitialState(state)
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		var i int
		if _, err := fmt.Sscan(address, &i); err != nil {
			return nil, err
		}
		conn, err := r.listeners[i].DialContext(ctx)
		if err != nil {
			return nil, err
		}
		return &freezable{Conn: conn, link: r.links[i], closed: make(chan struct{})}, nil
	}
	var err error
	r.client, err = client.Dial("memory:///", append([]client.Option{
		client.WithPlaintext(), client.WithLogger(slog.New(slog.DiscardHandler)),
		client.WithDialOptions(grpc.WithResolvers(names), grpc.WithContextDialer(dialer)),
	}, more...)...)
	require.NoError(t, err)
	return r, func() {
		require.NoError(t, r.client.Close())
		for _, end := range r.stops {
			end()
		}
	}
}

// following is a mirror of the two teams' cluster.
func following(t *testing.T, c *client.Client) *client.Mirror {
	t.Helper()
	m := client.NewMirror(c)
	require.NoError(t, m.Replace(twoTeams(t)))
	return m
}

// requireTruth asks about the mirror as it is, and compares with the whole snapshot in process.
func requireTruth(t *testing.T, c *client.Client, m *client.Mirror) {
	t.Helper()
	state := m.State()
	question := client.SharesQuestion{JobShares: true}
	got, err := c.Shares(t.Context(), client.Input{State: state, Policy: proportional(t)}, question)
	require.NoError(t, err)
	want, err := client.InProcess().Shares(t.Context(), client.Input{Snapshot: state.Snapshot(), Policy: proportional(t)}, question)
	require.NoError(t, err)
	for _, name := range []string{"web", "ml"} {
		shareGot, found := got.Queue(name)
		require.True(t, found)
		shareWant, _ := want.Queue(name)
		require.Equal(t, shareWant, shareGot)
	}
}

// grow sets a queue's weight, which changes what all deserve.
func grow(t *testing.T, m *client.Mirror, weight int) {
	t.Helper()
	require.NoError(t, m.SetQueue(client.Queue{Name: "web", Weight: uint32(weight)}))
}

func TestAMirrorSendsEachStateOnceAndOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := startMemory(t, 3, service.Options{})
		defer stop()
		m := following(t, r.client)
		for weight := 2; weight < 12; weight++ {
			requireTruth(t, r.client, m)
			requireTruth(t, r.client, m)
			grow(t, m, weight)
		}
		requireTruth(t, r.client, m)
		sent := m.Sent()
		require.Equal(t, uint64(1), sent.Wholes, "three replicas, of which the mirror keeps to one")
		require.Equal(t, uint64(10), sent.Changes)
		require.Less(t, sent.ChangeBytes/10, sent.WholeBytes/5)
		require.NoError(t, m.Replace(m.State().Snapshot()))
		grow(t, m, 11)
		requireTruth(t, r.client, m)
		require.Equal(t, uint64(10), m.Sent().Changes, "what is equal is not sent")
	})
}

func TestAMirrorGoesOnWhereItsReplicaWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := startMemory(t, 3, service.Options{Drain: setting.Drain{Time: time.Second}})
		defer stop()
		m := following(t, r.client)
		requireTruth(t, r.client, m)
		session, err := r.client.OpenSession(t.Context(), client.Input{State: m.State(), Policy: proportional(t)})
		require.NoError(t, err)
		for i := range 2 {
			_, err = session.Do(t.Context(), mark(), shares())
			require.NoError(t, err)
			r.stops[i]()
			grow(t, m, 2+i)
			requireTruth(t, r.client, m)
			_, err = session.Do(t.Context(), shares())
			require.NoError(t, err)
		}
		require.LessOrEqual(t, m.Sent().Wholes, uint64(6), "for the mirror and for the older state of the session, once a replica")
		require.NoError(t, session.Close())
	})
}

func TestNodeSetsComeAndGoAsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := startMemory(t, 1, service.Options{})
		defer stop()
		m := following(t, r.client)
		requireTruth(t, r.client, m)
		for range 3 {
			require.NoError(t, m.SetNodeSet(client.NodeSet{Name: "fast", Nodes: []string{"n0"}}))
			requireTruth(t, r.client, m)
			require.NoError(t, m.RemoveNodeSet("fast"))
			requireTruth(t, r.client, m)
		}
		require.Equal(t, uint64(1), m.Sent().Wholes)
		require.Equal(t, uint64(6), m.Sent().Changes)
	})
}

func TestAStateThatAReplicaDroppedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := startMemory(t, 1, service.Options{Limit: setting.Limit{CacheBytes: 4 << 20}})
		defer stop()
		m := following(t, r.client)
		requireTruth(t, r.client, m)
		shape := generate.Standard()
		shape.Tasks, shape.Jobs, shape.Queues = 1_000, 100, 10
		for seed := range 12 {
			snapshot := generate.Snapshot(shape)
			snapshot.AsOf = int64(seed)
			_, err := r.client.Upload(t.Context(), snapshot)
			require.NoError(t, err)
		}
		requireTruth(t, r.client, m)
		require.Equal(t, uint64(2), m.Sent().Wholes, "the same state twice")
		grow(t, m, 7)
		requireTruth(t, r.client, m)
		require.Equal(t, uint64(1), m.Sent().Changes)
	})
}

func TestAStateThatNoReplicaCanHoldGoesWithTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := startMemory(t, 1, service.Options{Limit: setting.Limit{CacheBytes: 1 << 10}})
		defer stop()
		m := following(t, r.client)
		requireTruth(t, r.client, m)
		grow(t, m, 7)
		requireTruth(t, r.client, m)
		require.Equal(t, client.Sent{Inline: 2}, m.Sent())
		session, err := r.client.OpenSession(t.Context(), client.Input{State: m.State(), Policy: proportional(t)})
		require.NoError(t, err)
		require.NoError(t, session.Close())
	})
}

func TestTheEngineAnswersAboutAMirrorWhereNoReplicaDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := startMemory(t, 1, service.Options{}, client.WithFallback(client.FallbackEngine), client.WithAttempts(1))
		defer stop()
		m := following(t, r.client)
		requireTruth(t, r.client, m)
		r.stops[0]()
		grow(t, m, 7)
		requireTruth(t, r.client, m)
		in := client.Input{State: m.State(), Policy: proportional(t)}
		session, err := r.client.OpenSession(t.Context(), in)
		require.NoError(t, err)
		require.NoError(t, session.Close())
		closed, err := r.client.Enqueue(t.Context(), in, client.EnqueueQuestion{})
		require.NoError(t, err)
		require.Equal(t, client.FallbackEngine, closed.Fallback)
	})
}

// Every way to answer about a State adds texts if these are wanted: by a replica, in process, and by the fallback.
func TestReasonsAboutAMirrorHaveTextsIfTheseAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote, stop := startMemory(t, 1, service.Options{})
		defer stop()
		lost, stopLost := startMemory(t, 1, service.Options{}, client.WithFallback(client.FallbackEngine), client.WithAttempts(1))
		defer stopLost()
		lost.stops[0]()
		question := client.EnqueueQuestion{Jobs: []string{"attic/old"}}
		for name, c := range map[string]*client.Client{
			"a replica": remote.client, "in process": client.InProcess(), "fallback": lost.client,
		} {
			state := following(t, c).State()
			for _, texts := range []bool{true, false} {
				in := client.Input{State: state, Policy: proportional(t), Texts: texts}
				admissions, err := c.Enqueue(t.Context(), in, question)
				require.NoError(t, err, name)
				reason := admissions.Answer.GetJobs()[0].GetVerdict().GetCauses()[0]
				require.Equal(t, texts, reason.GetText() != "", "a call, %s: %v", name, reason)

				session, err := c.OpenSession(t.Context(), in)
				require.NoError(t, err, name)
				answers, err := session.Do(t.Context(), &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
					Jobs: &apportionv1.Selector{Names: question.Jobs},
				}}})
				require.NoError(t, err, name)
				reason = answers[0].GetEnqueue().GetJobs()[0].GetVerdict().GetCauses()[0]
				require.Equal(t, texts, reason.GetText() != "", "a session, %s: %v", name, reason)
				require.NoError(t, session.Close())
			}
		}
	})
}

func TestABaseWithManyHolesIsSentWholeAgain(t *testing.T) {
	c := client.InProcess()
	m := client.NewMirror(c)
	require.NoError(t, m.SetNode(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "1", "memory": "1Gi"}}))
	require.NoError(t, m.SetQueue(client.Queue{Name: "web"}))
	require.NoError(t, m.SetQueue(client.Queue{Name: "ml"}))
	tasks := make([]client.Task, 300)
	for i := range tasks {
		tasks[i].UID = fmt.Sprint(i)
	}
	for i := range 8 {
		job := client.Job{Name: "j", Queue: "ml", Priority: int32(i), Groups: []client.Group{{Request: client.Resources{"cpu": "1"}, Tasks: tasks}}}
		require.NoError(t, m.SetJob(job))
		// Other jobs, so that the job is a small part of the cluster.
		job.Name, job.Priority = "other", 0
		for k := range job.Groups[0].Tasks {
			job.Groups[0].Tasks = append([]client.Task(nil), job.Groups[0].Tasks...)
			job.Groups[0].Tasks[k].UID = ""
		}
		require.NoError(t, m.SetJob(job))
		requireTruth(t, c, m)
	}
	require.Equal(t, uint64(2), m.Sent().Wholes)
}

// Many goroutines ask while one changes: each answer fits the State that was asked about, and no State falls within Atomically.
func TestManyAskWhileOneChanges(t *testing.T) {
	r := startReplica(t, service.Options{})
	c := dialAll(t, []*replica{r})
	m := following(t, c)
	var group sync.WaitGroup
	var ended atomic.Bool
	for range 4 {
		group.Go(func() {
			for !ended.Load() {
				state := m.State()
				queues := map[string]uint32{}
				for _, queue := range state.Snapshot().GetQueues() {
					queues[queue.GetName()] = queue.GetWeight()
				}
				if queues["web"] != queues["ml"] {
					t.Errorf("a state between two changes that are one: %v", queues)
					return
				}
				answer, err := c.Shares(t.Context(), client.Input{State: state, Policy: proportional(t)}, client.SharesQuestion{})
				if err != nil {
					t.Error(err)
					return
				}
				for name, weight := range queues {
					if share, _ := answer.Queue(name); name != "attic" && share.Weight != max(weight, 1) {
						t.Errorf("queue %s has weight %d in the answer, %d in the state", name, share.Weight, weight)
					}
				}
			}
		})
	}
	for weight := 2; weight < 60; weight++ {
		m.Atomically(func() {
			grow(t, m, weight)
			require.NoError(t, m.SetQueue(client.Queue{Name: "ml", Weight: uint32(weight)}))
		})
		time.Sleep(time.Millisecond)
	}
	ended.Store(true)
	group.Wait()
}

func TestWhatAMirrorRefusesChangesNothing(t *testing.T) {
	c := client.InProcess()
	m := following(t, c)
	before := m.State()
	job := func(change func(*client.Job)) client.Job {
		j := client.Job{Name: "new", Queue: "web", Groups: []client.Group{{Tasks: []client.Task{{UID: "x"}, {UID: "y"}}}}}
		change(&j)
		return j
	}
	other := client.NewMirror(client.InProcess())
	for text, err := range map[string]error{
		"a node needs a name":                      m.SetNode(client.Node{}),
		"nodes[0].allocatable.cpu":                 m.SetNode(client.Node{Name: "n9", Allocatable: client.Resources{"cpu": "much", "new/dimension": "1"}}),
		"a queue needs a name":                     m.SetQueue(client.Queue{}),
		"both weightless and of weight 3":          m.SetQueue(client.Queue{Name: "q", Weightless: true, Weight: 3}),
		"a node set needs a name":                  m.SetNodeSet(client.NodeSet{}),
		`node "n0" is named twice`:                 m.SetNodeSet(client.NodeSet{Name: "s", Nodes: []string{"n0", "n0"}}),
		"a job needs a uid or a name":              m.SetJob(client.Job{Queue: "web"}),
		`job "new": no queue "nowhere"`:            m.SetJob(job(func(j *client.Job) { j.Queue = "nowhere" })),
		`job "new": another task has the uid "x"`:  m.SetJob(job(func(j *client.Job) { j.Groups[0].Tasks[1].UID = "x" })),
		`job "new": no node set "s"`:               m.SetJob(job(func(j *client.Job) { j.Groups[0].NodeSet = "s" })),
		`task "x": no status 77`:                   m.SetJob(job(func(j *client.Job) { j.Groups[0].Tasks[0].Status = 77 })),
		`no node "n7"`:                             m.RemoveNode("n7"),
		`no queue "q7"`:                            m.RemoveQueue("q7"),
		`queue "web" has`:                          m.RemoveQueue("web"),
		`no node set "s7"`:                         m.RemoveNodeSet("s7"),
		`no job "j7"`:                              m.RemoveJob("j7"),
		`no task "t7"`:                             m.SetTask("t7", apportionv1.TaskStatus_TASK_STATUS_RUNNING, "n0"),
		"snapshot.jobs[0].queue":                   m.Replace(&apportionv1.Snapshot{Jobs: []*apportionv1.Job{{Name: "a", Queue: "nowhere"}}}),
		"the state belongs to a mirror of another": shareError(t, c, other.State()),
	} {
		require.ErrorContains(t, err, text)
	}
	require.Same(t, before, m.State())
	require.Equal(t, before.Snapshot().GetDimensions(), twoTeams(t).GetDimensions())
}

func shareError(t *testing.T, c *client.Client, state *client.State) error {
	t.Helper()
	_, err := c.Shares(t.Context(), client.Input{State: state, Policy: proportional(t)}, client.SharesQuestion{})
	return err
}

// If the service refuses the state, the caller gets its error with paths in the whole snapshot.
func TestWhatTheServiceRefusesIsSaidOfTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := service.Options{}
		options.Limit.Queues = 3
		r, stop := startMemory(t, 1, options)
		defer stop()
		m := following(t, r.client)
		requireTruth(t, r.client, m)
		require.NoError(t, m.SetQueue(client.Queue{Name: "fourth"}))
		err := shareError(t, r.client, m.State())
		require.Equal(t, codes.OutOfRange, status.Code(err), "%v", err)
		require.NoError(t, m.RemoveQueue("fourth"))
		requireTruth(t, r.client, m)
	})
}

func TestEachCallOfAMirrorCarriesItsRoutingHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mutex sync.Mutex
		seen := map[string]int{}
		note := func(ctx context.Context) {
			sent, _ := metadata.FromOutgoingContext(ctx)
			mutex.Lock()
			defer mutex.Unlock()
			for _, value := range sent.Get(client.RoutingHeader) {
				seen[value]++
			}
		}
		unary := func(
			ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			note(ctx)
			return invoke(ctx, method, request, reply, conn, options...)
		}
		stream := func(
			ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, options ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			note(ctx)
			return streamer(ctx, desc, conn, method, options...)
		}
		r, stop := startMemory(t, 1, service.Options{},
			client.WithDialOptions(grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)))
		defer stop()
		for range 2 {
			m := following(t, r.client)
			requireTruth(t, r.client, m)
			session, err := r.client.OpenSession(t.Context(), client.Input{State: m.State(), Policy: proportional(t)})
			require.NoError(t, err)
			require.NoError(t, session.Close())
		}
		require.Len(t, seen, 2, "one value a mirror")
		for value, calls := range seen {
			require.Len(t, value, 26)
			require.Equal(t, 3, calls, "an upload, a question, a session")
		}
	})
}
