package reference

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/recording"
	"github.com/apportion/apportion/service"
)

// every asks about every recorded case rather than every so many.
var every = flag.Bool("whole", false, "compare remote with local on every recorded case")

const (
	sample = 12
	// batch is the number of steps of a session in one message.
	batch = 16
)

// The recorded cases, asked in every way that the client has: a service answers as the engine does in process, to the last bit, errors
// included.
func TestRemoteAndLocalAnswerAlike(t *testing.T) {
	p := parity{remote: dialed(t), local: client.InProcess()}
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	n, compared := 0, 0
	for line, err := range recording.Lines(recordings) {
		require.NoError(t, err)
		if n++; n%sample != 0 && !*every {
			continue
		}
		compared++
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			c, err := ReadCase(line)
			if err != nil {
				t.Error(err)
				return
			}
			input, steps, err := c.Question()
			if err != nil {
				t.Error(err)
				return
			}
			t.Run(c.Group()+"/"+c.Label(), func(t *testing.T) { p.compare(t, input, steps) })
		})
	}
	group.Wait()
	t.Log(compared, "of", n, "cases,", p.answers, "answers")
	require.Greater(t, n, 800)
}

// dialed is a client of a service on loopback; both end with the test.
func dialed(t *testing.T) *client.Client {
	t.Helper()
	server, err := service.New(service.Options{})
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	c, err := client.Dial(listener.Addr().String(), client.WithPlaintext(), client.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		stop()
		require.NoError(t, <-served)
	})
	return c
}

// parity compares two clients.
type parity struct {
	remote, local *client.Client

	mutex   sync.Mutex
	answers int
}

func (p *parity) compare(t *testing.T, input *apportionv1.Input, steps []*apportionv1.Step) {
	t.Helper()
	in := client.Input{Snapshot: input.GetSnapshot(), Policy: input.GetPolicy(), Texts: true}
	upload, err := p.remote.Upload(t.Context(), in.Snapshot)
	if err != nil {
		_, local := p.local.Simulate(t.Context(), in)
		sameError(t, local, err)
		return
	}
	uploaded := client.Input{Upload: upload, Policy: in.Policy, Texts: in.Texts}
	want, err := p.local.Simulate(t.Context(), in, steps...)
	got, remote := p.remote.Simulate(t.Context(), in, steps...)
	sameError(t, err, remote)
	if err != nil {
		return
	}
	require.True(t, proto.Equal(want.Basis, got.Basis), "%v\n%v", want.Basis, got.Basis)
	p.same(t, steps, want.Answers, got.Answers)
	p.conversations(t, uploaded, in, steps, want.Answers)
	p.calls(t, uploaded, in)
}

// conversations asks the steps on sessions, some at a time.
func (p *parity) conversations(t *testing.T, uploaded, in client.Input, steps []*apportionv1.Step, want []*apportionv1.Answer) {
	t.Helper()
	remote, err := p.remote.OpenSession(t.Context(), uploaded)
	require.NoError(t, err)
	defer func() { require.NoError(t, remote.Close()) }()
	local, err := p.local.OpenSession(t.Context(), in)
	require.NoError(t, err)
	var atRemote, atLocal []*apportionv1.Answer
	for some := range slices.Chunk(steps, batch) {
		answers, err := remote.Do(t.Context(), some...)
		require.NoError(t, err)
		atRemote = append(atRemote, answers...)
		answers, err = local.Do(t.Context(), some...)
		require.NoError(t, err)
		atLocal = append(atLocal, answers...)
	}
	p.same(t, steps, atLocal, atRemote)
	for i := range want {
		// The path of an error begins with the position of the step in its batch.
		if want[i].GetError() == nil {
			require.True(t, proto.Equal(want[i], atRemote[i]), "%v", steps[i])
		}
	}
}

// calls asks every kind of question in a call of its own, about the tasks that wait.
func (p *parity) calls(t *testing.T, uploaded, in client.Input) {
	t.Helper()
	waiting := pending(in.Snapshot)
	for name, ask := range map[string]func(*client.Client, client.Input) ([]proto.Message, error){
		"shares": func(c *client.Client, in client.Input) ([]proto.Message, error) {
			answer, err := c.Shares(t.Context(), in, client.SharesQuestion{JobShares: true, Tree: true})
			return messages(err, func() []proto.Message { return []proto.Message{answer.Answer} })
		},
		"enqueue": func(c *client.Client, in client.Input) ([]proto.Message, error) {
			answer, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{AsAction: true})
			return messages(err, func() []proto.Message { return []proto.Message{answer.Answer} })
		},
		"allocatable": func(c *client.Client, in client.Input) ([]proto.Message, error) {
			answer, err := c.Allocatable(t.Context(), in, client.AllocatableQuestion{Tasks: waiting, Preemptive: true, Explain: true})
			return messages(err, func() []proto.Message {
				return []proto.Message{answer.Answer, answer.PreemptiveAnswer}
			})
		},
		"reclaim": func(c *client.Client, in client.Input) ([]proto.Message, error) {
			answer, err := c.Victims(t.Context(), in, client.VictimsQuestion{Claimant: first(waiting), Explain: true})
			return messages(err, func() []proto.Message { return []proto.Message{answer.Answer} })
		},
		"preempt": func(c *client.Client, in client.Input) ([]proto.Message, error) {
			answer, err := c.Victims(t.Context(), in, client.VictimsQuestion{Claimant: first(waiting), Preempt: true, EligibleOnly: true})
			return messages(err, func() []proto.Message { return []proto.Message{answer.Answer} })
		},
		"nodes": func(c *client.Client, in client.Input) ([]proto.Message, error) {
			answer, err := c.ScoreNodes(t.Context(), in, client.NodesQuestion{Tasks: waiting, ByPlugin: true, Explain: true})
			return messages(err, func() []proto.Message { return []proto.Message{answer.Answer} })
		},
	} {
		want, err := ask(p.local, in)
		got, remote := ask(p.remote, uploaded)
		sameError(t, err, remote)
		for i := range want {
			require.True(t, proto.Equal(want[i], got[i]), "%s\n%v\n%v", name, want[i], got[i])
			p.count(1)
		}
	}
}

// messages are the messages of an answer, if there is one.
func messages(err error, read func() []proto.Message) ([]proto.Message, error) {
	if err != nil {
		return nil, err
	}
	return read(), nil
}

func first(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return names[0]
}

// pending are the tasks that wait, as far as they have names.
func pending(snapshot *apportionv1.Snapshot) []string {
	var names []string
	for _, job := range snapshot.GetJobs() {
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				if task.GetUid() != "" && task.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING {
					names = append(names, task.GetUid())
				}
			}
		}
	}
	return names
}

func (p *parity) same(t *testing.T, steps []*apportionv1.Step, want, got []*apportionv1.Answer) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, proto.Equal(want[i], got[i]), "%v\nlocal: %v\nremote: %v", steps[i], want[i], got[i])
	}
	p.count(len(want))
}

func (p *parity) count(answers int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.answers += answers
}

// sameError requires two errors to be one status, details included, or none.
func sameError(t *testing.T, want, got error) {
	t.Helper()
	require.True(t, proto.Equal(status.Convert(want).Proto(), status.Convert(got).Proto()), "local: %v\nremote: %v", want, got)
}
