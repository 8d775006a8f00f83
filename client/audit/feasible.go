package audit

import (
	"context"
	"slices"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// infeasible finds the jobs of which explanations say that they can never run, unless a rule about their sizes has named them.
func (c *checker) infeasible(ctx context.Context, decider Decider, in client.Input) error {
	const feasibility = apportionv1.CheckKind_CHECK_KIND_FEASIBILITY
	simulation, err := decider.Simulate(ctx, in, &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{
		Filter: &apportionv1.PendingFilter{Checks: []apportionv1.CheckKind{feasibility}},
	}}})
	if err == nil {
		err = simulation.Err(0)
	}
	if err != nil {
		return err
	}
	for _, e := range simulation.Answers[0].GetExplain().GetJobs() {
		job := c.snapshot.GetJobs()[e.GetJob()]
		name := lookup.JobName(job)
		if slices.ContainsFunc(c.found, func(f Finding) bool { return f.Job == name && slices.Contains(sizeRules, f.Rule) }) {
			continue
		}
		for _, f := range e.GetFindings() {
			if f.GetCheck() == feasibility {
				c.say(ruleOf(f), Finding{Queue: job.GetQueue(), Job: name}, "job %s can never run: %s", name, f.GetText())
			}
		}
	}
	return nil
}

// sizeRules are the rules that name jobs which can never run.
var sizeRules = []string{neverFitsNode.ID, neverFitsQueue.ID, gangTooLarge.ID, capabilityMissesResource.ID}

// ruleOf returns the rule of a finding that a job can never run.
func ruleOf(f *apportionv1.Finding) Rule {
	if f.Task != nil {
		return neverFitsNode
	}
	if reasons := f.GetCauses(); len(reasons) > 0 && reasons[0].Queue != nil {
		return neverFitsQueue
	}
	return gangTooLarge
}
