package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newRemedies is `apportion remedies`.
func newRemedies(s streams) *cobra.Command {
	a := &asking{streams: s}
	var ends endFlags
	command := &cobra.Command{
		Use:   "remedies JOB",
		Short: "Find the smallest changes that would let a waiting job run",
		Long: `Find the smallest change of each kind that would let a waiting job run: a smaller minimum or request,
another queue, a higher capability, guarantee, weight or deserved amount of its queue or of one above
it, more nodes, nodes that are uncordoned, running jobs that end, tasks that are evicted, or waiting
for running jobs whose end is known (--ends and --runtime, as of explain). Each change was tried on
the cluster: with it the job runs, and with one step less of it the job does not.

A remedy says which queues would deserve less, and the command below it shows the change in full.
The end says what was not tried. Jobs that come first are not looked at: explain names them. The exit
code is 2 if nothing that was tried lets the job run.

JOB is NAMESPACE/NAME, or NAME alone, of a job or of one of its pods.`,
		Example: `  apportion remedies ml/train -f cluster.yaml --config volcano-scheduler.conf`,
		Args:    exactly(1, "one job"),
		RunE: func(command *cobra.Command, names []string) error {
			return a.ask(command.Context(), func(ctx context.Context, q *question) error {
				if err := ends.set(q.input, a.input.live.On); err != nil {
					return err
				}
				index, err := q.snapshot.JobOrTask(names[0])
				if err != nil {
					return err
				}
				return remedies(ctx, q, index, s)
			})
		},
	}
	a.register(command, true)
	ends.register(command.Flags())
	a.completeArgs(command, 1, waitingJobNames)
	return command
}

// remedies asks for the remedies of a job and shows them.
func remedies(ctx context.Context, q *question, index uint32, s streams) error {
	found, err := remediesOf(ctx, q, index, s)
	if err != nil {
		return err
	}
	response := &apportionv1.RemediesResponse{Basis: found.Basis, Remedies: found.Answer}
	if err := q.write(found.Basis, response, func(p *render.Printer) { p.Remedies(found.Answer) }); err != nil {
		return err
	}
	return verdict(found.Found())
}

// remediesOf asks for the remedies of a job.
func remediesOf(ctx context.Context, q *question, index uint32, s streams) (*client.Remedies, error) {
	job := q.snapshot.GetJobs()[index]
	end := showWaiting(s.err, "trying changes")
	defer end()
	return q.decider.Remedies(ctx, q.Input, client.RemediesQuestion{Job: cmp.Or(job.GetUid(), lookup.JobName(job))})
}
