package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/balancer/ringhash" // Registers the balancer that keeps the calls of a mirror together.
	_ "google.golang.org/grpc/health"            // Registers the health check that the service config asks for.
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/wire/method"
)

// Decider answers questions about a snapshot. *Client implements it with a service or in process; tests may use other implementations.
type Decider interface {
	// Shares returns what each queue deserves and holds, and the order of queues.
	Shares(ctx context.Context, in Input, question SharesQuestion) (*Shares, error)
	// Enqueue decides which jobs may enter their queues.
	Enqueue(ctx context.Context, in Input, question EnqueueQuestion) (*Admissions, error)
	// Allocatable decides whether the queues of tasks may use as much more as these request, and whether they may take it from other
	// queues.
	Allocatable(ctx context.Context, in Input, question AllocatableQuestion) (*Allowances, error)
	// Victims returns the tasks that a task may evict.
	Victims(ctx context.Context, in Input, question VictimsQuestion) (*Victims, error)
	// ScoreNodes returns the nodes on which tasks fit, with scores.
	ScoreNodes(ctx context.Context, in Input, question NodesQuestion) (*Scores, error)
	// Explain explains why jobs wait.
	Explain(ctx context.Context, in Input, question ExplainQuestion) (*Explanations, error)
	// Plan returns where the tasks of a job can be placed, and which tasks must be evicted for it.
	Plan(ctx context.Context, in Input, question PlanQuestion) (*Plan, error)
	// Remedies returns the smallest changes that would make a waiting job run.
	Remedies(ctx context.Context, in Input, question RemediesQuestion) (*Remedies, error)
	// Forecast returns when a waiting job starts, by chance.
	Forecast(ctx context.Context, in Input, question ForecastQuestion) (*Odds, error)
	// Simulate runs a list of steps in order, each on the state that the previous steps left.
	Simulate(ctx context.Context, in Input, steps ...*apportionv1.Step) (*Simulation, error)
}

// Client calls a service, or decides in process. It is safe for concurrent use.
type Client struct {
	settings

	// remote is nil in process. mirrored is the same service over a connection that sends the calls of each mirror to one replica.
	remote, mirrored *stubs
	connections      []*grpc.ClientConn
	engine           local
	budget           budget
	counters         counters
}

var _ Decider = (*Client)(nil)

// stubs are the calls of all services over one connection.
type stubs struct {
	apportionv1.DecisionServiceClient
	apportionv1.SnapshotServiceClient
	apportionv1alpha1.InsightServiceClient
}

func newStubs(connection grpc.ClientConnInterface) *stubs {
	return &stubs{
		apportionv1.NewDecisionServiceClient(connection), apportionv1.NewSnapshotServiceClient(connection),
		apportionv1alpha1.NewInsightServiceClient(connection),
	}
}

// InProcess returns a client that decides in the caller's own process, with the same engine and the same answers. Options about the network
// have no effect.
func InProcess(opts ...Option) *Client {
	c := &Client{settings: newSettings(opts)}
	c.engine = local{policies: c.policies}
	c.counters = newCounters(c.meter)
	return c
}

// Close closes the connections. Sessions end with them.
func (c *Client) Close() error {
	var err error
	for _, connection := range c.connections {
		err = errors.Join(err, connection.Close())
	}
	return err
}

// ErrNotServing is returned by Health while a server starts or drains.
var ErrNotServing = errors.New("the server is not serving")

// Health returns nil if the server serves. In process it always returns nil.
func (c *Client) Health(ctx context.Context) error {
	if c.connections == nil {
		return nil
	}
	request := &healthv1.HealthCheckRequest{Service: apportionv1.DecisionService_ServiceDesc.ServiceName}
	response, err := healthv1.NewHealthClient(c.connections[0]).Check(ctx, request)
	if err != nil {
		return err
	}
	if response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return ErrNotServing
	}
	return nil
}

