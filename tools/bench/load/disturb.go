package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// disturbed is a fleet of three that callers ask in several ways, while something happens to its servers.
type disturbed struct {
	servers fleet
	asked   *client.Client
	mirror  *followed
	small   client.Input
	// tallies are by way; slowest is the longest time of a decision.
	tallies []*tally
	slowest atomic.Int64
	// compared counts answers about the mirror that were compared with those about the whole snapshot, wrong those that differed.
	compared, wrong atomic.Int64
}

// tally counts the decisions of one way to ask.
type tally struct {
	way             string
	decided, failed atomic.Int64
	// first is the first error.
	first atomic.Pointer[error]
}

func (t *tally) count(err error) {
	t.decided.Add(1)
	if err != nil {
		t.failed.Add(1)
		t.first.CompareAndSwap(nil, &err)
	}
}

// way is a way to ask: so many callers, each again and again after a pause. prepare returns what one caller asks.
type way struct {
	name    string
	callers int
	pause   time.Duration
	prepare func(ctx context.Context, d *disturbed) (ask func(context.Context) error, err error)
}

// The ways to ask. Clients of plain gRPC repeat nothing that a server may have seen. Messages that are large are above the buffer from
// which gRPC sends again by itself.
var (
	plainCalls = way{"plain gRPC", 8, 0, askPlainly}
	smallCalls = way{"calls", 16, 0, askSmall}
	largeCalls = way{"large calls", 3, 0, askLarge}
	sessions   = way{"sessions", 3, 20 * time.Millisecond, askInSession}
	mirrored   = way{"mirror", 3, 20 * time.Millisecond, askMirror}
)

// restarted restarts each of three servers in turn, as a rolling update does. They end in order, so clients of plain gRPC lose no call.
func restarted(ctx context.Context, t target) (finding, error) {
	return disturb(ctx, t, 20*time.Second, []way{plainCalls, mirrored}, func(d *disturbed) (string, bool, error) {
		for _, r := range d.servers {
			if err := r.End(); err != nil {
				return "", false, fmt.Errorf("a server did not end as it should: %w", err)
			}
			if err := again(ctx, r); err != nil {
				return "", false, err
			}
		}
		return fmt.Sprintf("%d restarts", len(d.servers)), true, nil
	})
}

// killed kills one server after the other, each for a second.
func killed(ctx context.Context, t target) (finding, error) {
	return disturb(ctx, t, 20*time.Second, []way{smallCalls, largeCalls, mirrored}, func(d *disturbed) (string, bool, error) {
		kills := scaled(3, t.scale)
		for i := range kills {
			r := d.servers[i%len(d.servers)]
			r.Kill()
			time.Sleep(time.Second)
			if err := again(ctx, r); err != nil {
				return "", false, err
			}
		}
		return fmt.Sprintf("%d kills", kills), true, nil
	})
}

// frozen stops one server after the other by SIGSTOP. Each is stopped once, so that those of the sessions and the mirror are among them.
// It compares the throughput some seconds after each stop with that before.
func frozen(ctx context.Context, t target) (finding, error) {
	const deadline, recovery, measured, thawed, least = 3 * time.Second, 5 * time.Second, 3 * time.Second, 3 * time.Second, 0.6
	return disturb(ctx, t, deadline, []way{smallCalls, sessions, mirrored}, func(d *disturbed) (string, bool, error) {
		throughput := func() float64 {
			calls := d.tallies[0]
			succeeded := func() int64 { return calls.decided.Load() - calls.failed.Load() }
			from := succeeded()
			time.Sleep(measured)
			return float64(succeeded()-from) / measured.Seconds()
		}
		var parts []float64
		for _, r := range d.servers {
			before := throughput()
			thaw := throttle(r.Process(), 0)
			time.Sleep(recovery)
			parts = append(parts, throughput()/before)
			thaw()
			time.Sleep(thawed)
		}
		// The median, because other programs on the machine disturb one or the other.
		part := sample.Median(parts)
		return fmt.Sprintf("throughput %.2f of that before, slowest answer %v", part,
			time.Duration(d.slowest.Load()).Round(time.Millisecond)), part >= least, nil
	})
}

