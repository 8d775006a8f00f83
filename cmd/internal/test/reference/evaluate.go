package reference

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// refusedInput stands for a snapshot that is invalid as a plugin reads it.
const refusedInput = "INVALID_ARGUMENT"

// Result is the result of the comparison of a case.
type Result struct {
	Case *Case
	// Answers were compared; Equal of them are equal in all ways of asking.
	Answers, Equal int
	// Unheld counts the answers that are not compared.
	Unheld map[Rule]int
	// Unsupported: a plugin of the case's configuration is not implemented, so nothing was compared.
	Unsupported bool
	// Failures are the errors of ways of asking that gave no answer.
	Failures    []string
	Differences []Difference
}

// Question is the input of a case, and the steps that ask for the recorded answers, in their order.
func (c *Case) Question() (*apportionv1.Input, []*apportionv1.Step, error) {
	s, err := c.subject()
	if err != nil {
		return nil, nil, err
	}
	return s.input, s.plan(&c.Script).steps, nil
}

// Check asks the questions of a case along all ways, and compares the answers whose pointers contain only.
func (c *Case) Check(ctx context.Context, ways []Way, only string) *Result {
	result := &Result{Case: c}
	s, err := c.subject()
	if err != nil {
		result.Failures = append(result.Failures, err.Error())
		s = &subject{}
	}
	got := make([]any, len(ways))
	for i, way := range ways {
		if err != nil {
			got[i] = absent{}
			continue
		}
		form, failure := c.evaluate(ctx, s, way)
		if failure != nil {
			result.Unsupported = result.Unsupported || status.Code(failure) == codes.Unimplemented
			result.Failures = append(result.Failures, way.Name+": "+failure.Error())
		}
		got[i] = form
	}
	if result.Unsupported {
		return result
	}
	compared := comparison{judge: c.judge(s), only: only, unheld: map[Rule]int{}}
	compared.tree("", nil, c.Expect, got)
	result.Answers, result.Equal, result.Unheld = compared.answers, compared.equal, compared.unheld
	result.Differences = compared.differ
	return result
}

// evaluate is the answers that come along a way, in the recorded form. Where opening the session is the whole recording, so it is here; a
// failure that is expected is an answer.
func (c *Case) evaluate(ctx context.Context, s *subject, way Way) (any, error) {
	_, onlyOpening := c.Expect[opening]
	p := s.plan(&c.Script)
	answers, basis, err := way.Evaluate(ctx, s.input, p.steps)
	switch {
	case onlyOpening && status.Code(err) == codes.InvalidArgument:
		return object{opening: refusedInput}, nil
	case err != nil:
		return absent{}, err
	case onlyOpening:
		return object{opening: "ok"}, nil
	}
	form, err := p.form(answers, basis)
	if err != nil {
		return absent{}, err
	}
	return form, nil
}
