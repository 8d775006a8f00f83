package service

import (
	"context"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// EvaluateShares tells who deserves what, who has what, and who comes first.
func (s *Service) EvaluateShares(
	ctx context.Context, r *apportionv1.EvaluateSharesRequest,
) (*apportionv1.EvaluateSharesResponse, error) {
	out := &apportionv1.EvaluateSharesResponse{}
	err := s.ask(ctx, "EvaluateShares", r.GetInput(), func(c call) error {
		answer, err := c.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: r.GetShares()}})
		out.Basis, out.Shares = c.basis, answer.GetShares()
		return err
	})
	return answered(out, err)
}

// CheckEnqueue tells which jobs may enter their queues.
func (s *Service) CheckEnqueue(ctx context.Context, r *apportionv1.CheckEnqueueRequest) (*apportionv1.CheckEnqueueResponse, error) {
	out := &apportionv1.CheckEnqueueResponse{}
	err := s.ask(ctx, "CheckEnqueue", r.GetInput(), func(c call) error {
		answer, err := c.Ask(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: r.GetEnqueue()}})
		out.Basis, out.Enqueue = c.basis, answer.GetEnqueue()
		return err
	})
	return answered(out, err)
}

// CheckAllocatable tells which tasks' queues may use that much more, and which may take it from others.
func (s *Service) CheckAllocatable(
	ctx context.Context, r *apportionv1.CheckAllocatableRequest,
) (*apportionv1.CheckAllocatableResponse, error) {
	out := &apportionv1.CheckAllocatableResponse{}
	if r.GetAllocatable() == nil && r.GetPreemptive() == nil {
		return nil, s.fail(ctx, invalidRequest("allocatable", "nothing is asked, neither allocatable nor preemptive"))
	}
	err := s.ask(ctx, "CheckAllocatable", r.GetInput(), func(c call) error {
		out.Basis = c.basis
		if q := r.GetAllocatable(); q != nil {
			answer, err := c.Ask(&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: q}})
			if err != nil {
				return err
			}
			out.Allocatable = answer.GetAllocatable()
		}
		if q := r.GetPreemptive(); q != nil {
			answer, err := c.Ask(&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: q}})
			if err != nil {
				return err
			}
			out.Preemptive = answer.GetPreemptive()
		}
		return nil
	})
	return answered(out, err)
}

// SelectVictims tells whom a task may evict.
func (s *Service) SelectVictims(ctx context.Context, r *apportionv1.SelectVictimsRequest) (*apportionv1.SelectVictimsResponse, error) {
	step := &apportionv1.Step{}
	switch q := r.GetQuestion().(type) {
	case *apportionv1.SelectVictimsRequest_Reclaim:
		step.Step = &apportionv1.Step_Reclaim{Reclaim: q.Reclaim}
	case *apportionv1.SelectVictimsRequest_Preempt:
		step.Step = &apportionv1.Step_Preempt{Preempt: q.Preempt}
	default:
		return nil, s.fail(ctx, invalidRequest("question", "nothing is asked, neither reclaim nor preempt"))
	}
	out := &apportionv1.SelectVictimsResponse{}
	err := s.ask(ctx, "SelectVictims", r.GetInput(), func(c call) error {
		answer, err := c.Ask(step)
		out.Basis, out.Victims = c.basis, answer.GetReclaim()
		if r.GetPreempt() != nil {
			out.Victims = answer.GetPreempt()
		}
		return err
	})
	return answered(out, err)
}

// ScoreNodes tells where tasks fit, and how well.
func (s *Service) ScoreNodes(ctx context.Context, r *apportionv1.ScoreNodesRequest) (*apportionv1.ScoreNodesResponse, error) {
	if r.GetNodes() == nil {
		return nil, s.fail(ctx, invalidRequest("nodes", "nothing is asked"))
	}
	out := &apportionv1.ScoreNodesResponse{}
	err := s.ask(ctx, "ScoreNodes", r.GetInput(), func(c call) error {
		answer, err := c.Ask(&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: r.GetNodes()}})
		out.Basis, out.Nodes = c.basis, answer.GetNodes()
		return err
	})
	return answered(out, err)
}

// Simulate does any list of steps.
func (s *Service) Simulate(ctx context.Context, r *apportionv1.SimulateRequest) (*apportionv1.SimulateResponse, error) {
	out := &apportionv1.SimulateResponse{}
	err := s.ask(ctx, "Simulate", r.GetInput(), func(c call) error {
		var err error
		out.Basis = c.basis
		out.Answers, err = c.DoAll(r.GetSteps())
		return err
	})
	return answered(out, err)
}

// answered returns no response beside an error.
func answered[R any](response *R, err error) (*R, error) {
	if err != nil {
		return nil, err
	}
	return response, nil
}
