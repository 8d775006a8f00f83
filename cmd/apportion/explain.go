package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client/lookup"
	"github.com/apportion/apportion/cmd/apportion/internal/diagnosis"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newExplain is `apportion explain`.
func newExplain(s streams) *cobra.Command {
	a := &asking{streams: s}
	command := &cobra.Command{
		Use:   "explain JOB",
		Short: "Say why a job is pending",
		Long: `Ask everything that decides whether a job goes on: may it enter its queue, has its gang the tasks it
needs, is the queue served, may the queue use that much more, is there room on the nodes, and whom
could it evict. The end says in plain words what holds it back. The exit code is 2 if the job must
wait.`,
		Example: `  apportion explain ml/train -f cluster.yaml --config volcano-scheduler.conf`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				index, err := q.snapshot.Job(names[0])
				if err != nil {
					return err
				}
				return explain(ctx, q, diagnosis.Of(q.snapshot, index))
			})
		},
	}
	a.register(command, true)
	return command
}

// explanation is the JSON form of an explanation.
type explanation struct {
	*diagnosis.Diagnosis

	// Simulation holds the answers that the diagnosis rests on, and their basis.
	Simulation message `json:"simulation"`
}

func explain(ctx context.Context, q *question, c *diagnosis.Case) error {
	simulation, err := q.decider.Simulate(ctx, q.Input, c.Steps(0)...)
	if err != nil {
		return err
	}
	answers := diagnosis.Read(simulation.Answers)
	found := c.Diagnose(q.snapshot.Names(simulation.Basis), answers)
	response := &apportionv1.SimulateResponse{Basis: simulation.Basis, Answers: simulation.Answers}
	err = q.writeAny(simulation.Basis, explanation{Diagnosis: found, Simulation: message{response}}, func(p *render.Printer) {
		asks := "asks for no minimum"
		if minimum := c.Job.GetMinResources(); minimum != nil {
			asks = "asks for at least " + render.Amounts(p.Names, minimum)
		}
		p.Line("%s: job of queue %s, priority %d, %s\n", p.Paint(render.Strong, lookup.JobName(c.Job)),
			c.Job.GetQueue(), c.Job.GetPriority(), asks)
		p.Diagnosis(found)
		p.Line("")
		p.QueueShares(answers.Shares())
		p.Verdict(found)
	})
	if err != nil {
		return err
	}
	return verdict(!found.Waits)
}
