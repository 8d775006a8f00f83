package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

// queueAnswer is the answer of `apportion queue`, in its JSON form.
type queueAnswer struct {
	Basis   cli.Message `json:"basis"`
	Queue   cli.Message `json:"queue"`
	Shares  cli.Message `json:"shares"`
	Explain cli.Message `json:"explain"`
	// Next explains the first waiting jobs, with forecasts where the ends of running jobs are known.
	Next    cli.Message `json:"next,omitzero"`
	History cli.Message `json:"history,omitzero"`
}

// newQueue is `apportion queue`.
func newQueue(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}
	var top int
	var whole bool
	command := a.Command(&cobra.Command{
		Use:   "queue NAME",
		Short: "Show one queue: what it has, deserves and uses, what waits in it and why, and what comes next",
		Long: `Show a queue for the team that uses it: its settings, what it is guaranteed, deserves and holds, when it
is served, which jobs run, which of its jobs and of those in queues below it wait and why, and which of
them comes next. The waiting jobs are listed in the order in which they are served, at most --top of them.
If it is known when running jobs end, the end says when the first waiting jobs could start at the earliest.
About a cluster that a server follows (--snapshot-name), it also says since when jobs of the queue wait and
since when it is not served, and shows what it held over time.`,
		Example: `  apportion queue research -f cluster.yaml
  apportion queue research --server apportion:7171 --snapshot-name cluster`,
		Args: cli.Arguments(1, 1, "one queue"),
	}, func(ctx context.Context, q *question.Question, names []string) error {
		most := top
		if whole {
			most = 0
		}
		return showQueue(ctx, q, names[0], most)
	})
	a.CompleteArgs(command, 1, question.QueueNames)
	command.Flags().IntVar(&top, "top", mostListed, "list at most `N` waiting jobs")
	command.Flags().BoolVar(&whole, "all", false, "list every waiting job")
	command.MarkFlagsMutuallyExclusive("top", "all")
	return command
}

// showQueue shows a queue and what waits in it, at most so many jobs; 0: all.
func showQueue(ctx context.Context, q *question.Question, name string, most int) error {
	index, err := q.Lookup.Queue(name)
	if err != nil {
		return err
	}
	// Without nodes no task is on one, and no share is known.
	if err := cmp.Or(q.Unknown(), q.Undivided()); err != nil {
		return err
	}
	queue := q.Lookup.GetQueues()[index]
	explain := question.ExplainStep(nil)
	explain.GetExplain().Filter = &apportionv1.PendingFilter{Queues: &apportionv1.Selector{Names: []string{queue.GetName()}}}
	simulation, err := q.Simulate(ctx, q.WithShares(explain, queue.GetName())...)
	if err != nil {
		return err
	}
	var shares *apportionv1.SharesAnswer
	explained := simulation.Answers[0].GetExplain()
	if len(simulation.Answers) > 1 {
		shares = simulation.Answers[1].GetShares()
	}
	past, err := pastOf(ctx, q, &apportionv1alpha1.GetHistoryRequest{
		Queues: []string{queue.GetName()}, Jobs: first(explained, mostForecasts),
	})
	if err != nil {
		return err
	}
	answer := queueAnswer{
		Basis: cli.Within(simulation.Basis), Queue: cli.Within(queue), Shares: cli.Within(shares), Explain: cli.Within(explained),
		History: cli.Within(past),
	}
	var next *apportionv1.ExplainAnswer
	if ids := first(explained, mostForecasts); len(ids) > 0 && endsKnown(q) {
		simulation, err := q.Simulate(ctx, question.ExplainStep(&apportionv1.Selector{Names: ids}))
		if err != nil {
			return err
		}
		next = simulation.Answers[0].GetExplain()
		answer.Next = cli.Within(next)
	}
	return q.Answer(simulation.Basis, answer, func(p *render.Printer) {
		clock := render.Clock(time.Now())
		p.Since = sincePending(q, past, clock)
		p.Queue(index, shares, explained, most)
		p.Next(next)
		if past != nil {
			p.QueueSince(past, clock)
		}
	})
}

// mostForecasts is the number of waiting jobs whose start is foreseen; a question about more of them has no forecasts.
const mostForecasts = 4

// first returns the first waiting jobs of an answer.
func first(explained *apportionv1.ExplainAnswer, most int) []string {
	var ids []string
	for _, e := range explained.GetJobs()[:min(most, len(explained.GetJobs()))] {
		ids = append(ids, e.GetUid())
	}
	return ids
}

// endsKnown reports whether the end of some job is known.
func endsKnown(q *question.Question) bool {
	return slices.ContainsFunc(q.Lookup.GetJobs(), func(job *apportionv1.Job) bool { return job.GetExpectedEnd() != 0 })
}
