package reference

import (
	"context"
	"fmt"

	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Evaluator answers steps about an input. An error is a gRPC status.
type Evaluator func(context.Context, *apportionv1.Input, []*apportionv1.Step) ([]*apportionv1.Answer, *apportionv1.Basis, error)

// Way is a way along which answers come.
type Way struct {
	Name     string
	Evaluate Evaluator
}

// InProcess answers without a service: the snapshot is compiled, a session opened, and each step done in it.
func InProcess() Way {
	return Way{"process", func(_ context.Context, input *apportionv1.Input, steps []*apportionv1.Step,
	) ([]*apportionv1.Answer, *apportionv1.Basis, error) {
		model, err := wire.Compile(input.GetSnapshot())
		if err != nil {
			return nil, nil, statusOf(err)
		}
		session, err := wire.Open(model, input.GetPolicy(), wire.Options{})
		if err != nil {
			return nil, nil, statusOf(err)
		}
		answers := make([]*apportionv1.Answer, len(steps))
		for i, step := range steps {
			answers[i] = session.Do(step)
		}
		return answers, session.Basis(), nil
	}}
}

func statusOf(err error) error { return status.FromProto(wire.Status(err)).Err() }

// Called answers through a service: all steps in one call of Simulate.
func Called(client apportionv1.ApportionServiceClient) Way {
	return Way{"service", func(ctx context.Context, input *apportionv1.Input, steps []*apportionv1.Step,
	) ([]*apportionv1.Answer, *apportionv1.Basis, error) {
		response, err := client.Simulate(ctx, &apportionv1.SimulateRequest{Input: input, Steps: steps})
		return response.GetAnswers(), response.GetBasis(), err
	}}
}

// Ways returns the way of a name, or all where it is empty. stop ends what they need.
func Ways(name string) (ways []Way, stop func(), err error) {
	stop = func() {}
	if name == "" || name == "process" {
		ways = append(ways, InProcess())
	}
	if len(ways) == 0 {
		return nil, nil, fmt.Errorf("no way is named %q; there are process and service", name)
	}
	return ways, stop, nil
}
