package main

import (
	"context"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// decideAlone asks about each job that waits, as if it were the only one: kueue decides about whole workloads and fair about tasks, and
// this question has the same meaning for both.
func (s *side) decideAlone(ctx context.Context, session *client.Session) error {
	answers, err := answersOf(ctx, session, comparison.Steps()...)
	if err != nil {
		return err
	}
	s.basis, s.shares = session.Basis(), answers[0].GetShares()
	s.outcome = comparison.Alone(s.snapshot, answers[1].GetExplain())
	var steps []*apportionv1.Step
	for _, e := range answers[1].GetExplain().GetJobs() {
		if e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED && e.GetKueue() == nil {
			steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
				Job: &apportionv1.Jobs{Index: []uint32{e.GetJob()}},
			}}})
		}
	}
	// A plan of each job is dear: of many, the first are compared.
	const most = 200
	if len(steps) > most {
		steps, s.omitted = steps[:most], len(steps)-most
	}
	plans, err := session.Do(ctx, steps...)
	if err != nil {
		return err
	}
	for _, a := range plans {
		s.outcome.AddPlan(s.snapshot, a.GetPlan())
	}
	return nil
}
