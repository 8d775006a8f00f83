package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// run is one group under measurement, with the processes that it started.
type run struct {
	settings
	closers []func() error
}

// other is a server process and a connection to it.
type other struct {
	*peer.Peer
	*grpc.ClientConn
}

// start starts a server of a role.
func (r *run) start(ctx context.Context, role string) (*other, error) {
	var environment []string
	if role == peer.Service {
		environment = r.environment
		if r.profile != "" {
			environment = append(environment, peer.ProfileVariable+"="+r.profile)
		}
	}
	p, err := peer.Start(ctx, role, environment...)
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, p.Stop)
	conn, err := p.Dial()
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, conn.Close)
	return &other{p, conn}, nil
}

// close ends what was started, the last first.
func (r *run) close() error {
	var faults []error
	for len(r.closers) > 0 {
		last := len(r.closers) - 1
		faults = append(faults, r.closers[last]())
		r.closers = r.closers[:last]
	}
	return errors.Join(faults...)
}

// block holds the events in one block of time.
type block struct {
	latencies  sample.Durations
	operations int
	// refused counts the calls that a busy server sent away, and that were made again.
	refused int
	elapsed time.Duration
}

// variant is one of the cases that are compared.
type variant struct {
	name     string
	server   *peer.Peer
	up, down int
	do       func(context.Context, time.Duration) (block, error)
}

// result holds the measurements of a variant.
type result struct {
	variant

	all sample.Durations
	// p50 in milliseconds, operations a second, and milliseconds of the server's and of this process's CPU an operation, by round.
	p50, rate, cpu, client []float64
	// faults and collections of garbage of the server in one operation, by round.
	faults, collections []float64
	usage               peer.Usage
	refused             int
}

// interleave measures variants in rounds, after a short one that does not count.
func (r *run) interleave(ctx context.Context, variants ...variant) ([]*result, error) {
	results := make([]*result, len(variants))
	for i, v := range variants {
		results[i] = &result{variant: v}
		if _, err := v.do(ctx, r.block/4); err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	for round := range r.rounds {
		for i := range results {
			if err := results[(i+round)%len(results)].measure(ctx, r.block); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// measure measures one block.
func (m *result) measure(ctx context.Context, limit time.Duration) error {
	// What another case left behind is none of this one's cost.
	runtime.GC()
	before, err := m.server.Usage()
	if err != nil {
		return err
	}
	mine := peer.Used()
	b, err := m.do(ctx, limit)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.client = append(m.client, sample.Milliseconds(peer.Used().CPU-mine.CPU)/float64(b.operations))
	if m.usage, err = m.server.Usage(); err != nil {
		return err
	}
	m.faults = append(m.faults, float64(m.usage.Faults-before.Faults)/float64(b.operations))
	m.collections = append(m.collections, float64(m.usage.Collections-before.Collections)/float64(b.operations))
	m.refused += b.refused
	m.all = append(m.all, b.latencies...)
	p50 := math.NaN()
	if len(b.latencies) > 0 {
		p50 = sample.Milliseconds(b.latencies.Quantile(0.5))
	}
	m.p50 = append(m.p50, p50)
	m.rate = append(m.rate, float64(b.operations)/b.elapsed.Seconds())
	m.cpu = append(m.cpu, sample.Milliseconds(m.usage.CPU-before.CPU)/float64(b.operations))
	return nil
}

// median returns the p50 of all calls in milliseconds.
func (m *result) median() float64 { return sample.Milliseconds(m.all.Quantile(0.5)) }

// ratios compares two series round by round.
func ratios(of, to []float64) []float64 {
	out := make([]float64, len(of))
	for i := range of {
		out[i] = of[i] / to[i]
	}
	return out
}

// spread is a median with the least and the greatest.
func spread(x []float64) string {
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, y := range x {
		least, greatest = min(least, y), max(greatest, y)
	}
	return fmt.Sprintf("%s (%s..%s)", sample.Number(sample.Median(x)), sample.Number(least), sample.Number(greatest))
}

// table prints results; ratios are to the first, of p50 or, if byRate, of operations a second.
func table(title string, byRate bool, results []*result) error {
	fmt.Printf("\n### %s\n\n", title)
	name := "p50 ratio (rounds)"
	if byRate {
		name = "ops/s ratio (rounds)"
	}
	t := sample.NewTable("case", "p50 ms (rounds)", "p99 ms", "ops/s", name, "bytes up", "bytes down",
		"server CPU ms/op", "client CPU ms/op", "server page faults/op", "server GC/op", "server peak MB")
	for _, m := range results {
		ratio := spread(ratios(m.p50, results[0].p50))
		if byRate {
			ratio = spread(ratios(m.rate, results[0].rate))
		}
		t.Add(m.name, spread(m.p50), sample.Milliseconds(m.all.Quantile(0.99)), sample.Median(m.rate), ratio, m.up, m.down,
			sample.Median(m.cpu), sample.Median(m.client), sample.Median(m.faults),
			sample.Median(m.collections), float64(m.usage.Peak)/1e6)
	}
	if _, err := t.WriteTo(os.Stdout); err != nil {
		return err
	}
	for _, m := range results {
		if m.refused > 0 {
			fmt.Printf("\n%s: %d calls succeeded, %d were refused by the busy server and made again.\n", m.name, len(m.all), m.refused)
		}
	}
	return nil
}

// pause is the time that a refused client waits.
const pause = 5 * time.Millisecond

// sequential repeats an operation until time is up, three times at least. The latency of a call is the time of the attempt that succeeded.
func sequential(operation func(context.Context) error) func(context.Context, time.Duration) (block, error) {
	return func(ctx context.Context, limit time.Duration) (block, error) {
		var b block
		begin := time.Now()
		for b.elapsed < limit || b.operations < 3 {
			at := time.Now()
			err := operation(ctx)
			if status.Code(err) == codes.ResourceExhausted && time.Since(begin) < 60*limit {
				b.refused++
				time.Sleep(pause)
				continue
			}
			if err != nil {
				return b, err
			}
			b.latencies = append(b.latencies, time.Since(at))
			b.operations++
			b.elapsed = time.Since(begin)
		}
		return b, nil
	}
}

// concurrent is sequential in several goroutines.
func concurrent(clients int, operation func(context.Context) error) func(context.Context, time.Duration) (block, error) {
	return func(ctx context.Context, limit time.Duration) (block, error) {
		type outcome struct {
			block
			err error
		}
		begin, outcomes := time.Now(), make(chan outcome, clients)
		for range clients {
			go func() {
				b, err := sequential(operation)(ctx, limit)
				outcomes <- outcome{b, err}
			}()
		}
		var all block
		var faults []error
		for range clients {
			o := <-outcomes
			all.latencies = append(all.latencies, o.latencies...)
			all.operations += o.operations
			all.refused += o.refused
			faults = append(faults, o.err)
		}
		all.elapsed = time.Since(begin)
		return all, errors.Join(faults...)
	}
}

// call is a unary call of bytes, whatever they are.
func call(conn *grpc.ClientConn, method string, request floor.Bytes) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := exchange(ctx, conn, method, request)
		return err
	}
}

// exchange calls a method with bytes and returns the bytes that come back.
func exchange(ctx context.Context, conn *grpc.ClientConn, method string, request floor.Bytes) (floor.Bytes, error) {
	var answer floor.Bytes
	err := conn.Invoke(ctx, method, &request, &answer, grpc.ForceCodecV2(floor.Codec{}))
	return answer, err
}
