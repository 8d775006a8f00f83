package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// followed is a cluster that a mirror follows, with the tasks that change.
type followed struct {
	client *client.Client
	mirror *client.Mirror
	policy *apportionv1.Policy
	tasks  []changing
}

// changing is a task that runs on a node.
type changing struct{ uid, node string }

// follow returns a mirror of a generated cluster.
func follow(asked *client.Client, shape generate.Shape) (*followed, error) {
	snapshot := generate.Snapshot(shape)
	f := &followed{client: asked, mirror: client.NewMirror(asked), policy: client.VolcanoDefault()}
	for _, job := range snapshot.GetJobs() {
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				if task.GetUid() != "" && task.Node != nil {
					f.tasks = append(f.tasks, changing{task.GetUid(), snapshot.GetNodes()[task.GetNode()].GetName()})
				}
			}
		}
	}
	return f, f.mirror.Replace(snapshot)
}

// change changes one task in a hundred.
func (f *followed) change(random *rand.Rand) error {
	statuses := []apportionv1.TaskStatus{apportionv1.TaskStatus_TASK_STATUS_RUNNING, apportionv1.TaskStatus_TASK_STATUS_RELEASING}
	var err error
	f.mirror.Atomically(func() {
		for range max(1, len(f.tasks)/100) {
			task := f.tasks[random.IntN(len(f.tasks))]
			err = errors.Join(err, f.mirror.SetTask(task.uid, statuses[random.IntN(2)], task.node))
		}
	})
	return err
}

// mirrorWays are ways to reach three replicas, with the header that keeps a mirror with one of them and without it.
var mirrorWays = []struct {
	name string
	dial func(*cluster) (*client.Client, error)
}{
	{"client-side ring hash of the header", func(c *cluster) (*client.Client, error) { return replica.Dial(c.replicas) }},
	{"client-side round robin", func(c *cluster) (*client.Client, error) {
		return replica.Dial(c.replicas, grpc.WithDefaultServiceConfig(client.ServiceConfig()))
	}},
	{"HAProxy, hash of the header", func(c *cluster) (*client.Client, error) { return dialProxy(c.hashed) }},
	{"HAProxy, round robin", func(c *cluster) (*client.Client, error) { return dialProxy(c.proxied) }},
}

