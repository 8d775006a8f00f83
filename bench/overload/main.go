// Command overload shows what a service does when more is asked of it than it can do: an open loop sends calls at a fixed rate, whether
// earlier ones were answered or not, at the sustainable rate and at multiples of it.
//
//	go run ./bench/overload
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

var (
	jobs     = flag.Int("jobs", 5000, "jobs of 20 tasks in the snapshot of each call")
	duration = flag.Duration("duration", time.Second, "how long a rate is measured at a time")
	rounds   = flag.Int("rounds", 12, "how often all rates are gone through")
	deadline = flag.Duration("deadline", time.Second, "deadline of a call; an answer after it counts for nothing")
	serve    = flag.String("serve", "", "used by the program itself: serve on this address")
	apart    = flag.Bool("apart", true, "give the server a processor of its own, and the generator the others")
)

// What the server may take: work, messages, and for each call what is not booked, besides what it takes with nothing to do.
const (
	work, receiving, calls = 96 << 20, 96 << 20, 512
	perCall, empty         = 128 << 10, 32 << 20
	bound                  = work + receiving + calls*perCall + empty
	enough                 = 0.9
	warming                = 400 * time.Millisecond
)

// factors of the sustainable rate, the last of which is what counts.
var factors = []float64{0.5, 0.8, 1, 2, 5, 10}

func main() {
	flag.Parse()
	var err error
	switch {
	case *serve != "":
		err = runServer(*serve)
	case *apart && alone():
		err = keepOff()
	default:
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runServer(address string) error {
	s, err := service.New(service.Options{
		Overload: service.Overload{Memory: work, Receiving: receiving, Calls: calls}, NoReflection: true,
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return s.Serve(context.Background(), listener)
}

// question is about a snapshot in the request itself, which costs most to take in.
func question() *apportionv1.EvaluateSharesRequest {
	snapshot := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: amounts(1e6, 1e12)}},
	}
	for q := range 10 {
		snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: "q" + strconv.Itoa(q)})
	}
	for j := range *jobs {
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
	return &apportionv1.Resource{Dimension: []uint32{0, 1}, Amount: []float64{cpu, memory}}
}

func run() error {
	server, address, err := startServer()
	if err != nil {
		return err
	}
	defer server.end()
	var clients []apportionv1.ApportionServiceClient
	for range 8 {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(fixed{})))
		if err != nil {
			return err
		}
		//nolint:errcheck,gocritic,revive // All stay open until the end.
		defer conn.Close()
		clients = append(clients, apportionv1.NewApportionServiceClient(conn))
	}
	if err := encode(question()); err != nil {
		return err
	}
	fmt.Printf("%s/%s, a server on one processor, apart from the generator: %t; %d bytes a call; %d rounds of %v for each rate\n\n",
		runtime.GOOS, runtime.GOARCH, pinned(), len(payload), *rounds, *duration)
	loads, sustainable := make([]load, len(factors)), 0.0
	for range *rounds {
		now := closedLoop(clients)
		sustainable += now / float64(*rounds)
		for i, factor := range factors {
			loads[i].add(openLoop(clients, server, now*factor))
		}
	}
	return report(loads, sustainable, server.peakMemory())
}

// callers keep the server's processor busy, and no more.
const callers = 4

// closedLoop returns the calls a second of as many callers as keep all processors busy.
func closedLoop(clients []apportionv1.ApportionServiceClient) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), *duration)
	defer cancel()
	var done atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := clients[i%len(clients)].EvaluateShares(ctx, nil); err == nil {
					done.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

// openLoop offers calls at a rate, at random moments, and counts what becomes of them once the queues are as full as they get: what is
// answered, refused or late from then on, for as long as a round of one rate takes.
func openLoop(clients []apportionv1.ApportionServiceClient, server *process, rate float64) *result {
	r := &result{from: time.Now().Add(warming)}
	r.until = r.from.Add(*duration)
	var all sync.WaitGroup
	next, n, cpu := time.Now(), 0, 0.0
	for ; time.Now().Before(r.until); n++ {
		next = next.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second))) //nolint:gosec // G404: arrivals, no secrets.
		time.Sleep(time.Until(next))
		if cpu == 0 && !time.Now().Before(r.from) {
			cpu = server.cpu()
		}
		all.Go(func() { r.call(clients[n%len(clients)]) })
	}
	r.cpu = server.cpu() - cpu
	all.Wait()
	return r
}

func (r *result) call(client apportionv1.ApportionServiceClient) {
	ctx, cancel := context.WithTimeout(context.Background(), *deadline)
	defer cancel()
	began := time.Now()
	_, err := client.EvaluateShares(ctx, nil)
	r.note(status.Code(err), began, time.Now())
}
