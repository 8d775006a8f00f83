package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// killing contains the results of the questions while replicas were killed.
type killing struct {
	kills, largeBytes int
	small, large      tally
	// attempts counts calls of gRPC, of which several may make one decision.
	attempts atomic.Int64
}

// tally counts decisions.
type tally struct {
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

func (k *killing) decided() int64 { return k.small.decided.Load() + k.large.decided.Load() }

func (k *killing) print(line *sample.Line) {
	repeated := k.attempts.Load() - k.decided()
	fmt.Printf("one of three replicas killed, %d times: %d decisions, %d failed; of these %d with a message of %d bytes, %d failed; "+
		"%d calls were repeated\n", k.kills, k.decided(), k.small.failed.Load()+k.large.failed.Load(),
		k.large.decided.Load(), k.largeBytes, k.large.failed.Load(), repeated)
	line.Add("kills", float64(k.kills))
	line.Add("kill_decisions", float64(k.decided()))
	line.Add("kill_failed", float64(k.small.failed.Load()+k.large.failed.Load()))
	line.Add("kill_large_decisions", float64(k.large.decided.Load()))
	line.Add("kill_large_bytes", float64(k.largeBytes))
	line.Add("kill_repeated_calls", float64(repeated))
}

func (k *killing) fault() error {
	for _, t := range []*tally{&k.small, &k.large} {
		if err := t.first.Load(); err != nil {
			return fmt.Errorf("%w: %w", errFailed, *err)
		}
	}
	return nil
}

// attempted counts each call that gRPC is asked to make.
func (k *killing) attempted(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	k.attempts.Add(1)
	return invoke(ctx, method, request, reply, conn, options...)
}

// killOneByOne kills and restarts one replica after the other, while decisions are requested.
func killOneByOne(ctx context.Context, s *setting, replicas []*replica.Replica) (*killing, error) {
	const callers, retryBuffer = 3, 256 << 10
	k := &killing{kills: s.kills}
	asked, err := replica.Dial(replicas, grpc.WithUnaryInterceptor(k.attempted))
	if err != nil {
		return nil, err
	}
	defer asked.Close() //nolint:errcheck // All questions are answered.
	small := client.Input{Snapshot: generate.Snapshot(fixture.Small()), Policy: client.VolcanoDefault()}
	shape := fixture.Small()
	shape.Jobs, shape.Tasks, shape.UIDs = 10*shape.Jobs, 20*shape.Tasks, true
	large := client.Input{Snapshot: generate.Snapshot(shape), Policy: client.VolcanoDefault()}
	if k.largeBytes = proto.Size(large.Snapshot); k.largeBytes < 2*retryBuffer {
		return nil, fmt.Errorf("a message of %d bytes is no larger than what gRPC repeats by itself", k.largeBytes)
	}
	asking, enough := context.WithCancel(ctx)
	var group sync.WaitGroup
	ask := func(in client.Input, t *tally) {
		group.Go(func() {
			for asking.Err() == nil {
				_, err := asked.Shares(ctx, in, client.SharesQuestion{})
				t.count(err)
			}
		})
	}
	for range callers {
		ask(small, &k.small)
		ask(large, &k.large)
	}
	time.Sleep(time.Second)
	for i := range s.kills {
		r := replicas[i%len(replicas)]
		r.Kill()
		time.Sleep(time.Second)
		if err = r.Start(ctx); err == nil {
			err = r.Ready(ctx)
		}
		if err == nil {
			err = used(ctx, r)
		}
		if err != nil {
			break
		}
	}
	enough()
	group.Wait()
	return k, err
}
