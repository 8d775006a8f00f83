package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// changing sends changes of a snapshot that a server holds, each of them new to it.
type changing struct {
	server *other
	base   string
	policy *apportionv1.Policy
	// changes are encoded, at the price of none for the client; different times make them distinct.
	changes [][]byte
	times   uint64
}

// distinctChanges is the number of changes of one size that take turns.
const distinctChanges = 16

// changesOf returns changes of that many jobs each, encoded.
func changesOf(shape generate.Shape, jobs int) ([][]byte, error) {
	snapshot := generate.Snapshot(shape)
	changes := make([][]byte, distinctChanges)
	for i := range changes {
		var err error
		if changes[i], err = proto.Marshal(generate.Change(snapshot, jobs, uint64(i))); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// next returns a change that was not sent yet.
func (c *changing) next() []byte {
	c.times++
	data := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), c.times)
	return append(data, c.changes[c.times%uint64(len(c.changes))]...)
}

// sent sends a change, has the result held, and asks about it by its digest.
func (c *changing) sent(shares *apportionv1.SharesStep) func(context.Context) error {
	return func(ctx context.Context) error {
		digest, err := peer.UploadChange(ctx, c.server.ClientConn, c.base, c.next())
		if err != nil {
			return err
		}
		request, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{
			Input: &apportionv1.Input{
				Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_Policy{Policy: c.policy},
			}, Shares: shares,
		})
		if err != nil {
			return err
		}
		_, err = exchange(ctx, c.server.ClientConn, evaluateShares, request)
		return err
	}
}

// carried asks about the changed snapshot without a held one.
func (c *changing) carried(shares *apportionv1.SharesStep) func(context.Context) error {
	return func(ctx context.Context) error {
		rest, err := proto.Marshal(&apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: c.base}, Rule: &apportionv1.Input_Policy{Policy: c.policy},
		})
		if err != nil {
			return err
		}
		const changeField = 5
		input := protowire.AppendBytes(protowire.AppendTag(rest, changeField, protowire.BytesType), c.next())
		request := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), input)
		question, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Shares: shares})
		if err != nil {
			return err
		}
		_, err = exchange(ctx, c.server.ClientConn, evaluateShares, append(request, question...))
		return err
	}
}

// opened opens a session on the result of the change sent last, and waits until it is open.
func (c *changing) opened(ctx context.Context, digest string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := apportionv1.NewDecisionServiceClient(c.server.ClientConn).RunSession(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{
		Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_Policy{Policy: c.policy},
		},
	}}}); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// opening measures only the opening of sessions, each on the result of another change.
func (c *changing) opening() func(context.Context, time.Duration) (block, error) {
	return func(ctx context.Context, limit time.Duration) (block, error) {
		var b block
		for b.elapsed < limit || b.operations < 3 {
			digest, err := peer.UploadChange(ctx, c.server.ClientConn, c.base, c.next())
			if err != nil {
				return b, err
			}
			begin := time.Now()
			if err := c.opened(ctx, digest); err != nil {
				return b, err
			}
			b.latencies = append(b.latencies, time.Since(begin))
			b.elapsed += time.Since(begin)
			b.operations++
		}
		return b, nil
	}
}

// change measures questions about a snapshot that has changed since the server was sent it, beside the call that sends all of it.
func change(ctx context.Context, r *run, line *sample.Line) error {
	shape := generate.Standard()
	q, err := newQuestion(shape, "proportion")
	if err != nil {
		return err
	}
	q.message = nil
	whole, server, answer, err := r.ours(ctx, "the whole snapshot", q)
	if err != nil {
		return err
	}
	least, _, err := r.floor(ctx, floorBytes, answer)
	if err != nil {
		return err
	}
	h, err := server.hold(ctx, shape)
	if err != nil {
		return err
	}
	policy, err := fixture.Policy("proportion")
	if err != nil {
		return err
	}
	few := deservedOfTen()
	variants := []variant{whole, least}
	for _, percent := range []int{1, 10} {
		changes, err := changesOf(shape, shape.Jobs*percent/100)
		if err != nil {
			return err
		}
		c := &changing{server: server, base: h.digest, policy: policy, changes: changes, times: uint64(time.Now().UnixNano())}
		up := len(c.changes[0])
		add := func(name string, down int, do func(context.Context, time.Duration) (block, error)) {
			variants = append(variants, variant{
				name: fmt.Sprintf("%d %% of the jobs sent and held, %s", percent, name), server: server.Peer, up: up, down: down, do: do,
			})
		}
		if percent == 1 {
			add("deserved of ten queues", 0, sequential(c.sent(few)))
		}
		add("all shares", len(answer), sequential(c.sent(nil)))
		if percent == 1 {
			variants = append(variants, variant{
				name: "1 % of the jobs with the question, deserved of ten queues", server: server.Peer, up: up,
				do: sequential(c.carried(few)),
			})
			add("then the opening of a session alone", 0, c.opening())
		}
	}
	results, err := r.interleave(ctx, variants...)
	if err != nil {
		return err
	}
	if err := table("A snapshot that has changed; ratios are to the call that sends all of it", false, results); err != nil {
		return err
	}
	line.Add("floor_100k_ms", results[1].median())
	line.Add("whole_100k_ms", results[0].median())
	line.Add("change_1pct_ms", results[2].median())
	line.Add("change_session_ms", results[5].median())
	line.Add("change_1pct_all_ratio", sample.Median(ratios(results[3].p50, results[0].p50)))
	line.Add("change_1pct_ratio", sample.Median(ratios(results[2].p50, results[0].p50)))
	line.Add("change_10pct_ratio", sample.Median(ratios(results[6].p50, results[0].p50)))
	return grownChange(ctx, r.settings, line)
}

// deservedOfTen asks what ten queues deserve.
func deservedOfTen() *apportionv1.SharesStep {
	return &apportionv1.SharesStep{
		Queues: &apportionv1.Selector{Indices: []uint32{0, 100, 200, 300, 400, 500, 600, 700, 800, 900}},
		Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_DESERVED},
	}
}

// grownChange measures changes of one size to snapshots of two.
func grownChange(ctx context.Context, s settings, line *sample.Line) (err error) {
	const jobs = 100
	r := &run{settings: s}
	defer func() { err = errors.Join(err, r.close()) }()
	policy, err := fixture.Policy("proportion")
	if err != nil {
		return err
	}
	var variants []variant
	for _, tasks := range []int{100_000, 1_000_000} {
		shape := fixture.Shape(tasks, 0)
		server, err := r.start(ctx, peer.Service)
		if err != nil {
			return err
		}
		h, err := server.hold(ctx, shape)
		if err != nil {
			return err
		}
		changes, err := changesOf(shape, jobs)
		if err != nil {
			return err
		}
		c := &changing{server: server, base: h.digest, policy: policy, changes: changes, times: uint64(time.Now().UnixNano())}
		variants = append(variants,
			variant{
				name: fmt.Sprintf("%d tasks, %d queues", tasks, tasks/100), server: server.Peer, up: len(changes[0]),
				do: sequential(c.sent(deservedOfTen())),
			},
			variant{
				name: fmt.Sprintf("%d tasks, then the opening of a session alone", tasks), server: server.Peer, up: len(changes[0]),
				do: c.opening(),
			})
	}
	results, err := r.interleave(ctx, variants...)
	if err != nil {
		return err
	}
	line.Add("change_1m_to_100k_ratio", sample.Median(ratios(results[2].p50, results[0].p50)))
	title := fmt.Sprintf("A change of %d jobs of a snapshot that grows: sent and held, deserved of ten queues", jobs)
	return table(title, false, results)
}
