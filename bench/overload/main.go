// Command overload shows what a service does when more is asked of it than it can do: an open loop sends calls at a fixed rate, whether
// earlier ones were answered or not, at the sustainable rate and at multiples of it.
//
//	go run ./bench/overload
package main

import (
	"context"
	"errors"
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

	"github.com/apportion/apportion/bench/internal/sample"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

var (
	jobs     = flag.Int("jobs", 5000, "jobs of 20 tasks in the snapshot of each call")
	duration = flag.Duration("duration", 6*time.Second, "how long each rate is kept up")
	deadline = flag.Duration("deadline", time.Second, "deadline of a call; an answer after it counts for nothing")
	serve    = flag.String("serve", "", "used by the program itself: serve on this address")
	apart    = flag.Bool("apart", true, "give the server a processor of its own, and the generator the others")
)

// What the server may take: work, messages, and for each call what is not booked, besides what it takes with nothing to do.
const (
	work, receiving, calls = 96 << 20, 96 << 20, 512
	perCall, empty         = 128 << 10, 32 << 20
	bound                  = work + receiving + calls*perCall + empty
	enough, most           = 0.9, 10
)

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
	s, err := service.New(service.Options{Overload: service.Overload{Memory: work, Receiving: receiving, Calls: calls}})
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
	sustainable := max(closedLoop(clients), closedLoop(clients), closedLoop(clients))
	fmt.Printf("%s/%s, a server on one processor, apart from the generator: %t; %d bytes a call; "+
		"%.0f calls/s by a closed loop of %d callers\n\n", runtime.GOOS, runtime.GOARCH, pinned(), len(payload), sustainable, callers)
	table := sample.NewTable("load", "offered/s", "good/s", "of peak", "refused/s", "late/s", "p50 ms", "p99 ms", "good per CPU s",
		"peak memory MiB")
	best, last, bestOfCPU, lastOfCPU := 0.0, 0.0, 0.0, 0.0
	for _, factor := range []float64{0.5, 0.8, 1, 2, 5, most} {
		before := server.cpu()
		r := openLoop(clients, sustainable*factor)
		best, last = max(best, r.good), r.good
		lastOfCPU = float64(len(r.took)) / max(server.cpu()-before, 1e-9)
		bestOfCPU = max(bestOfCPU, lastOfCPU)
		table.Add(fmt.Sprintf("%gx", factor), r.offered, r.good, fmt.Sprintf("%.0f %%", 100*r.good/best), r.refused, r.late,
			sample.Milliseconds(r.took.Quantile(0.5)), sample.Milliseconds(r.took.Quantile(0.99)), lastOfCPU, server.peakMemory()>>20)
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	line := sample.NewLine("show-overload")
	line.Add("sustainable_per_s", sustainable)
	line.Add("peak_good_per_s", best)
	line.Add("good_at_10x_per_s", last)
	line.Add("good_at_10x_of_peak", last/best)
	line.Add("good_at_10x_of_peak_by_cpu", lastOfCPU/bestOfCPU)
	line.Add("peak_memory_mib", float64(server.peakMemory()>>20))
	line.Add("memory_bound_mib", bound>>20)
	fmt.Printf("\n%s\n", line)
	if last < enough*best || server.peakMemory() > bound {
		return errShort
	}
	return nil
}

var errShort = errors.New("goodput fell below 90 % of its peak, or memory rose above its bound")

// callers keep the server's processor busy, and no more.
const callers = 4

// closedLoop returns the calls a second of as many callers as keep all processors busy.
func closedLoop(clients []apportionv1.ApportionServiceClient) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), *duration/2)
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
