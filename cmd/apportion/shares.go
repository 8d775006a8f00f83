package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newShares is `apportion shares`.
func newShares(s streams) *cobra.Command {
	a := &asking{streams: s}
	var ask client.SharesQuestion
	command := &cobra.Command{
		Use:   "shares [QUEUE...]",
		Short: "Show what each queue deserves and holds, in the order of serving",
		Long: `Show for each queue, in the order in which queues are served, what it is guaranteed, deserves, holds
and asks for, and the most it may hold (its real capability). A bar compares the allocated with the
deserved amount; * marks the resource that determines the queue's share.`,
		Example: `  apportion shares -f cluster.yaml
  apportion shares research -f cluster.yaml --config volcano-scheduler.conf --explain`,
		RunE: func(command *cobra.Command, queues []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				for _, name := range queues {
					if _, err := q.snapshot.Queue(name); err != nil {
						return err
					}
				}
				if len(queues) > 0 {
					ask.Queues = queues
				}
				shares, err := q.decider.Shares(ctx, q.Input, ask)
				if err != nil {
					return err
				}
				response := &apportionv1.EvaluateSharesResponse{Basis: shares.Basis, Shares: shares.Answer}
				return q.write(shares.Basis, response, func(p *render.Printer) { p.Shares(shares.Answer) })
			})
		},
	}
	a.register(command, true)
	a.watch.register(command.Flags())
	a.completeArgs(command, 0, queueNames)
	command.Flags().BoolVar(&ask.Explain, "explain", false, "add the derivation of the numbers, step by step")
	command.Flags().BoolVar(&ask.JobShares, "jobs", false, "add the dominant share of every job (drf)")
	command.Flags().BoolVar(&ask.Tree, "fair-tree", false, "add the weighted tree of hierarchical drf")
	return command
}

// newTree is `apportion tree`.
func newTree(s streams) *cobra.Command {
	a := &asking{streams: s}
	command := &cobra.Command{
		Use:   "tree",
		Short: "Show the queues as a tree, with the amounts that they hold, deserve and may hold",
		Example: `  apportion tree -f cluster.yaml --policy capacity-hierarchical
  apportion tree -f cluster.yaml --resource gpu`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				simulation, err := q.decider.Simulate(ctx, q.Input,
					&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
					&apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{}}})
				if err != nil {
					return err
				}
				for i := range simulation.Answers {
					if err := simulation.Err(i); err != nil {
						return err
					}
				}
				response := &apportionv1.SimulateResponse{Basis: simulation.Basis, Answers: simulation.Answers}
				return q.write(simulation.Basis, response, func(p *render.Printer) {
					p.Tree(simulation.Answers[0].GetShares(), simulation.Answers[1].GetInspect().GetTotal())
				})
			})
		},
	}
	a.register(command, true)
	a.watch.register(command.Flags())
	return command
}
