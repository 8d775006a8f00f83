package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// balancing compares ways to reach several servers.
type balancing struct {
	binary, proxy string
	span          time.Duration
	workers       int
	// share is the part of a processor that each server gets.
	share float64
}

// serverWays are the ways.
var serverWays = []struct {
	name string
	dial func(*proxied) (*client.Client, error)
}{
	{"client-side round robin", func(c *proxied) (*client.Client, error) { return replica.Dial(c.servers) }},
	{"HAProxy, HTTP/2", func(c *proxied) (*client.Client, error) { return dialProxy(c.calls) }},
	{"HAProxy, TCP only", func(c *proxied) (*client.Client, error) { return dialProxy(c.connections) }},
}

// dialProxy connects to the address of a proxy. It asks the servers for their health: a client behind it would hear of that server alone
// which its question reached, and take it for all.
func dialProxy(address string) (*client.Client, error) {
	return client.Dial(address, client.WithPlaintext(), client.WithDialOptions(grpc.WithDisableHealthCheck()))
}

// balance shows one, two and three servers behind a proxy that understands HTTP/2, behind one that does not, and behind a client that
// balances by itself: throughput, latency, how many of the calls each server got, and what a server's leaving costs.
func balance(ctx context.Context, b balancing) error {
	fmt.Printf("%s/%s, %d processors for servers, proxy and client together; a server runs for %g of the time; %d calls at a time\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), b.share, b.workers)
	table := sample.NewTable("way", "replicas", "leave", "calls/s", "p50 ms", "p99 ms", "server ms/call", "failed", "calls by replica")
	for _, way := range serverWays {
		for servers := 1; servers <= 3; servers++ {
			if err := b.measure(ctx, table, way.name, way.dial, servers, false); err != nil {
				return err
			}
		}
	}
	// One of three gets a SIGTERM half-way.
	for _, way := range serverWays[:2] {
		if err := b.measure(ctx, table, way.name, way.dial, 3, true); err != nil {
			return err
		}
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	return mirrors(ctx, b)
}

// measure measures a number of servers in one way, and adds a row.
func (b balancing) measure(
	ctx context.Context, table *sample.Table, name string, dial func(*proxied) (*client.Client, error), servers int, leave bool,
) (err error) {
	c, err := b.start(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	asked, err := dial(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asked.Close()) }()
	if _, err := b.ask(ctx, asked, time.Second, nil); err != nil {
		return fmt.Errorf("%s, warming up: %w", name, err)
	}
	computed, err := c.computed(ctx)
	if err != nil {
		return err
	}
	release := c.hold(b.share)
	defer release()
	before, err := c.answered(ctx)
	if err != nil {
		return err
	}
	var half func() error
	left := 0
	if leave {
		half, left = c.leave, 1
	}
	calls, err := b.ask(ctx, asked, b.span, half)
	if err != nil && !leave {
		return fmt.Errorf("%s: %w", name, err)
	}
	release()
	after, err := c.answered(ctx)
	if err != nil {
		return err
	}
	worked, err := c.computed(ctx)
	if err != nil {
		return err
	}
	perCall := any(sample.Milliseconds(worked-computed) / float64(len(calls.times)))
	if leave {
		perCall = ""
	}
	var parts []string
	for i := range after {
		if after[i] < before[i] {
			parts = append(parts, "(left)")
			continue
		}
		parts = append(parts, fmt.Sprint(after[i]-before[i]))
	}
	table.Add(name, servers, left, float64(len(calls.times))/b.span.Seconds(), calls.percentile(0.5), calls.percentile(0.99), perCall,
		calls.failed, strings.Join(parts, " "))
	return nil
}

// ask keeps a number of calls under way for a time. half, if not nil, is called after half of the time. The error is the first of a call.
func (b balancing) ask(ctx context.Context, asked *client.Client, span time.Duration, half func() error) (*latencies, error) {
	in := client.Input{Snapshot: generate.Snapshot(fixture.Small()), Policy: client.VolcanoDefault()}
	var mutex sync.Mutex
	var group sync.WaitGroup
	all := &latencies{}
	end := time.Now().Add(span)
	for range b.workers {
		group.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				began := time.Now()
				_, err := asked.Shares(ctx, in, client.SharesQuestion{})
				mutex.Lock()
				all.add(began, err)
				mutex.Unlock()
			}
		})
	}
	var err error
	if half != nil {
		time.Sleep(span / 2)
		err = half()
	}
	group.Wait()
	return all, cmp.Or(err, all.fault)
}
