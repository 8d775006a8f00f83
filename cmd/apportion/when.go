package main

import (
	"cmp"
	"context"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// when shows when a job could start at the earliest, and on which nodes.
func (q *question) when(ctx context.Context, job string) error {
	end := showWaiting(q.err, "looking ahead")
	made, err := q.decider.Explain(ctx, q.Input, client.ExplainQuestion{Jobs: []string{job}})
	end()
	if err != nil {
		return err
	}
	found := made.Answer.GetJobs()[0]
	response := &apportionv1.ExplainResponse{Basis: made.Basis, Explain: made.Answer}
	err = q.answer(made.Basis, response, func(p *render.Printer) { p.When(found) })
	starts := found.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN
	switch found.GetForecast().GetOutcome() {
	case apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOW, apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT:
		starts = true
	default:
	}
	return cmp.Or(err, verdict(starts && len(found.GetUnjudged()) == 0))
}
