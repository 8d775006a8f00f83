package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newShares is `apportion shares`.
func newShares(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}
	var ask client.SharesQuestion
	var tree bool
	command := a.Command(&cobra.Command{
		Use:   "shares [QUEUE...]",
		Short: "Show what each queue deserves and holds, in the order of serving or as a tree",
		Long: `Show for each queue, in the order in which queues are served, what it is guaranteed, deserves, holds
and asks for, and the most it may hold (its real capability). A bar compares the allocated with the
deserved amount; * marks the resource that determines the queue's share.

If the input states what queues used (--ledger), and policy fair decides, a second table shows it: each
queue's part of what it and its siblings used, its weight with memory, and the amount up to which it is
given first what becomes free.

With --tree, show all queues as a tree, with the amounts that they hold, deserve and may hold.`,
		Example: `  apportion shares -f cluster.yaml
  apportion shares research -f cluster.yaml --policy volcano-scheduler.conf --explain
  apportion shares --tree -f cluster.yaml --policy capacity-hierarchical --resource gpu`,
		Args: func(_ *cobra.Command, queues []string) error {
			if tree && len(queues) > 0 {
				return errors.New("--tree shows all queues and takes no arguments")
			}
			return nil
		},
	}, func(ctx context.Context, q *question.Question, queues []string) error {
		if lacks := incomplete(q); lacks != nil {
			// Faults of the input come first.
			_, err := q.Decider.Shares(ctx, q.Input, ask)
			if err == nil {
				// They may say why the input lacks something.
				render.Warnings(q.Err, q.Warnings)
			}
			return cmp.Or(err, lacks)
		}
		if tree {
			return showTree(ctx, q)
		}
		for _, name := range queues {
			if _, err := q.Lookup.Queue(name); err != nil {
				return err
			}
		}
		if len(queues) > 0 {
			ask.Queues = queues
		}
		asked := ask
		// The table shows the weights that follow from past usage, which are part of the derivation.
		asked.Explain = ask.Explain || q.Lookup.GetMemory() != nil && (q.Format == cli.FormatTable || q.Format == cli.FormatWide)
		shares, err := q.Decider.Shares(ctx, q.Input, asked)
		if err != nil {
			return err
		}
		response := &apportionv1.EvaluateSharesResponse{Basis: shares.Basis, Shares: shares.Answer}
		if !ask.Explain {
			response.Shares = underived(shares.Answer)
		}
		return q.Answer(shares.Basis, response, func(p *render.Printer) {
			p.Brief = !ask.Explain
			p.Shares(shares.Answer)
		})
	})
	a.CompleteArgs(command, 0, question.QueueNames)
	command.Flags().BoolVar(&tree, "tree", false, "show the queues as a tree")
	command.Flags().BoolVar(&ask.Explain, "explain", false, "add the derivation of the numbers, step by step")
	command.Flags().BoolVar(&ask.JobShares, "jobs", false, "add the dominant share of every job (drf)")
	command.Flags().BoolVar(&ask.Tree, "fair-tree", false, "add the weighted tree of hierarchical drf")
	for _, other := range []string{"explain", "jobs", "fair-tree"} {
		command.MarkFlagsMutuallyExclusive("tree", other)
	}
	return command
}

// underived returns a copy of an answer without the derivations. The question adds them because the table shows weights from them; JSON and
// YAML have them only with --explain, as the answer to mcp has.
func underived(answer *apportionv1.SharesAnswer) *apportionv1.SharesAnswer {
	out := proto.CloneOf(answer)
	for _, plugin := range out.GetPlugins() {
		plugin.Proportion, plugin.Capacity, plugin.Fair = nil, nil, nil
	}
	return out
}

// incomplete returns an error if the input lacks what is divided, or those among which it is divided. An empty input lacks nothing.
func incomplete(q *question.Question) error {
	of := q.Lookup
	queues, nodes := len(of.GetQueues()), len(of.GetNodes())
	switch {
	case queues+nodes+len(of.GetJobs())+len(of.GetLeftOuts()) == 0:
		fmt.Fprintln(q.Err, "The input holds no queues and no nodes: there is nothing to divide.")
		return nil
	case queues+nodes == 0:
		return errors.New("no share is known: the input has no queues and no nodes" + q.WhyNoNodes())
	case queues == 0:
		return errors.New("there are no shares: the input has no queues")
	}
	return q.Undivided()
}

// showTree shows the queues as a tree.
func showTree(ctx context.Context, q *question.Question) error {
	inspect := &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{}}}
	simulation, err := q.Simulate(ctx, question.SharesStep(), inspect)
	if err != nil {
		return err
	}
	response := &apportionv1.SimulateResponse{Basis: simulation.Basis, Answers: simulation.Answers}
	return q.Answer(simulation.Basis, response, func(p *render.Printer) {
		p.Tree(simulation.Answers[0].GetShares(), simulation.Answers[1].GetInspect().GetTotal())
	})
}
