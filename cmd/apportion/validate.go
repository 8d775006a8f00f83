package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// newValidate is `apportion validate`.
func newValidate(s streams) *cobra.Command {
	var input inputFlags
	var strict bool
	command := &cobra.Command{
		Use:   "validate",
		Short: "Check manifests and a configuration",
		Long: `Check that manifests and a configuration can be decided upon. Faults are told by file, line and key;
what is decidable but suspicious, or has no effect, is a warning.`,
		Example: `  apportion validate -f cluster.yaml --config volcano-scheduler.conf`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if len(input.files) == 0 && input.snapshot == "" {
				return validateRules(s, &input, strict)
			}
			loaded, err := input.load(s.in)
			if err != nil {
				return err
			}
			session, err := client.InProcess().OpenSession(command.Context(), loaded.Input)
			if err != nil {
				return err
			}
			warnings := slices.Concat(loaded.warnings, unsaid(session.Basis().GetWarnings(), loaded.warnings))
			render.Warnings(s.err, warnings)
			snapshot := loaded.snapshot
			fmt.Fprintf(s.out, "valid: %d queues, %d jobs, %d tasks, %d nodes, %s; %d warnings\n", len(snapshot.GetQueues()),
				len(snapshot.GetJobs()), len(snapshot.Tasks), len(snapshot.GetNodes()), tiers(loaded.Policy), len(warnings))
			return strictly(strict, warnings)
		},
	}
	input.register(command.Flags())
	command.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	return command
}

// validateRules checks a policy alone.
func validateRules(s streams, input *inputFlags, strict bool) error {
	if input.config == "" && input.policy == "" {
		return errors.New("nothing to check: name manifests with -f, or a configuration with --config")
	}
	policy, warnings, err := input.rules()
	if err != nil {
		return err
	}
	if err := check(policy); err != nil {
		return err
	}
	render.Warnings(s.err, warnings)
	fmt.Fprintf(s.out, "valid: %s; %d warnings\n", tiers(policy), len(warnings))
	return strictly(strict, warnings)
}

// check finds the faults of a policy.
func check(policy *apportionv1.Policy) error {
	if _, err := wire.Policy(policy); err != nil {
		return status.FromProto(wire.Status(err)).Err()
	}
	return nil
}

func strictly(strict bool, warnings []*apportionv1.Warning) error {
	if strict && len(warnings) > 0 {
		return fmt.Errorf("%d warnings", len(warnings))
	}
	return nil
}

// tiers counts what a policy holds.
func tiers(policy *apportionv1.Policy) string {
	plugins := 0
	for _, tier := range policy.GetTiers() {
		plugins += len(tier.GetPlugins())
	}
	return fmt.Sprintf("%d plugins in %d tiers", plugins, len(policy.GetTiers()))
}
