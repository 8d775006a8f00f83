// Package method holds the unary calls of the contract that ask questions: the steps that each request asks, and the response that their
// answers make. A service and a client that decides in process answer calls by it, so both give the same answers and the same errors.
package method

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
)

// Request is the request of a call.
type Request interface {
	GetInput() *apportionv1.Input
}

// Method is a call with requests Q and responses A.
type Method[Q Request, A any] struct {
	// Name is the name of the call in the contract.
	Name string
	// Steps returns what a request asks, or a *decode.Fault if it asks nothing.
	Steps func(Q) ([]*apportionv1.Step, error)
	// Response returns the response that the answers make, one for each step.
	Response func(*apportionv1.Basis, []*apportionv1.Answer) A
}

// The methods of the contract.
var (
	EvaluateShares = Method[*apportionv1.EvaluateSharesRequest, *apportionv1.EvaluateSharesResponse]{
		Name: "EvaluateShares",
		Steps: func(r *apportionv1.EvaluateSharesRequest) ([]*apportionv1.Step, error) {
			return one(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: r.GetShares()}})
		},
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.EvaluateSharesResponse {
			return &apportionv1.EvaluateSharesResponse{Basis: basis, Shares: answers[0].GetShares()}
		},
	}
	CheckEnqueue = Method[*apportionv1.CheckEnqueueRequest, *apportionv1.CheckEnqueueResponse]{
		Name: "CheckEnqueue",
		Steps: func(r *apportionv1.CheckEnqueueRequest) ([]*apportionv1.Step, error) {
			return one(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: r.GetEnqueue()}})
		},
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.CheckEnqueueResponse {
			return &apportionv1.CheckEnqueueResponse{Basis: basis, Enqueue: answers[0].GetEnqueue()}
		},
	}
	Explain = Method[*apportionv1.ExplainRequest, *apportionv1.ExplainResponse]{
		Name: "Explain",
		Steps: func(r *apportionv1.ExplainRequest) ([]*apportionv1.Step, error) {
			return one(&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: r.GetExplain()}})
		},
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.ExplainResponse {
			return &apportionv1.ExplainResponse{Basis: basis, Explain: answers[0].GetExplain()}
		},
	}
	Plan = Method[*apportionv1.PlanRequest, *apportionv1.PlanResponse]{
		Name: "Plan",
		Steps: func(r *apportionv1.PlanRequest) ([]*apportionv1.Step, error) {
			if r.GetPlan() == nil {
				return nothing("plan", "the request has no question")
			}
			return one(&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: r.GetPlan()}})
		},
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.PlanResponse {
			return &apportionv1.PlanResponse{Basis: basis, Plan: answers[0].GetPlan()}
		},
	}
	Remedies = Method[*apportionv1.RemediesRequest, *apportionv1.RemediesResponse]{
		Name: "Remedies",
		Steps: func(r *apportionv1.RemediesRequest) ([]*apportionv1.Step, error) {
			if r.GetRemedies() == nil {
				return nothing("remedies", "the request has no question")
			}
			return one(&apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: r.GetRemedies()}})
		},
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.RemediesResponse {
			return &apportionv1.RemediesResponse{Basis: basis, Remedies: answers[0].GetRemedies()}
		},
	}
	Forecast = Method[*apportionv1.ForecastRequest, *apportionv1.ForecastResponse]{
		Name: "Forecast",
		Steps: func(r *apportionv1.ForecastRequest) ([]*apportionv1.Step, error) {
			if r.GetForecast() == nil {
				return nothing("forecast", "the request has no question")
			}
			return one(&apportionv1.Step{Step: &apportionv1.Step_Forecast{Forecast: r.GetForecast()}})
		},
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.ForecastResponse {
			return &apportionv1.ForecastResponse{Basis: basis, Forecast: answers[0].GetForecast()}
		},
	}
	Simulate = Method[*apportionv1.SimulateRequest, *apportionv1.SimulateResponse]{
		Name:  "Simulate",
		Steps: func(r *apportionv1.SimulateRequest) ([]*apportionv1.Step, error) { return r.GetSteps(), nil },
		Response: func(basis *apportionv1.Basis, answers []*apportionv1.Answer) *apportionv1.SimulateResponse {
			return &apportionv1.SimulateResponse{Basis: basis, Answers: answers}
		},
	}
)

func one(step *apportionv1.Step) ([]*apportionv1.Step, error) { return []*apportionv1.Step{step}, nil }

// OneByOne reports whether a method ends with the first step that fails, as those of one question do. The others answer every step.
// Decision logs of earlier versions also name methods that are gone.
func OneByOne(name string) bool {
	call := Named(name)
	return call != nil && IsUnary(call) && name != Simulate.Name || Successor(name) != ""
}

// Ask answers steps as the method of a name does: all together, or one by one up to the first that fails.
func Ask(session *wire.Session, name string, steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	if !OneByOne(name) {
		return session.DoAll(steps)
	}
	answers := make([]*apportionv1.Answer, 0, len(steps))
	for _, step := range steps {
		answer, err := session.Ask(step)
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
