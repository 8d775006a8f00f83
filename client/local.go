package client

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// local answers the calls of the contract in process. Its errors are those of the service.
type local struct {
	policies map[string]*apportionv1.Policy
	// model takes the place of the snapshot in a request, if it is not nil.
	model *model.Model
}

// about returns the engine for requests about a State, and how that is held. Without a State it is l.
func (l local) about(ctx context.Context, s *State) (local, *held, error) {
	if s == nil {
		return l, nil, nil
	}
	at, err := s.inProcess(ctx, stopped(ctx))
	if err != nil {
		return l, nil, err
	}
	l.model = at.model
	return l, at, nil
}

// failure is an error as a service would return it.
func failure(err error) error {
	if err == nil {
		return nil
	}
	return status.FromProto(wire.Status(err)).Err()
}

// open is a session on the input of a request, which lets go of what takes long when stop says so.
func (l local) open(in *apportionv1.Input, stop func() bool) (*wire.Session, error) {
	var policy *apportionv1.Policy
	switch rule := in.GetRule().(type) {
	case nil:
		return nil, failure(wire.InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, "input.policy", "no policy is given"))
	case *apportionv1.Input_Policy:
		policy = rule.Policy
	case *apportionv1.Input_PolicyName:
		if policy = l.policies[rule.PolicyName]; policy == nil {
			known := "none to be named"
			if len(l.policies) > 0 {
				known = strings.Join(slices.Sorted(maps.Keys(l.policies)), ", ")
			}
			return nil, failure(wire.InvalidField(apportionv1.ErrorReason_ERROR_REASON_POLICY_NOT_FOUND, "input.policy_name",
				"no policy %q: in process there are %s", rule.PolicyName, known))
		}
	}
	compiled := l.model
	if compiled == nil {
		snapshot := in.GetSnapshot()
		if snapshot == nil {
			return nil, failure(wire.InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, "input.snapshot",
				"no snapshot is given"))
		}
		var err error
		if compiled, err = wire.Compile(snapshot); err != nil {
			return nil, failure(err)
		}
	}
	session, err := wire.Open(compiled, policy, wire.Options{Stop: stop})
	if err != nil {
		return nil, failure(err)
	}
	session.Texts(in.GetTexts())
	return session, nil
}

// stopped reports whether the answer is no longer needed.
func stopped(ctx context.Context) func() bool { return func() bool { return ctx.Err() != nil } }

// ask opens a session and does one step.
func (l local) ask(ctx context.Context, in *apportionv1.Input, step *apportionv1.Step) (*apportionv1.Basis, *apportionv1.Answer, error) {
	session, err := l.open(in, stopped(ctx))
	if err != nil {
		return nil, nil, err
	}
	basis := session.Basis()
	answer := session.Do(step)
	if fault := answer.GetError(); fault != nil {
		return nil, nil, status.FromProto(fault).Err()
	}
	return basis, answer, nil
}

// EvaluateShares is the call of this name.
func (l local) EvaluateShares(
	ctx context.Context, request *apportionv1.EvaluateSharesRequest, _ ...grpc.CallOption,
) (*apportionv1.EvaluateSharesResponse, error) {
	question := request.GetShares()
	if question == nil {
		question = &apportionv1.SharesStep{}
	}
	basis, answer, err := l.ask(ctx, request.GetInput(), sharesStep(question))
	if err != nil {
		return nil, err
	}
	return &apportionv1.EvaluateSharesResponse{Basis: basis, Shares: answer.GetShares()}, nil
}

// CheckEnqueue is the call of this name.
func (l local) CheckEnqueue(
	ctx context.Context, request *apportionv1.CheckEnqueueRequest, _ ...grpc.CallOption,
) (*apportionv1.CheckEnqueueResponse, error) {
	question := request.GetEnqueue()
	if question == nil {
		question = &apportionv1.EnqueueStep{}
	}
	basis, answer, err := l.ask(ctx, request.GetInput(), &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: question}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.CheckEnqueueResponse{Basis: basis, Enqueue: answer.GetEnqueue()}, nil
}

