package main

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// pair starts the service and the floor, and lets the service hold a snapshot.
func (r *run) pair(ctx context.Context, shape generate.Shape) (service, least *other, h held, err error) {
	if service, err = r.start(ctx, peer.Service); err != nil {
		return nil, nil, held{}, err
	}
	if least, err = r.start(ctx, peer.Floor); err != nil {
		return nil, nil, held{}, err
	}
	h, err = service.hold(ctx, shape)
	return service, least, h, err
}

func (o *other) variant(name string, t talk) variant {
	return variant{name: name, server: o.Peer, up: t.up, down: t.down, do: pingPong(t)}
}

// steps measures single steps, on an open session and by digest, against an echo of the same bytes.
func steps(ctx context.Context, r *run, line *sample.Line) error {
	service, least, h, err := r.pair(ctx, generate.Standard())
	if err != nil {
		return err
	}
	if err := sessionSteps(ctx, r, line, service, least, h); err != nil {
		return err
	}
	return digestSteps(ctx, r, line, service, least, h)
}

func sessionSteps(ctx context.Context, r *run, line *sample.Line, service, least *other, h held) error {
	session, err := service.session(ctx, h, "proportion", allocatable(h.pending[0]))
	if err != nil {
		return err
	}
	encoded, err := service.sessionBytes(ctx, h, "proportion", allocatable(h.pending[0]))
	if err != nil {
		return err
	}
	echo, err := least.echoes(ctx, make(floor.Bytes, session.up))
	if err != nil {
		return err
	}
	results, err := r.interleave(ctx, least.variant("echo on a stream", echo), service.variant("step on a session", session),
		service.variant("step on a session, encoded beforehand", encoded))
	if err != nil {
		return err
	}
	line.Add("session_step_ratio", sample.Median(ratios(results[1].p50, results[0].p50)))
	line.Add("session_step_us", 1000*results[1].median())
	line.Add("echo_stream_us", 1000*results[0].median())
	return table("One allocatable step of one task, one at a time, on a session of 100,000 tasks", false, results)
}

func digestSteps(ctx context.Context, r *run, line *sample.Line, service, least *other, h held) error {
	p, err := fixture.Policy("proportion")
	if err != nil {
		return err
	}
	question := func(in *apportionv1.Input) *apportionv1.SimulateRequest {
		in.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: h.digest}
		return &apportionv1.SimulateRequest{Input: in, Steps: []*apportionv1.Step{allocatable(h.pending[0])}}
	}
	inline := question(&apportionv1.Input{Rule: &apportionv1.Input_Policy{Policy: p}})
	named := question(&apportionv1.Input{Rule: &apportionv1.Input_PolicyName{PolicyName: "proportion"}})
	stub := apportionv1.NewDecisionServiceClient(service.ClientConn)
	ask := func(name string, q *apportionv1.SimulateRequest) (variant, error) {
		answer, err := stub.Simulate(ctx, q)
		v := variant{name: name, server: service.Peer, up: proto.Size(q), down: proto.Size(answer)}
		v.do = sequential(func(ctx context.Context) error {
			_, err := stub.Simulate(ctx, q)
			return err
		})
		return v, err
	}
	byPolicy, err := ask("step by digest", inline)
	if err != nil {
		return err
	}
	byName, err := ask("step by digest, policy by name", named)
	if err != nil {
		return err
	}
	echo := variant{
		name: "unary echo", server: least.Peer, up: byPolicy.up, down: byPolicy.up,
		do: sequential(call(least.ClientConn, floor.Echo, make(floor.Bytes, byPolicy.up))),
	}
	results, err := r.interleave(ctx, echo, byPolicy, byName)
	if err != nil {
		return err
	}
	line.Add("digest_step_ratio", sample.Median(ratios(results[1].p50, results[0].p50)))
	line.Add("digest_step_us", 1000*results[1].median())
	line.Add("echo_unary_us", 1000*results[0].median())
	return table("One allocatable question about one task, unary, by digest of a snapshot of 100,000 tasks", false, results)
}

