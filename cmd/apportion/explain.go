package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newExplain is `apportion explain`.
func newExplain(s streams) *cobra.Command {
	a := &asking{streams: s}
	var all, bare bool
	var namespace string
	var ends endFlags
	command := &cobra.Command{
		Use:   "explain JOB | --all",
		Short: "Explain why a job is pending",
		Long: `Check everything that can block a job: may it enter its queue, does its gang have enough tasks, is the
queue served, may the queue use that much more, is there room on the nodes, do the jobs that are served
before leave enough, and which evictions would make room. The last lines name the cause. The exit code
is 2 if something blocks the job, or if that is unknown. If the program itself decides, it then lists
changes that would let the job run, as remedies does in full; with -o json or yaml, or
--no-remedies, it does not.

If it is known when running jobs end, a forecast says when the job could start at the earliest if
nothing else changes, and which ends this depends on. Ends come from --ends, from the annotations
apportion.dev/expected-end (a time) and apportion.dev/expected-runtime (a duration) of a PodGroup,
from activeDeadlineSeconds of all pods of a job, and from --runtime of its queue.

JOB is NAMESPACE/NAME, or NAME alone, of a job or of one of its pods. With --all every waiting job is
explained, as by pending.`,
		Example: `  apportion explain ml/train -f cluster.yaml --config volcano-scheduler.conf`,
		Args: func(_ *cobra.Command, names []string) error {
			if all != (len(names) == 0) || len(names) > 1 {
				return errors.New("name one job, or give --all")
			}
			return nil
		},
		RunE: func(command *cobra.Command, names []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				if err := ends.set(q.input, a.input.live.On); err != nil {
					return err
				}
				if all {
					return pending(ctx, q, &listFlags{keys: []string{"cause"}})
				}
				name := names[0]
				if namespace != "" && !strings.Contains(name, "/") {
					name = namespace + "/" + name
				}
				index, err := q.snapshot.JobOrTask(name)
				switch {
				case err == nil:
					return explain(ctx, q, index, func() (*client.Remedies, error) {
						if bare || a.server.address != "" || a.output.format != formatTable {
							return nil, nil
						}
						return remediesOf(ctx, q, index, s)
					})
				case q.snapshot.LeftOut(name):
					return explainLeftOut(ctx, q, name)
				}
				return err
			})
		},
	}
	a.register(command, true)
	a.watch.register(command.Flags())
	ends.register(command.Flags())
	a.completeArgs(command, 1, waitingJobNames)
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "`NAMESPACE` of a job that is given without one")
	command.Flags().BoolVar(&bare, "no-remedies", false, "do not look for changes that would let the job run")
	command.Flags().BoolVar(&all, "all", false, "explain every waiting job")
	return command
}

// explainLeftOut says why a job or a pod is not considered.
func explainLeftOut(ctx context.Context, q *question, name string) error {
	explanations, err := q.decider.Explain(ctx, q.Input, client.ExplainQuestion{Jobs: []string{name}})
	if err != nil {
		return err
	}
	response := &apportionv1.ExplainResponse{Basis: explanations.Basis, Explain: explanations.Answer}
	err = q.write(explanations.Basis, response, func(p *render.Printer) { p.Text(render.Bad, explanations.Answer.GetText()) })
	if err != nil {
		return err
	}
	return errDecidedNo
}

// explainStep asks about one job.
func explainStep(job uint32) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{
		Jobs: &apportionv1.Jobs{Index: []uint32{job}},
	}}}
}

// explain says why one job waits, and shows the shares of its queue.
func explain(ctx context.Context, q *question, index uint32, help func() (*client.Remedies, error)) error {
	job := q.snapshot.GetJobs()[index]
	simulation, err := q.decider.Simulate(ctx, q.Input, explainStep(index), &apportionv1.Step{
		Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Queues: &apportionv1.Queues{Name: []string{job.GetQueue()}}}},
	})
	if err != nil {
		return err
	}
	for i := range simulation.Answers {
		if err := simulation.Err(i); err != nil {
			return err
		}
	}
	answer := simulation.Answers[0].GetExplain()
	explained := answer.GetJobs()[0]
	var found *client.Remedies
	if !goesOn(explained) {
		if found, err = help(); err != nil {
			return err
		}
	}
	response := &apportionv1.ExplainResponse{Basis: simulation.Basis, Explain: answer}
	err = q.write(simulation.Basis, response, func(p *render.Printer) {
		asks := "asks for no minimum"
		if minimum := job.GetMinResources(); minimum != nil {
			asks = "asks for at least " + text.Amounts(snapshotNames(q.snapshot), minimum)
		}
		p.Wrapped("%s: job of queue %s, priority %d, %s", p.Paint(render.Strong, lookup.JobName(job)),
			job.GetQueue(), job.GetPriority(), asks)
		p.Line("")
		p.Findings(explained)
		p.Line("")
		p.QueueShares(simulation.Answers[1].GetShares())
		p.Verdict(explained)
		if found != nil && len(found.Answer.GetRemedies()) > 0 {
			p.RemedyList(found.Answer)
		}
	})
	if err != nil {
		return err
	}
	return verdict(goesOn(explained))
}

// goesOn reports whether nothing is known to hold a job back.
func goesOn(e *apportionv1.Explanation) bool {
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		return true
	default:
		return false
	}
}

// snapshotNames names what resources of the snapshot itself refer to.
func snapshotNames(snapshot *lookup.Snapshot) text.Names {
	return text.Names{Dimensions: snapshot.GetDimensions()}
}
