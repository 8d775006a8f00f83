package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"google.golang.org/grpc"

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
	dial func(*proxied) (*client.Client, error)
}{
	{"client-side ring hash of the header", func(c *proxied) (*client.Client, error) { return replica.Dial(c.servers) }},
	{"client-side round robin", func(c *proxied) (*client.Client, error) {
		return replica.Dial(c.servers, grpc.WithDefaultServiceConfig(client.ServiceConfig()))
	}},
	{"HAProxy, hash of the header", func(c *proxied) (*client.Client, error) { return dialProxy(c.mirrors) }},
	{"HAProxy, round robin", func(c *proxied) (*client.Client, error) { return dialProxy(c.calls) }},
}

// mirrors shows how many states of a mirror must be sent whole, with and without the routing header.
func mirrors(ctx context.Context, b balancing) (err error) {
	const states, questions = 100, 2
	c, err := b.start(ctx, 3)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	fmt.Printf("\nA mirror of 1,000 tasks, three replicas, %d states with 1 %% of the tasks changed, %d questions about each:\n\n",
		states, questions)
	table := sample.NewTable("way", "sent as a change", "sent whole", "with the question", "whole %", "kB sent", "ms a question")
	line := sample.NewLine("show-mirrors")
	for i, way := range mirrorWays {
		sent, took, err := sentBy(ctx, c, way.dial, states, questions)
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

func sentBy(
	ctx context.Context, c *proxied, dial func(*proxied) (*client.Client, error), states, questions int,
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