// mirrors shows how many states of a mirror must be sent whole, with and without the routing header.
func mirrors(ctx context.Context, s *setting) (err error) {
	const states, questions = 100, 2
	c, err := start(ctx, s, 3)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	fmt.Printf("\nA mirror of 1,000 tasks, three replicas, %d states with 1 %% of the tasks changed, %d questions about each:\n\n",
		states, questions)
	table := sample.NewTable("way", "sent as a change", "sent whole", "with the question", "whole %", "kB sent", "ms a question")
	line := sample.NewLine("show-mirrors")
	for i, way := range mirrorWays {
		sent, took, err := mirrored(ctx, c, way.dial, states, questions)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		whole := float64(sent.Wholes+sent.Inline) / float64(sent.Changes+sent.Wholes+sent.Inline)
		table.Add(way.name, sent.Changes, sent.Wholes, sent.Inline, math.Round(100*whole),
			float64(sent.ChangeBytes+sent.WholeBytes)/1000, float64(took.Microseconds())/1000/states/questions)
		line.Add([]string{"ring_hash", "round_robin", "haproxy_hash", "haproxy_round_robin"}[i]+"_whole_share", whole)
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\n%s\n", line)
	return nil
}

func mirrored(
	ctx context.Context, c *cluster, dial func(*cluster) (*client.Client, error), states, questions int,
) (sent client.Sent, took time.Duration, err error) {
	asked, err := dial(c)
	if err != nil {
		return sent, 0, err
	}
	defer func() { err = errors.Join(err, asked.Close()) }()
	f, err := follow(asked, fixture.Small())
	if err != nil {
		return sent, 0, err
	}
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // G404: the same changes in every way.
	began := time.Now()
	for range states {
		if err := f.change(random); err != nil {
			return sent, 0, err
		}
		in := client.Input{State: f.mirror.State(), Policy: f.policy}
		for range questions {
			if _, err := asked.Shares(ctx, in, client.SharesQuestion{}); err != nil {
				return sent, 0, err
			}
		}
	}
	return f.mirror.Sent(), time.Since(began), nil
}

// mirroring contains the results of the questions about a mirror while replicas were restarted and killed.
type mirroring struct {
	restarts, kills int
	all             tally
	// compared counts answers that were compared with those about the whole snapshot, wrong those that differed.
	compared, wrong atomic.Int64
	sent            client.Sent
}

func (m *mirroring) print(line *sample.Line) {
	fmt.Printf("a mirror while %d replicas were restarted in turn and %d killed: %d decisions, %d failed; %d compared with the whole "+
		"snapshot, %d wrong; %d states sent as a change, %d whole, %d with the question\n",
		m.restarts, m.kills, m.all.decided.Load(), m.all.failed.Load(),
		m.compared.Load(), m.wrong.Load(), m.sent.Changes, m.sent.Wholes, m.sent.Inline)
	line.Add("mirror_decisions", float64(m.all.decided.Load()))
	line.Add("mirror_failed", float64(m.all.failed.Load()))
	line.Add("mirror_compared", float64(m.compared.Load()))
	line.Add("mirror_wrong", float64(m.wrong.Load()))
	line.Add("mirror_changes", float64(m.sent.Changes))
	line.Add("mirror_wholes", float64(m.sent.Wholes))
}

var errWrong = errors.New("answers about a mirror differ from those about the whole snapshot")

func (m *mirroring) fault() error {
	if err := m.all.first.Load(); err != nil {
		return fmt.Errorf("%w: %w", errFailed, *err)
	}
	if m.wrong.Load() > 0 {
		return errWrong
	}
	return nil
}

// mirrorThrough restarts each replica in turn and then kills replicas, while one goroutine changes a mirror and others ask about it. Every
// hundredth answer is compared.
func mirrorThrough(ctx context.Context, s *setting, replicas []*replica.Replica) (*mirroring, error) {
	const callers = 3
	asked, err := replica.Dial(replicas)
	if err != nil {
		return nil, err
	}
	defer asked.Close() //nolint:errcheck // All questions are answered.
	shape := fixture.Small()
	shape.Jobs, shape.Tasks = 10*shape.Jobs, 10*shape.Tasks
	f, err := follow(asked, shape)
	if err != nil {
		return nil, err
	}
	m := &mirroring{}
	asking, enough := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // G404: only to vary changes.
		for asking.Err() == nil {
			if err := f.change(random); err != nil {
				m.all.count(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	for range callers {
		group.Go(func() {
			for asking.Err() == nil {
				m.ask(ctx, f)
			}
		})
	}
	err = m.disturb(ctx, s, replicas)
	enough()
	group.Wait()
	m.sent = f.mirror.Sent()
	return m, err
}

func (m *mirroring) ask(ctx context.Context, f *followed) {
	state := f.mirror.State()
	got, err := f.client.Shares(ctx, client.Input{State: state, Policy: f.policy}, client.SharesQuestion{})
	m.all.count(err)
	if err != nil || m.all.decided.Load()%100 != 0 {
		return
	}
	want, err := client.InProcess().Shares(ctx, client.Input{Snapshot: state.Snapshot(), Policy: f.policy}, client.SharesQuestion{})
	if err != nil {
		m.all.count(err)
		return
	}
	m.compared.Add(1)
	// Nothing is removed from this mirror, so that positions agree too.
	if !proto.Equal(got.Answer, want.Answer) {
		m.wrong.Add(1)
	}
}

// disturb restarts each replica, and kills some.
func (m *mirroring) disturb(ctx context.Context, s *setting, replicas []*replica.Replica) error {
	time.Sleep(time.Second)
	for _, r := range replicas {
		if err := r.End(); err != nil {
			return fmt.Errorf("a server did not end as it should: %w", err)
		}
		if err := again(ctx, r); err != nil {
			return err
		}
		m.restarts++
	}
	for range s.kills {
		r := replicas[m.kills%len(replicas)]
		r.Kill()
		time.Sleep(time.Second)
		if err := again(ctx, r); err != nil {
			return err
		}
		m.kills++
	}
	return nil
}

// again restarts a replica, and gives callers a second to reconnect.
func again(ctx context.Context, r *replica.Replica) error {
	if err := r.Start(ctx); err != nil {
		return err
	}
	if err := r.Ready(ctx); err != nil {
		return err
	}
	time.Sleep(time.Second)
	return nil
}