// disturb asks three servers in some ways, with a deadline for each question, until do has disturbed them. No decision may fail.
func disturb(
	ctx context.Context, t target, deadline time.Duration, ways []way, do func(*disturbed) (measured string, held bool, err error),
) (f finding, err error) {
	d := &disturbed{small: client.Input{Snapshot: generate.Snapshot(fixture.Small()), Policy: client.VolcanoDefault()}}
	if d.servers, err = launch(ctx, t.binary, 3, nil, "--drain-delay", "500ms"); err != nil {
		return f, err
	}
	defer d.servers.kill()
	if d.asked, err = replica.Dial(d.servers); err != nil {
		return f, err
	}
	defer d.asked.Close() //nolint:errcheck // All questions are answered.
	if d.mirror, err = follow(d.asked, fixture.Small()); err != nil {
		return f, err
	}
	// Every server is known before the first one is disturbed.
	for range 20 * len(d.servers) {
		if err := d.shares(d.small)(ctx); err != nil {
			return f, err
		}
	}
	lasting, end := context.WithCancel(ctx)
	defer end()
	asking, enough := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer enough()
	for _, w := range ways {
		counted := &tally{way: w.name}
		d.tallies = append(d.tallies, counted)
		for range w.callers {
			ask, err := w.prepare(lasting, d)
			if err != nil {
				return f, err
			}
			group.Go(func() { d.repeat(asking, counted, deadline, w.pause, ask) })
		}
	}
	group.Go(func() { d.change(asking) })
	measured, held, err := do(d)
	enough()
	group.Wait()
	f.measured, f.held = d.sum()
	f.measured, f.held = measured+"; "+f.measured, f.held && held
	return f, err
}

// repeat asks again and again.
func (d *disturbed) repeat(ctx context.Context, t *tally, deadline, pause time.Duration, ask func(context.Context) error) {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
		began := time.Now()
		err := ask(within)
		cancel()
		t.count(err)
		for took := int64(time.Since(began)); took > d.slowest.Load(); {
			d.slowest.Store(took)
		}
		time.Sleep(pause)
	}
}

// sum says how many decisions failed, and what became of the mirror; held says that none failed and none was wrong.
func (d *disturbed) sum() (text string, held bool) {
	held = d.wrong.Load() == 0
	var parts []string
	for _, t := range d.tallies {
		part := fmt.Sprintf("%s: %d of %d failed", t.way, t.failed.Load(), t.decided.Load())
		if first := t.first.Load(); first != nil {
			part, held = fmt.Sprintf("%s (%v)", part, *first), false
		}
		parts = append(parts, part)
	}
	sent := d.mirror.mirror.Sent()
	return fmt.Sprintf("%s; %d answers about the mirror compared, %d wrong, %d states sent as a change, %d whole, %d with the question",
		strings.Join(parts, "; "), d.compared.Load(), d.wrong.Load(), sent.Changes, sent.Wholes, sent.Inline), held
}

// shares asks for the shares of an input.
func (d *disturbed) shares(in client.Input) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := d.asked.Shares(ctx, in, client.SharesQuestion{})
		return err
	}
}

func askSmall(_ context.Context, d *disturbed) (func(context.Context) error, error) {
	return d.shares(d.small), nil
}

// askPlainly asks by gRPC alone, with the connections that its round robin keeps.
func askPlainly(ctx context.Context, d *disturbed) (func(context.Context) error, error) {
	small, err := smallQuestion()
	if err != nil {
		return nil, err
	}
	addresses, state := manual.NewBuilderWithScheme("plain"), resolver.State{}
	for _, r := range d.servers {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: r.Address})
	}
	addresses.InitialState(state)
	conn, err := grpc.NewClient("plain:///", grpc.WithResolvers(addresses), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return func(ctx context.Context) error { return call(ctx, conn, small) }, nil
}

func askLarge(_ context.Context, d *disturbed) (func(context.Context) error, error) {
	const retryBuffer = 256 << 10
	shape := fixture.Small()
	shape.Jobs, shape.Tasks = 10*shape.Jobs, 20*shape.Tasks
	in := client.Input{Snapshot: generate.Snapshot(shape), Policy: client.VolcanoDefault()}
	if size := proto.Size(in.Snapshot); size < 2*retryBuffer {
		return nil, fmt.Errorf("a message of %d bytes is no larger than what gRPC repeats by itself", size)
	}
	return d.shares(in), nil
}

func askInSession(ctx context.Context, d *disturbed) (func(context.Context) error, error) {
	session, err := d.asked.OpenSession(ctx, d.small)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := session.Do(ctx, &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
		return err
	}, nil
}

// askMirror asks about a mirror, and compares every twentieth answer with that about the whole snapshot.
func askMirror(_ context.Context, d *disturbed) (func(context.Context) error, error) {
	n := 0
	return func(ctx context.Context) error {
		state := d.mirror.mirror.State()
		got, err := d.asked.Shares(ctx, client.Input{State: state, Policy: d.mirror.policy}, client.SharesQuestion{})
		if n++; err != nil || n%20 != 0 {
			return err
		}
		whole := client.Input{Snapshot: state.Snapshot(), Policy: d.mirror.policy}
		want, err := client.InProcess().Shares(ctx, whole, client.SharesQuestion{})
		if err != nil {
			return err
		}
		d.compared.Add(1)
		// Nothing is removed from this mirror, so that positions agree too.
		if !proto.Equal(got.Answer, want.Answer) {
			d.wrong.Add(1)
		}
		return nil
	}, nil
}

// change changes the mirror until no one asks any more.
func (d *disturbed) change(ctx context.Context) {
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // G404: only to vary changes.
	for ctx.Err() == nil {
		if err := d.mirror.change(random); err != nil {
			d.wrong.Add(1)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