const (
	// maxMessage is the size of requests and answers that a client allows; the service has limits of its own.
	maxMessage = 1 << 30
	// A connection without data for the time ping is pinged, and closed if no answer arrives within pong. Earlier servers accept a ping
	// every 10 seconds.
	ping = 11 * time.Second
	pong = 5 * time.Second
	// The client connects to a lost replica again after reconnect, and then at growing intervals up to reconnectMost.
	reconnect     = 100 * time.Millisecond
	reconnectMost = 5 * time.Second
	// connectTime bounds one attempt to connect, TLS included.
	connectTime = 2 * time.Second
)

// Dial returns a client of the service at a target such as "dns:///apportion:7171", over TLS with the system's roots unless an option
// changes this. It connects with the first call. Calls are balanced (round robin) over all healthy addresses of the target; calls about a
// Mirror stay with one of them, over a separate connection, as long as it serves. A replica that sends nothing for a second or two while
// calls wait, not even about its health, is treated as lost if the target has others.
func Dial(target string, opts ...Option) (*Client, error) {
	c := &Client{settings: newSettings(opts), budget: budget{tokens: budgetMost}}
	for _, kind := range Kinds() {
		if err := c.fallbacks[kind].check(kind); err != nil {
			return nil, err
		}
	}
	watch := newSilentWatch(c.logger)
	for _, config := range []string{serviceConfig, mirrorServiceConfig} {
		connection, err := grpc.NewClient(target, c.dialOptions(watchedConfig(config), watch)...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.connections = append(c.connections, connection)
	}
	c.engine = local{policies: c.policies}
	c.remote, c.mirrored = newStubs(c.connections[0]), newStubs(c.connections[1])
	c.counters = newCounters(c.meter)
	return c, nil
}

func (s *settings) dialOptions(config string, watch *silentWatch) []grpc.DialOption {
	options := append(s.tokenOptions(),
		grpc.WithTransportCredentials(watchedCredentials{s.credentials, watch}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(Codec()), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithDefaultServiceConfig(config),
		// The client retries calls itself, because gRPC cannot send a message again that is larger than its buffer.
		grpc.WithDisableRetry(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: ping, Timeout: pong}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnect, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMost},
			MinConnectTimeout: connectTime,
		}))
	options = append(options, s.instruments()...)
	return append(options, s.options...)
}

// Shares returns what each queue deserves and holds, and the order of queues.
func (c *Client) Shares(ctx context.Context, in Input, asked SharesQuestion) (*Shares, error) {
	step := &apportionv1.SharesStep{Fields: asked.Fields, Tree: asked.Tree}
	if asked.Queues != nil {
		step.Queues = &apportionv1.Selector{Names: asked.Queues}
	}
	if asked.JobShares {
		step.Jobs = &apportionv1.Selector{}
	}
	if asked.Explain {
		step.Explain = &apportionv1.Explain{}
	}
	response, from, err := question[*apportionv1.EvaluateSharesRequest, *apportionv1.EvaluateSharesResponse]{
		kind: KindShares, method: &method.EvaluateShares, call: (*stubs).EvaluateShares,
		answer: unanswerable[*apportionv1.EvaluateSharesResponse],
	}.ask(ctx, c, in, &apportionv1.EvaluateSharesRequest{Input: in.message(), Shares: step})
	if err != nil {
		return nil, err
	}
	return &Shares{Basis: response.GetBasis(), Answer: response.GetShares(), Fallback: from.by}, nil
}

