package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// siege lets one client ask small questions, first alone and then beside hostile callers. Server, client and hostile callers are
// processes of equal priority, so that the client waits for what the server does and not for the goroutines of the hostile callers.
type siege struct {
	binary  string
	hostile int
	// held says that the hostile callers ask about snapshots that the server holds, with requests of a few bytes.
	held     bool
	duration time.Duration
}

// request is a call that is encoded once, so that the generator uses little processor time.
type request struct {
	method  string
	payload floor.Bytes
}

func (s siege) run(ctx context.Context) (err error) {
	servers, err := launch(ctx, s.binary, 1, func(r *replica.Replica) { r.Processors = 0 }, "--limit-message-bytes", "256MiB")
	if err != nil {
		return err
	}
	defer servers.kill()
	server := servers[0]
	small, err := smallQuestion()
	if err != nil {
		return err
	}
	conn, err := dial(server.Address, 1)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // It ends with the process.
	s.measure(ctx, conn, small, s.duration/4)
	idle := s.measure(ctx, conn, small, s.duration)

	crowd, err := startCrowd(ctx, server.Address, s.hostile, s.held)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crowd.Stop()) }()
	s.measure(ctx, conn, small, s.duration/4)
	before, err := crowd.count()
	if err != nil {
		return err
	}
	busy := s.measure(ctx, conn, small, s.duration)
	after, err := crowd.count()
	if err != nil {
		return err
	}
	return s.report(idle, busy, after.since(before))
}

func (s siege) report(idle, busy *latencies, hostile tallies) error {
	table := sample.NewTable("small questions", "answered", "refused", "p50 ms", "p90 ms", "p99 ms", "most ms")
	for _, row := range []struct {
		name string
		l    *latencies
	}{{"alone", idle}, {fmt.Sprintf("beside %d hostile callers", s.hostile), busy}} {
		l := row.l
		table.Add(row.name, len(l.times), l.failed, l.percentile(0.5), l.percentile(0.9), l.percentile(0.99), l.percentile(1))
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\np99 beside / alone: %.1f; each second the hostile callers had %.1f answers, of each kind %.1f, and %.1f refusals\n",
		busy.percentile(0.99)/idle.percentile(0.99), hostile.all()/s.duration.Seconds(), hostile.perSecond(s.duration),
		float64(hostile.Refused)/s.duration.Seconds())
	return nil
}

// latencies contains the results of one client's calls.
type latencies struct {
	// times are in milliseconds.
	times []float64
	// failed counts the calls that were refused or failed otherwise; fault is the error of the first.
	failed int
	fault  error
}

func (l *latencies) add(began time.Time, err error) {
	if err != nil {
		l.failed++
		l.fault = cmp.Or(l.fault, err)
		return
	}
	l.times = append(l.times, sample.Milliseconds(time.Since(began)))
}

// percentile returns the latency in milliseconds that a part of the calls did not exceed.
func (l *latencies) percentile(part float64) float64 {
	if len(l.times) == 0 {
		return math.NaN()
	}
	slices.Sort(l.times)
	return l.times[min(int(part*float64(len(l.times))), len(l.times)-1)]
}

// both writes the median and the 99th percentile.
func (l *latencies) both() string {
	return sample.Number(l.percentile(0.5)) + " / " + sample.Number(l.percentile(0.99))
}

// measure makes calls one after the other, a few milliseconds apart.
func (s siege) measure(ctx context.Context, conn *grpc.ClientConn, r request, lasts time.Duration) *latencies {
	l := &latencies{}
	for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		began := time.Now()
		l.add(began, call(ctx, conn, r))
	}
	return l
}

func call(ctx context.Context, conn *grpc.ClientConn, r request) error {
	var answer floor.Bytes
	return conn.Invoke(ctx, r.method, &r.payload, &answer, grpc.ForceCodecV2(floor.Codec{}))
}

// dial connects from an address of the loopback network, whose last byte is given.
func dial(server string, host int, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+server, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return connect(ctx, to, host) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))...)
}

func connect(ctx context.Context, server string, host int) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(host))}, Timeout: 10 * time.Second}
	return dialer.DialContext(ctx, "tcp", server)
}

// smallQuestion asks for the shares of a small cluster.
func smallQuestion() (request, error) {
	in, err := fixture.Input(generate.Snapshot(fixture.Small()), "proportion")
	if err != nil {
		return request{}, err
	}
	data, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Input: in})
	return request{apportionv1.DecisionService_EvaluateShares_FullMethodName, data}, err
}

// expensiveQuestions returns one of each kind that the hostile callers ask in turn. Where conn is not nil, they are about snapshots that
// the server holds.
func expensiveQuestions(ctx context.Context, conn *grpc.ClientConn) (expensive []request, failed error) {
	encode := func(method string, m proto.Message) request {
		data, err := proto.Marshal(m)
		failed = errors.Join(failed, err)
		return request{method, floor.Bytes(data)}
	}
	input := func(shape generate.Shape, policy string) *apportionv1.Input {
		in, err := fixture.Input(generate.Snapshot(shape), policy)
		if err == nil && conn != nil {
			err = hold(ctx, conn, in)
		}
		failed = errors.Join(failed, err)
		return in
	}
	standard := generate.Standard()
	return []request{
		encode(apportionv1.DecisionService_EvaluateShares_FullMethodName, &apportionv1.EvaluateSharesRequest{
			Input:  input(standard, "default"),
			Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}, Jobs: &apportionv1.Selector{}},
		}),
		encode(apportionv1.DecisionService_Simulate_FullMethodName, &apportionv1.SimulateRequest{
			Input: input(standard, "default"), Steps: []*apportionv1.Step{
				{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: first(2000), Top: 1}}},
			},
		}),
		encode(apportionv1.DecisionService_Simulate_FullMethodName, &apportionv1.SimulateRequest{
			Input: input(standard, "default"), Steps: []*apportionv1.Step{
				{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
					Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{}},
				}}},
				{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: first(1)}}},
			},
		}),
		encode(apportionv1.DecisionService_EvaluateShares_FullMethodName, &apportionv1.EvaluateSharesRequest{
			Input: input(manyDimensions(), "proportion"), Shares: &apportionv1.SharesStep{},
		}),
	}, failed
}

// hold has a server hold the snapshot of an input, and names it by its digest instead.
func hold(ctx context.Context, conn *grpc.ClientConn, in *apportionv1.Input) error {
	data, err := proto.Marshal(in.GetSnapshot())
	if err != nil {
		return err
	}
	digest, err := peer.Upload(ctx, conn, data)
	in.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}
	return err
}

// first names the first tasks by number.
func first(n int) *apportionv1.Selector {
	tasks := &apportionv1.Selector{Indices: make([]uint32, n)}
	for i := range tasks.Indices {
		tasks.Indices[i] = uint32(i)
	}
	return tasks
}

// manyDimensions is a snapshot whose division takes many rounds.
func manyDimensions() generate.Shape {
	return generate.Shape{Queues: 2000, Jobs: 20_000, Tasks: 40_000, Nodes: 2000, Seed: 1, Dimensions: 64}
}
