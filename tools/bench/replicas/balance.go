package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// ways to reach the replicas.
var ways = []struct {
	name string
	dial func(*cluster) (*caller, error)
}{
	{"client-side round robin", dialAll},
	{"HAProxy, HTTP/2", func(c *cluster) (*caller, error) { return dialOne(c.proxied) }},
	{"HAProxy, TCP only", func(c *cluster) (*caller, error) { return dialOne(c.connected) }},
}

var columns = []string{"way", "replicas", "calls/s", "p50 ms", "p99 ms", "server ms/call", "failed", "calls by replica"}

// balance shows one, two and three servers behind a proxy that understands HTTP/2, behind one that does not, and behind a client
// that balances by itself: throughput, latency, how many of the calls each replica got, and what a replica's leaving costs.
func balance(ctx context.Context, s *setting) error {
	fmt.Printf("%s/%s, %d processors for servers, proxy and client together; a server runs for %g of the time; %d calls at a time\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.share, s.workers)
	table := sample.NewTable(columns...)
	for _, way := range ways {
		for replicas := 1; replicas <= 3; replicas++ {
			if err := one(ctx, s, table, way.name, way.dial, replicas, false); err != nil {
				return err
			}
		}
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	fmt.Print("\nOne of three replicas gets a SIGTERM half-way:\n\n")
	table = sample.NewTable(columns...)
	for _, way := range ways[:2] {
		if err := one(ctx, s, table, way.name, way.dial, 3, true); err != nil {
			return err
		}
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	return mirrors(ctx, s)
}

// one measures a number of replicas in one way, and adds a row.
func one(
	ctx context.Context, s *setting, table *sample.Table, name string, dial func(*cluster) (*caller, error), replicas int, leave bool,
) (err error) {
	c, err := start(ctx, s, replicas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	asking, err := dial(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asking.client.Close()) }()
	if _, err := asking.load(ctx, s.workers, time.Second, nil); err != nil {
		return fmt.Errorf("%s, warming up: %w", name, err)
	}
	computed, err := c.computed(ctx)
	if err != nil {
		return err
	}
	release := c.hold(s.share)
	defer release()
	before, err := c.answered(ctx)
	if err != nil {
		return err
	}
	var half func() error
	if leave {
		half = c.leave
	}
	result, err := asking.load(ctx, s.workers, s.span, half)
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
	perCall := any(float64((worked - computed).Microseconds()) / 1000 / float64(len(result.took)))
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
	table.Add(name, replicas, float64(len(result.took))/s.span.Seconds(), result.quantile(0.5), result.quantile(0.99), perCall,
		result.failed, strings.Join(parts, " "))
	return nil
}