// Enqueue decides which jobs may enter their queues.
func (c *Client) Enqueue(ctx context.Context, in Input, asked EnqueueQuestion) (*Admissions, error) {
	step := &apportionv1.EnqueueStep{}
	if asked.Jobs != nil {
		step.Jobs = &apportionv1.Selector{Names: asked.Jobs}
	}
	if asked.AsAction {
		step.Mode = apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION
	}
	response, from, err := question[*apportionv1.CheckEnqueueRequest, *apportionv1.CheckEnqueueResponse]{
		kind: KindEnqueue, method: &method.CheckEnqueue, call: (*stubs).CheckEnqueue,
		answer: func(vote apportionv1.Vote) (*apportionv1.CheckEnqueueResponse, bool) {
			return plainEnqueue(in, asked, vote)
		},
	}.ask(ctx, c, in, &apportionv1.CheckEnqueueRequest{Input: in.message(), Enqueue: step})
	if err != nil {
		return nil, err
	}
	return newAdmissions(in, response, from), nil
}

// Allocatable decides whether the queues of tasks may use as much more as these request.
func (c *Client) Allocatable(ctx context.Context, in Input, asked AllocatableQuestion) (*Allowances, error) {
	tasks := &apportionv1.Selector{Names: asked.Tasks}
	allocatable := &apportionv1.AllocatableStep{Tasks: tasks, Jointly: asked.Jointly, Explain: asked.Explain}
	if asked.Simulation {
		allocatable.Mode = apportionv1.AccountingMode_ACCOUNTING_MODE_SIMULATION
	}
	steps := []*apportionv1.Step{{Step: &apportionv1.Step_Allocatable{Allocatable: allocatable}}}
	if asked.Preemptive {
		preemptive := &apportionv1.PreemptiveStep{Tasks: tasks, Jointly: asked.Jointly, Explain: asked.Explain}
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: preemptive}})
	}
	response, from, err := asking(KindAllocatable, func(vote apportionv1.Vote) ([]*apportionv1.Answer, bool) {
		return plainAllocatable(asked, vote), true
	}).ask(ctx, c, in, &apportionv1.SimulateRequest{Input: in.message(), Steps: steps})
	if err != nil {
		return nil, err
	}
	return newAllowances(in, asked, response, from), nil
}

// Victims returns the tasks that a task may evict.
func (c *Client) Victims(ctx context.Context, in Input, asked VictimsQuestion) (*Victims, error) {
	claimant := &apportionv1.Selector{Names: append([]string{asked.Claimant}, asked.With...)}
	var candidates *apportionv1.Selector
	if asked.Candidates != nil {
		candidates = &apportionv1.Selector{Names: asked.Candidates}
	}
	step := &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
		Claimant: claimant, Candidates: candidates, EligibleOnly: asked.EligibleOnly, Explain: asked.Explain, Room: asked.Room,
	}}}
	if asked.Preempt {
		step = &apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{
			Claimant: claimant, Candidates: candidates, EligibleOnly: asked.EligibleOnly, Explain: asked.Explain,
		}}}
	}
	response, from, err := asking(KindVictims, func(apportionv1.Vote) ([]*apportionv1.Answer, bool) {
		return []*apportionv1.Answer{{Answer: &apportionv1.Answer_Reclaim{Reclaim: &apportionv1.VictimsAnswer{Decided: true}}}}, true
	}).ask(ctx, c, in, &apportionv1.SimulateRequest{Input: in.message(), Steps: []*apportionv1.Step{step}})
	if err != nil {
		return nil, err
	}
	return newVictims(in, response, from), nil
}

// ScoreNodes returns the nodes on which tasks fit, with scores.
func (c *Client) ScoreNodes(ctx context.Context, in Input, asked NodesQuestion) (*Scores, error) {
	step := &apportionv1.NodesStep{
		Tasks: &apportionv1.Selector{Names: asked.Tasks}, Top: asked.Top, ByPlugin: asked.ByPlugin, Explain: asked.Explain,
		Jointly: asked.Jointly,
	}
	if asked.Nodes != nil {
		step.Nodes = &apportionv1.Selector{Names: asked.Nodes}
	}
	response, from, err := asking(KindNodes, func(apportionv1.Vote) ([]*apportionv1.Answer, bool) {
		return plainNodes(in, asked), true
	}).ask(ctx, c, in, &apportionv1.SimulateRequest{
		Input: in.message(), Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Nodes{Nodes: step}}},
	})
	if err != nil {
		return nil, err
	}
	return newScores(in, asked, response, from), nil
}

