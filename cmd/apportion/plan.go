package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// planMeans are the values of --by.
var planMeans = map[string]apportionv1.PlanMeans{
	"any": apportionv1.PlanMeans_PLAN_MEANS_ANY, "place": apportionv1.PlanMeans_PLAN_MEANS_PLACE,
	"reclaim": apportionv1.PlanMeans_PLAN_MEANS_RECLAIM, "preempt": apportionv1.PlanMeans_PLAN_MEANS_PREEMPT,
}

// newPlan is `apportion plan`.
func newPlan(s streams) *cobra.Command {
	a := &asking{streams: s}
	var ask client.PlanQuestion
	var by string
	command := &cobra.Command{
		Use:   "plan JOB",
		Short: "Find a place for a job and the fewest tasks to evict for it",
		Long: `Find a place for the tasks that the gang of a job needs, and the smallest set of running tasks to evict
for them: fewer tasks first, then lower priorities, then younger tasks. The plan places all tasks or
none. Before it is shown, it is executed by the policy's own rules and undone.

If there is no plan, the last lines show what is missing on the nearest node, and what protects the
tasks there. The exit code is then 2.

JOB is NAMESPACE/NAME, or NAME alone, of a job or of one of its pods.`,
		Example: `  apportion plan ml/train -f cluster.yaml --config volcano-scheduler.conf
  apportion plan ml/train --by place -f cluster.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			means, known := planMeans[by]
			if !known {
				return fmt.Errorf("--by %s is none of any, place, reclaim and preempt", by)
			}
			ask.Means = means
			return a.ask(command.Context(), func(ctx context.Context, q *question) error { return plan(ctx, q, names[0], ask) })
		},
	}
	a.register(command, true)
	command.Flags().StringVar(&by, "by", "any", "how to make room: any, place (evict no task), reclaim (from other queues) or preempt")
	command.Flags().Uint32Var(&ask.MaxVictims, "max-victims", 0, "evict at most `N` tasks; 0: no bound")
	_ = command.RegisterFlagCompletionFunc("by", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := []string{"any", "place", "reclaim", "preempt"}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return command
}

// plan asks for a plan and shows it.
func plan(ctx context.Context, q *question, name string, ask client.PlanQuestion) error {
	index, err := q.snapshot.JobOrTask(name)
	if err != nil {
		return err
	}
	job := q.snapshot.GetJobs()[index]
	ask.Job = cmp.Or(job.GetUid(), lookup.JobName(job))
	made, err := q.decider.Plan(ctx, q.Input, ask)
	if err != nil {
		return err
	}
	response := &apportionv1.PlanResponse{Basis: made.Basis, Plan: made.Answer}
	err = q.write(made.Basis, response, func(p *render.Printer) { p.Plan(made.Answer) })
	if err != nil {
		return err
	}
	return verdict(made.Made())
}
