package client

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
	remote, mirrored apportionv1.ApportionServiceClient
	connections      []*grpc.ClientConn
	engine           local
	budget           budget
	counters         counters
}

var _ Decider = (*Client)(nil)

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
	request := &healthv1.HealthCheckRequest{Service: apportionv1.ApportionService_ServiceDesc.ServiceName}
	response, err := healthv1.NewHealthClient(c.connections[0]).Check(ctx, request)
	if err != nil {
		return err
	}
	if response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return ErrNotServing
	}
	return nil
}
