package checker

import (
	"errors"
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Check returns a sentence for each number of an answer that does not follow from the snapshot by the rules; none if every number is
// correct. The request's first step asks for shares with `explain`; plans of reclaim steps that follow at once are checked too. It returns
// an error if it could not check the answer.
func Check(request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) (faults []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			faults, err = nil, fmt.Errorf("the answer does not fit the request: %v", p)
		}
	}()
	settings := settingsOf(request.GetInput().GetPolicy())
	switch {
	case request.GetInput().GetSnapshot() == nil:
		return nil, errors.New("the request holds no snapshot")
	case settings == nil:
		return nil, errors.New("the request holds no policy with the plugin fair")
	case len(response.GetAnswers()) == 0:
		return nil, errors.New("the response holds no answer")
	}
	c := &check{cluster: read(request.GetInput().GetSnapshot(), settings, response.GetBasis().GetDimensions())}
	for _, p := range response.GetAnswers()[0].GetShares().GetPlugins() {
		if p.GetFair() != nil {
			c.fair = p.GetFair()
		}
	}
	if c.fair == nil {
		return nil, errors.New("the first answer has no shares of the plugin fair with their certificate: ask with `explain`")
	}
	c.divisions()
	c.claims()
	for i, step := range request.GetSteps() {
		switch q := step.GetStep().(type) {
		case *apportionv1.Step_Shares, *apportionv1.Step_Order, *apportionv1.Step_Jobs, *apportionv1.Step_Inspect:
		case *apportionv1.Step_Reclaim:
			c.plan(fmt.Sprintf("answers[%d].reclaim", i), q.Reclaim, response.GetAnswers()[i].GetReclaim())
		default:
			return c.faults, nil
		}
	}
	return c.faults, nil
}

func settingsOf(policy *apportionv1.Policy) *apportionv1.Fair {
	for _, tier := range policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if plugin.GetFair() != nil {
				return plugin.GetFair()
			}
		}
	}
	return nil
}
