package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// floorBytes is the size of the request that the floor of the shares call sends. It does not depend on our encoding: it is the smallest
// encoding with uids that was measured before this contract was written.
const floorBytes = 6_645_763

const evaluateShares = apportionv1.DecisionService_EvaluateShares_FullMethodName

// question is a shares call about a generated snapshot.
type question struct {
	message *apportionv1.EvaluateSharesRequest
	bytes   floor.Bytes
}

func newQuestion(shape generate.Shape, policy string) (question, error) {
	in, err := fixture.Input(generate.Snapshot(shape), policy)
	if err != nil {
		return question{}, err
	}
	q := question{message: &apportionv1.EvaluateSharesRequest{Input: in}}
	q.bytes, err = proto.Marshal(q.message)
	return q, err
}

// ours is a variant that calls the service with encoded requests, in a process of its own.
func (r *run) ours(ctx context.Context, name string, q question) (variant, *other, floor.Bytes, error) {
	server, err := r.start(ctx, peer.Service)
	if err != nil {
		return variant{}, nil, nil, err
	}
	answer, err := exchange(ctx, server.ClientConn, evaluateShares, q.bytes)
	if err != nil {
		return variant{}, nil, nil, err
	}
	v := variant{
		name: name, server: server.Peer, up: len(q.bytes), down: len(answer),
		do: sequential(call(server.ClientConn, evaluateShares, q.bytes)),
	}
	return v, server, answer, nil
}

// floor is a variant that carries so many bytes up and the given answer down, in a process of its own.
func (r *run) floor(ctx context.Context, up int, answer floor.Bytes) (variant, *other, error) {
	server, err := r.start(ctx, peer.Floor)
	if err != nil {
		return variant{}, nil, err
	}
	if _, err := exchange(ctx, server.ClientConn, floor.Reply, answer); err != nil {
		return variant{}, nil, err
	}
	v := variant{
		name: "floor", server: server.Peer, up: up, down: len(answer),
		do: sequential(call(server.ClientConn, floor.Call, make(floor.Bytes, up))),
	}
	return v, server, nil
}

// shares measures the call that figures are quoted for.
func shares(ctx context.Context, r *run, line *sample.Line) error {
	q, err := newQuestion(generate.Standard(), "proportion")
	if err != nil {
		return err
	}
	encoded, server, answer, err := r.ours(ctx, "proportion, encoded beforehand", q)
	if err != nil {
		return err
	}
	least, _, err := r.floor(ctx, floorBytes, answer)
	if err != nil {
		return err
	}
	whole := encoded
	whole.name = "proportion, from messages to messages"
	user, err := client.Dial(server.Address, client.WithPlaintext())
	if err != nil {
		return err
	}
	r.closers = append(r.closers, user.Close)
	in := client.Input{Snapshot: q.message.GetInput().GetSnapshot(), Policy: q.message.GetInput().GetPolicy()}
	whole.do = sequential(func(ctx context.Context) error {
		_, err := user.Shares(ctx, in, client.SharesQuestion{})
		return err
	})
	results, err := r.interleave(ctx, least, encoded, whole)
	if err != nil {
		return err
	}
	if err := table("EvaluateShares: 1,000 queues, 10,000 jobs, 100,000 tasks with uids, 5,000 nodes", false, results); err != nil {
		return err
	}
	encode, decode, err := clientCost(q, answer)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe client's part by itself: %s ms to encode the request, %s ms to decode the answer.\n",
		sample.Number(encode), sample.Number(decode))
	line.Add("shares_100k_ratio", sample.Median(ratios(results[1].p50, results[0].p50)))
	line.Add("shares_100k_ms", results[1].median())
	line.Add("shares_100k_p99_ms", sample.Milliseconds(results[1].all.Quantile(0.99)))
	line.Add("floor_100k_ms", results[0].median())
	line.Add("shares_100k_with_encoding_ratio", sample.Median(ratios(results[2].p50, results[0].p50)))
	line.Add("shares_100k_with_encoding_ms", results[2].median())
	line.Add("client_encode_100k_ms", encode)
	line.Add("client_decode_100k_ms", decode)
	return nil
}

