package main

import (
	"context"
	"fmt"
	"os"

	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// memory measures what large requests take at a time: clients with connections of their own send 10 MB each, again and again.
func memory(ctx context.Context, r *run, line *sample.Line) error {
	q, err := newQuestion(fixture.Shape(150_000, 0), "proportion")
	if err != nil {
		return err
	}
	q.message = nil
	fmt.Printf("\n### EvaluateShares, %s MB a request, from several clients at once\n\n", sample.Number(float64(len(q.bytes))/1e6))
	table := sample.NewTable("clients", "calls", "p50 ms", "p99 ms", "calls/s", "refused", "idle MB", "peak MB", "peak / request bytes in flight") //nolint:lll // One row of a table.
	for _, clients := range []int{1, 8, 16} {
		b, idle, usage, err := r.crowd(ctx, q, clients)
		if err != nil {
			return err
		}
		ratio := float64(usage.Peak-idle.Peak) / float64(clients*len(q.bytes))
		table.Add(clients, b.operations, sample.Milliseconds(b.latencies.Quantile(0.5)), sample.Milliseconds(b.latencies.Quantile(0.99)),
			float64(b.operations)/b.elapsed.Seconds(), b.refused, float64(idle.Peak)/1e6, float64(usage.Peak)/1e6, ratio)
		line.Add(fmt.Sprintf("memory_%d_clients_mb", clients), float64(usage.Peak)/1e6)
		line.Add(fmt.Sprintf("memory_%d_clients_ratio", clients), ratio)
	}
	_, err = table.WriteTo(os.Stdout)
	return err
}

// crowd lets clients call a service of their own for as long as all rounds of another measurement take.
func (r *run) crowd(ctx context.Context, q question, clients int) (b block, idle, usage peer.Usage, err error) {
	server, err := r.start(ctx, peer.Service)
	if err != nil {
		return b, idle, usage, err
	}
	calls := make(chan func(context.Context) error, clients)
	for range clients {
		conn, err := server.Dial()
		if err != nil {
			return b, idle, usage, err
		}
		r.closers = append(r.closers, conn.Close)
		calls <- call(conn, evaluateShares, q.bytes)
	}
	if idle, err = server.Usage(); err != nil {
		return b, idle, usage, err
	}
	// Each goroutine takes a connection for a call and puts it back.
	b, err = concurrent(clients, func(ctx context.Context) error {
		ask := <-calls
		defer func() { calls <- ask }()
		return ask(ctx)
	})(ctx, r.block*5)
	if err != nil {
		return b, idle, usage, err
	}
	usage, err = server.Usage()
	return b, idle, usage, err
}