// stream measures what passes through one stream.
func stream(ctx context.Context, r *run, line *sample.Line) error {
	const window, narrow, size = 256, 16, 64
	service, least, h, err := r.pair(ctx, generate.Standard())
	if err != nil {
		return err
	}
	single, err := service.session(ctx, h, "proportion", allocatable(h.pending[0]))
	if err != nil {
		return err
	}
	encoded, err := service.sessionBytes(ctx, h, "proportion", allocatable(h.pending[0]))
	if err != nil {
		return err
	}
	var list []*apportionv1.Step
	for _, t := range h.pending[:size] {
		list = append(list, allocatable(t))
	}
	batches, err := service.session(ctx, h, "proportion", list...)
	if err != nil {
		return err
	}
	encodedBatches, err := service.sessionBytes(ctx, h, "proportion", list...)
	if err != nil {
		return err
	}
	echo, err := least.echoes(ctx, make(floor.Bytes, single.up))
	if err != nil {
		return err
	}
	through := func(o *other, name string, t talk, window, per int) variant {
		v := o.variant(fmt.Sprintf("%s, %d at a time", name, window), t)
		v.do = pipelined(t, window, per)
		return v
	}
	results, err := r.interleave(ctx,
		through(least, "echo", echo, window, 1),
		through(service, "steps", single, window, 1),
		through(service, "steps encoded beforehand", encoded, window, 1),
		through(service, "batches of 64", batches, narrow, size),
		through(service, "batches of 64 encoded beforehand", encodedBatches, narrow, size))
	if err != nil {
		return err
	}
	line.Add("pipelined_ratio", sample.Median(ratios(results[1].rate, results[0].rate)))
	line.Add("pipelined_per_s", sample.Median(results[1].rate))
	line.Add("pipelined_encoded_ratio", sample.Median(ratios(results[2].rate, results[0].rate)))
	line.Add("batch64_ratio", sample.Median(ratios(results[3].rate, results[0].rate)))
	line.Add("batch64_per_s", sample.Median(results[3].rate))
	line.Add("batch64_encoded_ratio", sample.Median(ratios(results[4].rate, results[0].rate)))
	return table("Allocatable steps pipelined on one stream, operations are steps", true, results)
}

// lists measures a thousand questions in one step.
func lists(ctx context.Context, r *run, line *sample.Line) error {
	for _, policy := range []string{"proportion", "capacity-hierarchical"} {
		shape := generate.Standard()
		if policy == "capacity-hierarchical" {
			shape.Depth = 3
		}
		if err := listOf(ctx, r, line, policy, shape); err != nil {
			return err
		}
	}
	return nil
}

func listOf(ctx context.Context, r *run, line *sample.Line, policy string, shape generate.Shape) error {
	service, least, h, err := r.pair(ctx, shape)
	if err != nil {
		return err
	}
	rollback := &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}}
	var variants []variant
	echo, err := least.echoes(ctx, make(floor.Bytes, 20))
	if err != nil {
		return err
	}
	variants = append(variants, least.variant("echo of 20 bytes", echo))
	for _, question := range []struct {
		name  string
		steps []*apportionv1.Step
	}{
		{"1,000 allocatable", []*apportionv1.Step{allocatable(h.pending...)}},
		{"1,000 enqueue, rolled back", []*apportionv1.Step{enqueue(h.jobs...), rollback}},
	} {
		encoded, err := service.sessionBytes(ctx, h, policy, question.steps...)
		if err != nil {
			return err
		}
		messages, err := service.session(ctx, h, policy, question.steps...)
		if err != nil {
			return err
		}
		variants = append(variants,
			service.variant(question.name+", encoded beforehand", encoded), service.variant(question.name+", by messages", messages))
	}
	results, err := r.interleave(ctx, variants...)
	if err != nil {
		return err
	}
	if err := table("A thousand questions in one step, "+policy, false, results); err != nil {
		return err
	}
	// The milliseconds of a thousand are the microseconds of each.
	beyond := func(i int) float64 { return results[i].median() - results[0].median() }
	suffix := ""
	if policy != "proportion" {
		suffix = "_hierarchical"
	}
	fmt.Printf("\nBeyond the echo, a question: allocatable %s us (%s by messages), enqueue %s us (%s by messages).\n",
		sample.Number(beyond(1)), sample.Number(beyond(2)), sample.Number(beyond(3)), sample.Number(beyond(4)))
	line.Add("allocatable_1000_us_each"+suffix, beyond(1))
	line.Add("enqueue_1000_us_each"+suffix, beyond(3))
	return nil
}
