package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// queueAnswer is the answer of `apportion queue`, in its JSON form.
type queueAnswer struct {
	Basis   message `json:"basis"`
	Queue   message `json:"queue"`
	Shares  message `json:"shares"`
	Explain message `json:"explain"`
}

// newQueue is `apportion queue`.
func newQueue(s streams) *cobra.Command {
	a := &asking{answering: answering{streams: s}, amounts: true}
	var top int
	var whole bool
	command := a.command(&cobra.Command{
		Use:   "queue NAME",
		Short: "Show one queue: what it has, deserves and uses, what waits in it and why, and what comes next",
		Long: `Show a queue for the team that uses it: its settings, what it is guaranteed, deserves and holds, when it
is served, which jobs run, which of its jobs and of those in queues below it wait and why, and which of
them comes next. The waiting jobs are listed in the order in which they are served, at most --top of them.`,
		Example: `  apportion queue research -f cluster.yaml
  apportion queue research --server apportion:7171 --snapshot-name cluster`,
		Args: arguments(1, 1, "one queue"),
	}, func(ctx context.Context, q *question, names []string) error {
		most := top
		if whole {
			most = 0
		}
		return q.oneQueue(ctx, names[0], most)
	})
	a.completeArgs(command, 1, queueNames)
	command.Flags().IntVar(&top, "top", mostListed, "list at most `N` waiting jobs")
	command.Flags().BoolVar(&whole, "all", false, "list every waiting job")
	command.MarkFlagsMutuallyExclusive("top", "all")
	return command
}

// oneQueue shows a queue and what waits in it, at most so many jobs; 0: all.
func (q *question) oneQueue(ctx context.Context, name string, most int) error {
	index, err := q.snapshot.Queue(name)
	if err != nil {
		return err
	}
	queue := q.snapshot.GetQueues()[index]
	explain := explainStep(nil)
	explain.GetExplain().Filter = &apportionv1.PendingFilter{Queues: &apportionv1.Queues{Name: []string{queue.GetName()}}}
	simulation, err := q.simulate(ctx, sharesStep(queue.GetName()), explain)
	if err != nil {
		return err
	}
	shares, explained := simulation.Answers[0].GetShares(), simulation.Answers[1].GetExplain()
	answer := queueAnswer{message{simulation.Basis}, message{queue}, message{shares}, message{explained}}
	return q.answer(simulation.Basis, answer, func(p *render.Printer) {
		p.Queue(index, q.whyUnknown() == "", shares, explained, most)
	})
}
