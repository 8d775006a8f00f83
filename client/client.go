package client

import (
	"context"

	"google.golang.org/grpc"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Decider answers questions about a snapshot. *Client is one, whether it asks a service or decides in process; tests may have another.
type Decider interface {
	// Shares tells who deserves what, who has what, and who comes first.
	Shares(ctx context.Context, in Input, question SharesQuestion) (*Shares, error)
	// Enqueue tells which jobs may enter their queues.
	Enqueue(ctx context.Context, in Input, question EnqueueQuestion) (*Admissions, error)
	// Allocatable tells whether the queues of tasks may use that much more, and whether they may take it from others.
	Allocatable(ctx context.Context, in Input, question AllocatableQuestion) (*Allowances, error)
	// Victims answers which tasks a task may evict.
	Victims(ctx context.Context, in Input, question VictimsQuestion) (*Victims, error)
	// ScoreNodes tells where tasks fit, and how well.
	ScoreNodes(ctx context.Context, in Input, question NodesQuestion) (*Scores, error)
	// Explain tells why jobs wait.
	Explain(ctx context.Context, in Input, question ExplainQuestion) (*Explanations, error)
	// Simulate answers any list of steps in order, each on the state that the steps before it left.
	Simulate(ctx context.Context, in Input, steps ...*apportionv1.Step) (*Simulation, error)
}

// Input is what a question is about: a snapshot, inline or uploaded, and the policy to decide by.
type Input struct {
	Snapshot *apportionv1.Snapshot
	// Upload takes the place of Snapshot.
	Upload *Upload
	// Policy decides; nil: PolicyName does.
	Policy *apportionv1.Policy
	// PolicyName is that of a policy which the operator of the service configured, or in process of one that WithPolicy gave.
	PolicyName string
}

// snapshot is that of the input, however it is given.
func (in Input) snapshot() *apportionv1.Snapshot {
	if in.Upload != nil {
		return in.Upload.snapshot
	}
	return in.Snapshot
}

// message is the input as it is sent.
func (in Input) message() *apportionv1.Input {
	message := &apportionv1.Input{}
	switch {
	case in.Upload != nil && in.Upload.data == nil:
		message.Source = &apportionv1.Input_Snapshot{Snapshot: in.Upload.snapshot}
	case in.Upload != nil:
		message.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: in.Upload.digest}
	case in.Snapshot != nil:
		message.Source = &apportionv1.Input_Snapshot{Snapshot: in.Snapshot}
	}
	switch {
	case in.Policy != nil:
		message.Rule = &apportionv1.Input_Policy{Policy: in.Policy}
	case in.PolicyName != "":
		message.Rule = &apportionv1.Input_PolicyName{PolicyName: in.PolicyName}
	}
	return message
}

// calls are the unary calls of the contract. The generated client has them, and so has the in-process decider.
type calls interface {
	EvaluateShares(
		ctx context.Context, in *apportionv1.EvaluateSharesRequest, opts ...grpc.CallOption,
	) (*apportionv1.EvaluateSharesResponse, error)
	CheckEnqueue(
		ctx context.Context, in *apportionv1.CheckEnqueueRequest, opts ...grpc.CallOption,
	) (*apportionv1.CheckEnqueueResponse, error)
	CheckAllocatable(
		ctx context.Context, in *apportionv1.CheckAllocatableRequest, opts ...grpc.CallOption,
	) (*apportionv1.CheckAllocatableResponse, error)
	SelectVictims(
		ctx context.Context, in *apportionv1.SelectVictimsRequest, opts ...grpc.CallOption,
	) (*apportionv1.SelectVictimsResponse, error)
	ScoreNodes(ctx context.Context, in *apportionv1.ScoreNodesRequest, opts ...grpc.CallOption) (*apportionv1.ScoreNodesResponse, error)
	Explain(ctx context.Context, in *apportionv1.ExplainRequest, opts ...grpc.CallOption) (*apportionv1.ExplainResponse, error)
	Simulate(ctx context.Context, in *apportionv1.SimulateRequest, opts ...grpc.CallOption) (*apportionv1.SimulateResponse, error)
}

// Client asks a service, or decides in process. It is safe for concurrent use.
type Client struct {
	settings

	calls calls
	// remote is nil in process.
	remote     apportionv1.ApportionServiceClient
	connection *grpc.ClientConn
	engine     local
	budget     budget
	counters   counters
}

var _ Decider = (*Client)(nil)

// InProcess decides in the caller's own process, with the same engine and the same answers, and without a network. Options about the
// network mean nothing here.
func InProcess(opts ...Option) *Client {
	c := &Client{settings: newSettings(opts)}
	c.engine = local{policies: c.policies}
	c.calls = c.engine
	c.counters = newCounters(c.meter)
	return c
}

// Close lets go of the connection. Sessions end with it.
func (c *Client) Close() error {
	if c.connection == nil {
		return nil
	}
	return c.connection.Close()
}
