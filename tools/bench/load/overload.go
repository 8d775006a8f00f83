package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// pressure is an open loop that sends calls at a fixed rate, whether earlier ones were answered or not, at the sustainable rate and at
// multiples of it.
type pressure struct {
	binary             string
	jobs, rounds       int
	duration, deadline time.Duration
	// factors of the sustainable rate. The result at the last one decides.
	factors []float64
	// conns are used in turn; payload is the request, encoded once: the generator must not be what is overloaded.
	conns   []*grpc.ClientConn
	payload floor.Bytes
}

// sum is the memory for work, for messages, for what is not booked of each call, and for a server with nothing to do. It is Go's memory
// limit, which does not count the pages of the program and its libraries; bound counts them too, as a container does.
const (
	sum   = memory + receiving + calls*perCall + empty
	bound = sum + program

	memory, receiving, calls = 96 << 20, 96 << 20, 512
	perCall, empty           = 128 << 10, 32 << 20
	program                  = 20 << 20

	enough  = 0.9
	warming = 400 * time.Millisecond
)

// question holds its snapshot, the form of request that costs the server most to read.
func (p *pressure) question() *apportionv1.EvaluateSharesRequest {
	snapshot := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: amounts(1e6, 1e12)}},
	}
	for q := range 10 {
		snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: "q" + strconv.Itoa(q)})
	}
	for j := range p.jobs {
		group := &apportionv1.TaskGroup{Role: "worker", Request: amounts(1000, 1<<30)}
		for k := range 20 {
			group.Tasks = append(group.Tasks, &apportionv1.Task{Uid: fmt.Sprintf("job-%d-task-%d", j, k)})
		}
		snapshot.Jobs = append(snapshot.Jobs, &apportionv1.Job{
			Uid: "job-" + strconv.Itoa(j), Queue: "q" + strconv.Itoa(j%10), Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE,
			Groups: []*apportionv1.TaskGroup{group},
		})
	}
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}},
		{Plugin: &apportionv1.Plugin_Drf{Drf: &apportionv1.Drf{}}},
	}}}}
	return &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy},
	}}
}

func amounts(cpu, memory float64) *apportionv1.Resource {
	return &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{cpu, memory}}
}

func (p *pressure) run(ctx context.Context) error {
	servers, err := launchBounded(ctx, p.binary)
	if err != nil {
		return err
	}
	defer servers.kill()
	pid := servers[0].Process().Pid
	for range 8 {
		conn, err := dial(servers[0].Address, 1)
		if err != nil {
			return err
		}
		//nolint:errcheck,gocritic,revive // All stay open until the end.
		defer conn.Close()
		p.conns = append(p.conns, conn)
	}
	if p.payload, err = proto.Marshal(p.question()); err != nil {
		return err
	}
	fmt.Printf("%s/%s, a server on one processor, apart from the generator: %t; %d bytes a call; %d rounds of %v for each rate\n\n",
		runtime.GOOS, runtime.GOARCH, pinned(), len(p.payload), p.rounds, p.duration)
	loads, sustainable := make([]load, len(p.factors)), 0.0
	for range p.rounds {
		// On a machine that is busy with other things no call may be answered in a round.
		now := max(p.closedLoop(ctx), 1)
		sustainable += now / float64(p.rounds)
		for i, factor := range p.factors {
			loads[i].factor = factor
			loads[i].add(p.openLoop(ctx, pid, now*factor))
		}
	}
	return goodput(loads, sustainable, peer.Peak(pid))
}

// ask makes the nth call.
func (p *pressure) ask(ctx context.Context, n int) error {
	var answer floor.Bytes
	return p.conns[n%len(p.conns)].Invoke(ctx, apportionv1.DecisionService_EvaluateShares_FullMethodName, &p.payload, &answer,
		grpc.ForceCodecV2(floor.Codec{}))
}

// callers is the number of concurrent callers that keeps the server's processor busy.
const callers = 4

// closedLoop returns the calls a second of as many callers as keep all processors busy.
func (p *pressure) closedLoop(ctx context.Context) float64 {
	ctx, cancel := context.WithTimeout(ctx, p.duration)
	defer cancel()
	var done atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if p.ask(ctx, i) == nil {
					done.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

// openLoop offers calls at a rate, at random moments, and counts what becomes of them once the queues are as full as they get: the calls
// that are answered, refused or late from then on, for the time of a round.
func (p *pressure) openLoop(ctx context.Context, pid int, rate float64) *result {
	r := &result{from: time.Now().Add(warming)}
	r.until = r.from.Add(p.duration)
	var all sync.WaitGroup
	next, n, used, had := time.Now(), 0, 0.0, 0.0
	for ; time.Now().Before(r.until); n++ {
		next = next.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second))) //nolint:gosec // G404: arrivals, no secrets.
		time.Sleep(time.Until(next))
		if used == 0 && !time.Now().Before(r.from) {
			used, had = processorTime(pid), granted(pid)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, p.deadline)
			defer cancel()
			began := time.Now()
			r.note(status.Code(p.ask(ctx, n)), began, time.Now())
		})
	}
	r.cpu = processorTime(pid) - used
	r.seconds = time.Since(r.from).Seconds()
	if pinned() && had > 0 {
		r.seconds = granted(pid) - had
	}
	all.Wait()
	return r
}
