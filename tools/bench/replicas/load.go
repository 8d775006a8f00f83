package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/test/replica"
)

// caller asks one question repeatedly.
type caller struct {
	client *client.Client
	input  client.Input
}

// dialOne connects to one address, of a replica or of a proxy. The proxy asks the replicas for their health: a client behind it would hear
// of that replica alone which its question reached, and take it for all.
func dialOne(address string) (*caller, error) {
	return newCaller(dialProxy(address))
}

func dialProxy(address string) (*client.Client, error) {
	return client.Dial(address, client.WithPlaintext(), client.WithDialOptions(grpc.WithDisableHealthCheck()))
}

// dialAll connects to every replica.
func dialAll(c *cluster) (*caller, error) {
	return newCaller(replica.Dial(c.replicas))
}

func newCaller(asked *client.Client, err error) (*caller, error) {
	if err != nil {
		return nil, err
	}
	snapshot := client.NewSnapshot()
	for i := range 50 {
		snapshot.Node(client.Node{Name: fmt.Sprintf("n%d", i), Allocatable: client.Resources{"cpu": "64", "memory": "256Gi"}})
	}
	for q := range 10 {
		snapshot.Queue(client.Queue{Name: fmt.Sprintf("q%d", q), Weight: uint32(1 + q)})
		for j := range 20 {
			snapshot.Job(client.Job{
				Name: fmt.Sprintf("j%d-%d", q, j), Queue: fmt.Sprintf("q%d", q), MinAvailable: 2,
				Groups: []client.Group{{Request: client.Resources{"cpu": "2", "memory": "4Gi"}, Pending: 2, Running: 3}},
			})
		}
	}
	built, err := snapshot.Build()
	if err != nil {
		return nil, err
	}
	return &caller{client: asked, input: client.Input{Snapshot: built, Policy: client.VolcanoDefault()}}, nil
}

// result contains the results of the calls.
type result struct {
	// took contains the durations of the answered calls, shortest first.
	took   []time.Duration
	failed int
}

func (r *result) quantile(part float64) float64 {
	if len(r.took) == 0 {
		return 0
	}
	return float64(r.took[min(len(r.took)-1, int(part*float64(len(r.took))))]) / float64(time.Millisecond)
}

// load keeps a number of calls under way for a time. half, if not nil, is called after half of the time. The error is the first of a call.
func (c *caller) load(ctx context.Context, workers int, span time.Duration, half func() error) (*result, error) {
	var (
		mutex sync.Mutex
		group sync.WaitGroup
		all   result
		first error
	)
	end := time.Now().Add(span)
	for range workers {
		group.Go(func() {
			var took []time.Duration
			failed := 0
			for ctx.Err() == nil && time.Now().Before(end) {
				began := time.Now()
				if _, err := c.client.Shares(ctx, c.input, client.SharesQuestion{}); err != nil {
					failed++
					mutex.Lock()
					first = cmp.Or(first, err)
					mutex.Unlock()
					continue
				}
				took = append(took, time.Since(began))
			}
			mutex.Lock()
			defer mutex.Unlock()
			all.took, all.failed = append(all.took, took...), all.failed+failed
		})
	}
	var err error
	if half != nil {
		time.Sleep(span / 2)
		err = half()
	}
	group.Wait()
	slices.Sort(all.took)
	return &all, cmp.Or(err, first)
}