// Explain explains why jobs wait.
func (c *Client) Explain(ctx context.Context, in Input, asked ExplainQuestion) (*Explanations, error) {
	step := &apportionv1.ExplainStep{Filter: asked.Filter}
	if asked.Jobs != nil {
		step.Jobs = &apportionv1.Selector{Names: asked.Jobs}
	}
	response, from, err := question[*apportionv1.ExplainRequest, *apportionv1.ExplainResponse]{
		kind: KindExplain, method: &method.Explain, call: (*stubs).Explain,
		answer: unanswerable[*apportionv1.ExplainResponse],
	}.ask(ctx, c, in, &apportionv1.ExplainRequest{Input: in.message(), Explain: step})
	if err != nil {
		return nil, err
	}
	return &Explanations{Basis: response.GetBasis(), Answer: response.GetExplain(), Fallback: from.by}, nil
}

// Plan returns where the tasks of a job can be placed, and which tasks must be evicted for it.
func (c *Client) Plan(ctx context.Context, in Input, asked PlanQuestion) (*Plan, error) {
	response, from, err := question[*apportionv1.PlanRequest, *apportionv1.PlanResponse]{
		kind: KindPlan, method: &method.Plan, call: (*stubs).Plan,
		answer: unanswerable[*apportionv1.PlanResponse],
	}.ask(ctx, c, in, &apportionv1.PlanRequest{Input: in.message(), Plan: asked.step()})
	if err != nil {
		return nil, err
	}
	return &Plan{Basis: response.GetBasis(), Answer: response.GetPlan(), Fallback: from.by}, nil
}

// Remedies returns the smallest changes that would make a waiting job run.
func (c *Client) Remedies(ctx context.Context, in Input, asked RemediesQuestion) (*Remedies, error) {
	response, from, err := question[*apportionv1.RemediesRequest, *apportionv1.RemediesResponse]{
		kind: KindRemedies, method: &method.Remedies, call: (*stubs).Remedies,
		answer: unanswerable[*apportionv1.RemediesResponse],
	}.ask(ctx, c, in, &apportionv1.RemediesRequest{Input: in.message(), Remedies: asked.step()})
	if err != nil {
		return nil, err
	}
	return &Remedies{Basis: response.GetBasis(), Answer: response.GetRemedies(), Fallback: from.by}, nil
}

// Forecast returns when a waiting job starts, by chance.
func (c *Client) Forecast(ctx context.Context, in Input, asked ForecastQuestion) (*Odds, error) {
	response, from, err := question[*apportionv1.ForecastRequest, *apportionv1.ForecastResponse]{
		kind: KindForecast, method: &method.Forecast, call: (*stubs).Forecast,
		answer: unanswerable[*apportionv1.ForecastResponse],
	}.ask(ctx, c, in, &apportionv1.ForecastRequest{Input: in.message(), Forecast: asked.step()})
	if err != nil {
		return nil, err
	}
	return &Odds{Basis: response.GetBasis(), Answer: response.GetForecast(), Fallback: from.by}, nil
}

// Simulate runs steps in order, each on the state that the previous steps left. A failed step has an answer with an error.
func (c *Client) Simulate(ctx context.Context, in Input, steps ...*apportionv1.Step) (*Simulation, error) {
	response, from, err := question[*apportionv1.SimulateRequest, *apportionv1.SimulateResponse]{
		kind: KindSimulate, method: &method.Simulate, call: (*stubs).Simulate,
		answer: unanswerable[*apportionv1.SimulateResponse],
	}.ask(ctx, c, in, &apportionv1.SimulateRequest{Input: in.message(), Steps: steps})
	if err != nil {
		return nil, err
	}
	return &Simulation{Basis: response.GetBasis(), Answers: response.GetAnswers(), Fallback: from.by}, nil
}
