package service

import (
	"context"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
)

// EvaluateShares returns what each queue deserves and holds, and the order of queues.
func (c *call) EvaluateShares(ctx context.Context, r *apportionv1.EvaluateSharesRequest) (*apportionv1.EvaluateSharesResponse, error) {
	return answered(ctx, c, &method.EvaluateShares, r)
}

// CheckEnqueue decides which jobs may enter their queues.
func (c *call) CheckEnqueue(ctx context.Context, r *apportionv1.CheckEnqueueRequest) (*apportionv1.CheckEnqueueResponse, error) {
	return answered(ctx, c, &method.CheckEnqueue, r)
}

// CheckAllocatable decides which tasks' queues may use that much more, and which may take it from others.
func (c *call) CheckAllocatable(
	ctx context.Context, r *apportionv1.CheckAllocatableRequest,
) (*apportionv1.CheckAllocatableResponse, error) {
	return answered(ctx, c, &method.CheckAllocatable, r)
}

// SelectVictims returns the tasks that a task may evict.
func (c *call) SelectVictims(ctx context.Context, r *apportionv1.SelectVictimsRequest) (*apportionv1.SelectVictimsResponse, error) {
	return answered(ctx, c, &method.SelectVictims, r)
}

// ScoreNodes returns the nodes on which tasks fit, with scores.
func (c *call) ScoreNodes(ctx context.Context, r *apportionv1.ScoreNodesRequest) (*apportionv1.ScoreNodesResponse, error) {
	return answered(ctx, c, &method.ScoreNodes, r)
}

// Explain explains why jobs wait.
func (c *call) Explain(ctx context.Context, r *apportionv1.ExplainRequest) (*apportionv1.ExplainResponse, error) {
	return answered(ctx, c, &method.Explain, r)
}

// Plan returns where a job can be placed, and which tasks must be evicted for it.
func (c *call) Plan(ctx context.Context, r *apportionv1.PlanRequest) (*apportionv1.PlanResponse, error) {
	return answered(ctx, c, &method.Plan, r)
}

// Forecast returns when a job starts, by chance.
func (c *call) Forecast(ctx context.Context, r *apportionv1.ForecastRequest) (*apportionv1.ForecastResponse, error) {
	return answered(ctx, c, &method.Forecast, r)
}

// Remedies returns changes that would make a job run.
func (c *call) Remedies(ctx context.Context, r *apportionv1.RemediesRequest) (*apportionv1.RemediesResponse, error) {
	return answered(ctx, c, &method.Remedies, r)
}

// Simulate runs a list of steps.
func (c *call) Simulate(ctx context.Context, r *apportionv1.SimulateRequest) (*apportionv1.SimulateResponse, error) {
	return answered(ctx, c, &method.Simulate, r)
}

// answered answers a unary call by its method.
func answered[Q method.Request, A any](ctx context.Context, c *call, m *method.Method[Q, A], request Q) (response A, err error) {
	steps, err := m.Steps(request)
	if err != nil {
		return response, c.server.fail(ctx, err)
	}
	basis, answers, err := c.decide(ctx, m.Name, request.GetInput(), steps)
	if err != nil {
		return response, err
	}
	return m.Response(basis, answers), nil
}
