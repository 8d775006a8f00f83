package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

const (
	// frozenDeadline is the deadline of each question while a replica is stopped; recovery is the time after which the throughput is
	// measured again, and thawed the time that the replica has to work again.
	frozenDeadline = 3 * time.Second
	recovery       = 5 * time.Second
	thawed         = 3 * time.Second
	// leastThroughput is the part of the throughput before that must be reached then.
	leastThroughput = 0.6
	freezeMeasured  = 3 * time.Second
)

// freeze stops one of three replicas after the other by SIGSTOP while calls, sessions and a mirror are asked. Each replica is stopped once,
// so that those of the sessions and the mirror are among them.
func freeze(ctx context.Context, s *setting) error {
	fmt.Printf("%-36s  %-26s  %-34s  %s\n", "ATTACK", "BOUND", "MEASURED", "RESULT")
	return withReplicas(ctx, s, func(replicas []*replica.Replica) error {
		f, err := newFreezing(ctx, s, replicas)
		if err != nil {
			return err
		}
		defer f.asked.Close() //nolint:errcheck // All questions are answered.
		err = f.run(ctx, replicas)
		return errors.Join(err, f.print())
	})
}

// freezing contains the results of the questions while replicas were stopped.
type freezing struct {
	asked                    *client.Client
	in                       client.Input
	workers                  int
	calls, sessions, mirrors tally
	slowest                  atomic.Int64
	// parts are the throughputs after the recovery, each as a part of that just before.
	parts []float64
}

func newFreezing(ctx context.Context, s *setting, replicas []*replica.Replica) (*freezing, error) {
	asked, err := replica.Dial(replicas)
	if err != nil {
		return nil, err
	}
	c, err := newCaller(asked, nil)
	if err != nil {
		return nil, errors.Join(err, asked.Close())
	}
	f := &freezing{asked: asked, in: c.input, workers: s.workers}
	// Every replica is known before the first one is stopped.
	for range 20 * len(replicas) {
		if _, err := asked.Shares(ctx, f.in, client.SharesQuestion{}); err != nil {
			return nil, errors.Join(err, asked.Close())
		}
	}
	return f, nil
}

// run asks until each replica was stopped.
func (f *freezing) run(ctx context.Context, replicas []*replica.Replica) error {
	asking, enough := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer enough()
	mirror := client.NewMirror(f.asked)
	if err := mirror.Replace(f.in.Snapshot); err != nil {
		return err
	}
	mirrored := client.Input{State: mirror.State(), Policy: f.in.Policy}
	for range f.workers {
		group.Go(func() {
			f.repeat(asking, &f.calls, 0, func(ctx context.Context) error {
				_, err := f.asked.Shares(ctx, f.in, client.SharesQuestion{})
				return err
			})
		})
	}
	group.Go(func() {
		f.repeat(asking, &f.mirrors, 20*time.Millisecond, func(ctx context.Context) error {
			_, err := f.asked.Shares(ctx, mirrored, client.SharesQuestion{})
			return err
		})
	})
	for range replicas {
		session, err := f.asked.OpenSession(ctx, f.in)
		if err != nil {
			return err
		}
		group.Go(func() {
			f.repeat(asking, &f.sessions, 20*time.Millisecond, func(ctx context.Context) error {
				_, err := session.Do(ctx, &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
				return err
			})
			_ = session.Close()
		})
	}
	for _, r := range replicas {
		before := f.throughput()
		thaw := hold(r.Process(), 0)
		time.Sleep(recovery)
		f.parts = append(f.parts, f.throughput()/before)
		thaw()
		time.Sleep(thawed)
	}
	return ctx.Err()
}

// repeat asks again and again, with a deadline for each question.
func (f *freezing) repeat(ctx context.Context, t *tally, pause time.Duration, ask func(context.Context) error) {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), frozenDeadline)
		began := time.Now()
		err := ask(within)
		cancel()
		t.count(err)
		for took := int64(time.Since(began)); took > f.slowest.Load(); {
			f.slowest.Store(took)
		}
		time.Sleep(pause)
	}
}

// throughput returns the number of calls per second that succeed.
func (f *freezing) throughput() float64 {
	succeeded := func() int64 { return f.calls.decided.Load() - f.calls.failed.Load() }
	from := succeeded()
	time.Sleep(freezeMeasured)
	return float64(succeeded()-from) / freezeMeasured.Seconds()
}

// print prints a line for each kind of question, and returns an error if a bound was broken.
func (f *freezing) print() error {
	line := sample.NewLine("show-freeze")
	var broken error
	row := func(attack, bound, measured string, held bool, fault error) {
		result := "held"
		if !held {
			result, broken = "broke", cmp.Or(broken, fault)
		}
		fmt.Printf("%-36s  %-26s  %-34s  %s\n", attack, bound, measured, result)
	}
	for _, kind := range []struct {
		name string
		*tally
	}{{"calls", &f.calls}, {"sessions", &f.sessions}, {"mirror", &f.mirrors}} {
		failed := kind.failed.Load()
		fault := errFailed
		if first := kind.first.Load(); first != nil {
			fault = fmt.Errorf("%w: %s: %w", errFailed, kind.name, *first)
		}
		row("SIGSTOP of one of three: "+kind.name, fmt.Sprintf("0 fail in %s", frozenDeadline),
			fmt.Sprintf("%d of %d failed", failed, kind.decided.Load()), failed == 0, fault)
		line.Add("freeze_"+kind.name+"_decisions", float64(kind.decided.Load()))
		line.Add("freeze_"+kind.name+"_failed", float64(failed))
	}
	slices.Sort(f.parts)
	part := 0.0
	if n := len(f.parts); n > 0 {
		// The median, because other programs on the machine disturb one or the other.
		part = f.parts[n/2]
	}
	row("SIGSTOP of one of three: throughput", fmt.Sprintf("at least %.0f %% after %s", 100*leastThroughput, recovery),
		fmt.Sprintf("%.0f %%; slowest answer %s", 100*part, time.Duration(f.slowest.Load()).Round(time.Millisecond)),
		part >= leastThroughput, errors.New("the throughput did not recover"))
	line.Add("freeze_throughput", part)
	fmt.Printf("\n%s\n", line)
	return broken
}
