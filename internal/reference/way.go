package reference

import (
	"context"
	"fmt"

	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// InProcess answers without a service: the snapshot is compiled, a session opened, and each step done in it.
func InProcess() Way {
	return Way{"in process", func(_ context.Context, input *apportionv1.Input, steps []*apportionv1.Step,
	) ([]*apportionv1.Answer, *apportionv1.Basis, error) {
		model, err := wire.Compile(input.GetSnapshot())
		if err != nil {
			return nil, nil, statusOfFault(err)
		}
		session, err := wire.Open(model, input.GetPolicy(), wire.Options{})
		if err != nil {
			return nil, nil, statusOfFault(err)
		}
		answers := make([]*apportionv1.Answer, len(steps))
		for i, step := range steps {
			answers[i] = session.Do(step)
		}
		return answers, session.Basis(), nil
	}}
}

func statusOfFault(err error) error { return status.FromProto(wire.Status(err)).Err() }

// Ways returns the way of that name, or all, and what to call when they are no longer needed.
func Ways(name string) (ways []Way, closeWays func(), err error) {
	closeWays = func() {}
	switch name {
	case "", "process":
		ways = append(ways, InProcess())
	default:
		return nil, nil, fmt.Errorf("no way %q: process or service", name)
	}
	return ways, closeWays, nil
}
