package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client/lookup"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/submission"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newWhatIf is `apportion whatif`.
func newWhatIf(s streams) *cobra.Command {
	a := &asking{streams: s}
	var file string
	command := &cobra.Command{
		Use:   "whatif --job FILE",
		Short: "Tell what would happen if a job were submitted now",
		Long: `Tell what would happen if a job were submitted to the cluster now: would it enter its queue, might
it be allocated, whom would it evict, and what would everybody deserve then. The file holds a
Volcano Job (batch.volcano.sh), a PodGroup with its Pods, or this:

  name: train
  namespace: ml
  queue: research
  minAvailable: 4
  minResources: {cpu: "32", memory: 256Gi, nvidia.com/gpu: "32"}
  groups:
  - {role: worker, replicas: 4, request: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "8"}}

The exit code is 2 if the job would have to wait.`,
		Example: `  apportion whatif --job train.yaml -f cluster.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := a.output.check(); err != nil {
				return err
			}
			loaded, submitted, err := a.submit(file)
			if err != nil {
				return err
			}
			return a.askAbout(command.Context(), loaded, func(ctx context.Context, q *question) error { return whatIf(ctx, q, submitted) })
		},
	}
	a.register(command, true)
	command.Flags().StringVar(&file, "job", "", "`FILE` of the job")
	if err := errors.Join(command.MarkFlagRequired("job"), command.MarkFlagFilename("job", "yaml", "yml", "json")); err != nil {
		command.PrintErrln(err)
	}
	return command
}

// submit reads the cluster and the job.
func (a *asking) submit(file string) (*input, *submission.Submission, error) {
	if a.input.snapshot != "" {
		return nil, nil, errors.New("whatif reads manifests: give -f in place of --snapshot")
	}
	sources, err := a.input.sources(a.in)
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	policy, warnings, err := a.input.rules()
	if err != nil {
		return nil, nil, err
	}
	moment, given, err := a.input.moment(policy)
	if err != nil {
		return nil, nil, err
	}
	submitted, err := submission.Read(file, data, sources, a.input.options(moment, given)...)
	if err != nil {
		return nil, nil, err
	}
	loaded := &input{snapshot: submitted.Snapshot, warnings: append(submitted.Cluster.Warnings, warnings...)}
	loaded.Snapshot, loaded.Policy, loaded.PolicyName = submitted.Snapshot.Snapshot, policy, a.input.policyName
	return loaded, submitted, nil
}

func whatIf(ctx context.Context, q *question, s *submission.Submission) error {
	larger, index := q.snapshot.With(s.Job)
	shares := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
	simulation, err := q.decider.Simulate(ctx, q.Input,
		shares,
		&apportionv1.Step{Step: &apportionv1.Step_AddJob{AddJob: &apportionv1.AddJobStep{Job: s.Job}}},
		shares,
		explainStep(index))
	if err != nil {
		return err
	}
	for i := range simulation.Answers {
		if err := simulation.Err(i); err != nil {
			return err
		}
	}
	explained := simulation.Answers[3].GetExplain().GetJobs()[0]
	response := &apportionv1.SimulateResponse{Basis: simulation.Basis, Answers: simulation.Answers}
	err = q.write(simulation.Basis, response, func(p *render.Printer) {
		p.Snapshot = larger
		p.Line("if %s were submitted to queue %s now:\n", p.Paint(render.Strong, lookup.JobName(s.Job)), s.Job.GetQueue())
		p.Findings(explained)
		p.Changes(simulation.Answers[0].GetShares(), simulation.Answers[2].GetShares())
		p.Verdict(explained)
	})
	if err != nil {
		return err
	}
	return verdict(goesOn(explained))
}
