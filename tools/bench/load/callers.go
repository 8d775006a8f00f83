package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// explaining lets 8 and 200 callers of the Go client ask in turns why jobs wait. A small caller asks this server and an idle one beside
// them.
func explaining(ctx context.Context, t target) (f finding, err error) {
	const few, many = 8, 200
	server, end, err := t.serve(ctx)
	if err != nil {
		return f, err
	}
	defer end()
	idle, endIdle, err := t.serve(ctx)
	if err != nil {
		return f, err
	}
	defer endIdle()
	asked, err := client.Dial(server.Address, client.WithPlaintext())
	if err != nil {
		return f, err
	}
	defer asked.Close() //nolint:errcheck // All questions are answered.
	held, err := asked.Upload(ctx, generate.Snapshot(generate.Shape{Queues: 20, Jobs: 2000, Tasks: 10_000, Nodes: 200, Seed: 1}))
	if err != nil {
		return f, err
	}
	in := client.Input{Upload: held, Policy: client.VolcanoDefault()}
	span := 4 * time.Second
	var ratios, byTime []float64
	var other *bystander
	var otherErr error
	var asking sync.WaitGroup
	done := make(chan struct{})
	wait := func() error { <-done; return ctx.Err() }
	asking.Go(func() { other, otherErr = beside(ctx, idle.Address, wait) })
	small, err := beside(ctx, server.Address, func() error {
		defer close(done)
		for range scaled(3, t.scale) {
			pid := server.Process().Pid
			from, had := processorTime(pid), granted(pid)
			peak := explanations(ctx, asked, in, few, span)
			between, halfway := processorTime(pid), granted(pid)
			flood := explanations(ctx, asked, in, many, span)
			until, has := processorTime(pid), granted(pid)
			ratio := flood / max(peak, 1)
			byTime = append(byTime, ratio*(between-from)/max(until-between, 1e-9))
			if has > halfway && halfway > had {
				ratio *= (halfway - had) / (has - halfway)
			}
			ratios = append(ratios, ratio)
		}
		return nil
	})
	asking.Wait()
	if err == nil {
		err = otherErr
	}
	if err != nil {
		return f, err
	}
	closed, err := server.Metric(ctx, "apportion_connections_reset_total")
	if err != nil {
		return f, err
	}
	ratio := sample.Median(ratios)
	p50, p99 := small.calls.percentile(0.5)/other.calls.percentile(0.5), small.calls.percentile(0.99)/other.calls.percentile(0.99)
	f.measured = fmt.Sprintf("%.2f of the answers, %.2f by processor time used; %.0f connections closed; "+
		"p50 %.1f, p99 %.1f times (%s and %s ms), %d failed",
		ratio, sample.Median(byTime), closed, p50, p99, small.calls.both(), other.calls.both(), small.calls.failed)
	f.held = ratio >= enough && closed == 0 && p50 <= 1.5 && p99 <= 3
	return f, nil
}

// explanations returns the number of answers that so many callers get.
func explanations(ctx context.Context, asked *client.Client, in client.Input, callers int, span time.Duration) float64 {
	ctx, stop := context.WithTimeout(ctx, span)
	defer stop()
	var answered atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := asked.Explain(ctx, in, client.ExplainQuestion{}); err == nil {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(answered.Load())
}