// clientCost returns the milliseconds that encoding a request and decoding an answer take.
func clientCost(q question, answer floor.Bytes) (encode, decode float64, err error) {
	var encoding, decoding sample.Durations
	codec := client.Codec()
	for range 15 {
		begin := time.Now()
		encoded, err := codec.Marshal(q.message)
		if err != nil {
			return 0, 0, err
		}
		encoding = append(encoding, time.Since(begin))
		encoded.Free()
		var m apportionv1.EvaluateSharesResponse
		begin = time.Now()
		if err := proto.Unmarshal(answer, &m); err != nil {
			return 0, 0, err
		}
		decoding = append(decoding, time.Since(begin))
	}
	return sample.Milliseconds(encoding.Quantile(0.5)), sample.Milliseconds(decoding.Quantile(0.5)), nil
}

// policies measures the shares call by each way to divide, on a tree of queues.
func policies(ctx context.Context, r *run, line *sample.Line) error {
	var variants []variant
	shape := generate.Standard()
	shape.Depth = 3
	for _, policy := range []string{"proportion", "capacity", "capacity-hierarchical", "default"} {
		q, err := newQuestion(shape, policy)
		if err != nil {
			return err
		}
		v, _, answer, err := r.ours(ctx, policy, q)
		if err != nil {
			return err
		}
		if len(variants) == 0 {
			least, _, err := r.floor(ctx, floorBytes, answer)
			if err != nil {
				return err
			}
			variants = append(variants, least)
		}
		variants = append(variants, v)
	}
	results, err := r.interleave(ctx, variants...)
	if err != nil {
		return err
	}
	line.Add("shares_100k_capacity_ms", results[2].median())
	line.Add("shares_100k_hierarchical_ms", results[3].median())
	line.Add("shares_100k_default_ms", results[4].median())
	return table("EvaluateShares on a tree of 1,000 queues, 10,000 jobs, 100,000 tasks with uids, 5,000 nodes", false, results)
}

// growth measures how the shares call grows.
func growth(ctx context.Context, r *run, line *sample.Line) error {
	var variants []variant
	sizes := []int{100_000, 500_000, 1_000_000}
	for _, tasks := range sizes {
		q, err := newQuestion(fixture.Shape(tasks, 0), "proportion")
		if err != nil {
			return err
		}
		q.message = nil
		v, _, _, err := r.ours(ctx, fmt.Sprintf("%d tasks, %d jobs, %d queues", tasks, tasks/10, tasks/100), q)
		if err != nil {
			return err
		}
		variants = append(variants, v)
	}
	results, err := r.interleave(ctx, variants...)
	if err != nil {
		return err
	}
	if err := table("EvaluateShares, growing", false, results); err != nil {
		return err
	}
	memory := sample.NewTable("case", "request MB", "peak MB", "peak / request")
	for _, m := range results {
		memory.Add(m.name, float64(m.up)/1e6, float64(m.usage.Peak)/1e6, float64(m.usage.Peak)/float64(m.up))
	}
	fmt.Println()
	if _, err := memory.WriteTo(os.Stdout); err != nil {
		return err
	}
	line.Add("shares_500k_to_100k", sample.Median(ratios(results[1].p50, results[0].p50)))
	line.Add("shares_1m_to_100k", sample.Median(ratios(results[2].p50, results[0].p50)))
	line.Add("shares_500k_ms", results[1].median())
	line.Add("shares_1m_ms", results[2].median())
	line.Add("memory_1m_ratio", float64(results[2].usage.Peak)/float64(results[2].up))
	return nil
}

// small measures many small calls at a time.
func small(ctx context.Context, r *run, line *sample.Line) error {
	const clients = 64
	q, err := newQuestion(fixture.Small(), "proportion")
	if err != nil {
		return err
	}
	v, server, answer, err := r.ours(ctx, "service", q)
	if err != nil {
		return err
	}
	least, floorServer, err := r.floor(ctx, len(q.bytes), answer)
	if err != nil {
		return err
	}
	v.do = concurrent(clients, call(server.ClientConn, evaluateShares, q.bytes))
	least.do = concurrent(clients, call(floorServer.ClientConn, floor.Call, q.bytes))
	results, err := r.interleave(ctx, least, v)
	if err != nil {
		return err
	}
	line.Add("small_64_ratio", sample.Median(ratios(results[1].rate, results[0].rate)))
	line.Add("small_64_per_s", sample.Median(results[1].rate))
	title := fmt.Sprintf("EvaluateShares: 10 queues, 100 jobs, 1,000 tasks with uids, 50 nodes; %d calls at a time", clients)
	return table(title, true, results)
}
