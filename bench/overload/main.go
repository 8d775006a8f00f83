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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

var (
	jobs     = flag.Int("jobs", 400, "jobs of 20 tasks in the snapshot of each call")
	duration = flag.Duration("duration", 4*time.Second, "how long each rate is kept up")
	deadline = flag.Duration("deadline", time.Second, "deadline of a call; an answer after it counts for nothing")
	serve    = flag.String("serve", "", "used by the program itself: serve on this address")
	limit    = flag.Int64("memory", 256<<20, "memory for the calls that are worked on")
)

func main() {
	flag.Parse()
	var err error
	if *serve != "" {
		err = runServer(*serve)
	} else {
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runServer(address string) error {
	s, err := service.New(service.Options{Overload: service.Overload{Memory: *limit}})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return service.NewServer(s, service.ServerOptions{NoReflection: true}).Serve(context.Background(), listener)
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
	peak := closedLoop(clients)
	fmt.Printf("%s/%s, %d processors; %d bytes a call; %.0f calls/s by a closed loop of %d callers\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), len(payload), peak, 2*runtime.NumCPU())
	fmt.Println("| load | offered/s | good/s | of peak | refused/s | late/s | p50 | p99 | memory MiB |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	best, last := 0.0, 0.0
	for _, factor := range []float64{0.5, 0.8, 1, 2, 5, 10} {
		r := openLoop(clients, peak*factor)
		best, last = max(best, r.good), r.good
		fmt.Printf("| %gx | %.0f | %.0f | %.0f %% | %.0f | %.0f | %v | %v | %d |\n",
			factor, r.offered, r.good, 100*r.good/best, r.refused, r.late,
			r.latency(50), r.latency(99), server.peakMemory()>>20)
	}
	fmt.Printf("goodput at 10x is %.0f %% of its peak\n", 100*last/best)
	if last < 0.9*best {
		fmt.Fprintln(os.Stderr, "below 90 %")
	}
	return nil
}

// closedLoop returns the calls a second of as many callers as keep all processors busy.
func closedLoop(clients []apportionv1.ApportionServiceClient) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), *duration)
	defer cancel()
	var done atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range 2 * runtime.NumCPU() {
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

// openLoop offers calls at a rate, at random moments, and counts what became of them.
func openLoop(clients []apportionv1.ApportionServiceClient, rate float64) *result {
	r := &result{}
	var all sync.WaitGroup
	began := time.Now()
	next, n := began, 0
	for ; time.Since(began) < *duration; n++ {
		next = next.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second))) //nolint:gosec // G404: arrivals, no secrets.
		time.Sleep(time.Until(next))
		all.Go(func() { r.call(clients[n%len(clients)]) })
	}
	sent := time.Since(began).Seconds()
	all.Wait()
	r.offered = float64(n) / sent
	r.good, r.refused, r.late = float64(len(r.took))/sent, float64(r.refusals)/sent, float64(r.misses)/sent
	return r
}

func (r *result) call(client apportionv1.ApportionServiceClient) {
	ctx, cancel := context.WithTimeout(context.Background(), *deadline)
	defer cancel()
	began := time.Now()
	_, err := client.EvaluateShares(ctx, nil)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch status.Code(err) {
	case codes.OK:
		r.took = append(r.took, time.Since(began))
	case codes.ResourceExhausted:
		r.refusals++
	default:
		r.misses++
	}
}