// CheckAllocatable is the call of this name.
func (l local) CheckAllocatable(
	ctx context.Context, request *apportionv1.CheckAllocatableRequest, _ ...grpc.CallOption,
) (*apportionv1.CheckAllocatableResponse, error) {
	session, err := l.open(request.GetInput(), stopped(ctx))
	if err != nil {
		return nil, err
	}
	response := &apportionv1.CheckAllocatableResponse{Basis: session.Basis()}
	if question := request.GetAllocatable(); question != nil {
		answer := session.Do(&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: question}})
		if fault := answer.GetError(); fault != nil {
			return nil, status.FromProto(fault).Err()
		}
		response.Allocatable = answer.GetAllocatable()
	}
	if question := request.GetPreemptive(); question != nil {
		answer := session.Do(&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: question}})
		if fault := answer.GetError(); fault != nil {
			return nil, status.FromProto(fault).Err()
		}
		response.Preemptive = answer.GetPreemptive()
	}
	return response, nil
}

// SelectVictims is the call of this name.
func (l local) SelectVictims(
	ctx context.Context, request *apportionv1.SelectVictimsRequest, _ ...grpc.CallOption,
) (*apportionv1.SelectVictimsResponse, error) {
	step := &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: request.GetReclaim()}}
	if preempt := request.GetPreempt(); preempt != nil {
		step = &apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: preempt}}
	}
	basis, answer, err := l.ask(ctx, request.GetInput(), step)
	if err != nil {
		return nil, err
	}
	victims := answer.GetReclaim()
	if victims == nil {
		victims = answer.GetPreempt()
	}
	return &apportionv1.SelectVictimsResponse{Basis: basis, Victims: victims}, nil
}

// ScoreNodes is the call of this name.
func (l local) ScoreNodes(
	ctx context.Context, request *apportionv1.ScoreNodesRequest, _ ...grpc.CallOption,
) (*apportionv1.ScoreNodesResponse, error) {
	basis, answer, err := l.ask(ctx, request.GetInput(), &apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: request.GetNodes()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.ScoreNodesResponse{Basis: basis, Nodes: answer.GetNodes()}, nil
}

// Explain is the call of this name.
func (l local) Explain(
	ctx context.Context, request *apportionv1.ExplainRequest, _ ...grpc.CallOption,
) (*apportionv1.ExplainResponse, error) {
	question := request.GetExplain()
	if question == nil {
		question = &apportionv1.ExplainStep{}
	}
	basis, answer, err := l.ask(ctx, request.GetInput(), &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: question}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.ExplainResponse{Basis: basis, Explain: answer.GetExplain()}, nil
}

// Plan is the call of this name.
func (l local) Plan(ctx context.Context, request *apportionv1.PlanRequest, _ ...grpc.CallOption) (*apportionv1.PlanResponse, error) {
	basis, answer, err := l.ask(ctx, request.GetInput(), &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: request.GetPlan()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.PlanResponse{Basis: basis, Plan: answer.GetPlan()}, nil
}

// Remedies is the call of this name.
func (l local) Remedies(
	ctx context.Context, request *apportionv1.RemediesRequest, _ ...grpc.CallOption,
) (*apportionv1.RemediesResponse, error) {
	step := &apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: request.GetRemedies()}}
	basis, answer, err := l.ask(ctx, request.GetInput(), step)
	if err != nil {
		return nil, err
	}
	return &apportionv1.RemediesResponse{Basis: basis, Remedies: answer.GetRemedies()}, nil
}

// Simulate is the call of this name.
func (l local) Simulate(
	ctx context.Context, request *apportionv1.SimulateRequest, _ ...grpc.CallOption,
) (*apportionv1.SimulateResponse, error) {
	session, err := l.open(request.GetInput(), stopped(ctx))
	if err != nil {
		return nil, err
	}
	// Warnings are about the snapshot, not about what the steps make of it.
	basis := session.Basis()
	answers, err := session.DoAll(request.GetSteps())
	if err != nil {
		return nil, failure(err)
	}
	return &apportionv1.SimulateResponse{Basis: basis, Answers: answers}, nil
}

func sharesStep(question *apportionv1.SharesStep) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: question}}
}
