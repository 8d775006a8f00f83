package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/extender/delegation"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

// newConvert is `apportion convert`.
func newConvert(s streams) *cobra.Command {
	var input inputFlags
	var format, delegate, form, target string
	var reached delegation.Options
	command := &cobra.Command{
		Use:   "convert",
		Short: "Convert manifests to a snapshot, or a configuration to a policy",
		Long: `Convert manifests to a Snapshot of the contract (apportion.v1), or, without manifests, a
volcano-scheduler.conf or a preset to a Policy. Calls from other languages can use the output
directly; digests are computed from the form of -o binary.

With --to fair, propose the settings of policy fair that are nearest to a configuration or a preset:
base NONE for proportion, base DESERVED for capacity. Settings that are dropped, or change their
meaning, cause a warning with line and reason. Use compare to see the effect on a cluster.

With --extender, rewrite a volcano-scheduler.conf so that stock Volcano calls Apportion through its
extender plugin: the delegate form, which decides as the original does and lists what cannot be
delegated exactly, and the shadow form, in which Volcano does not use Apportion's decisions.`,
		Example: `  apportion convert -f cluster.yaml > snapshot.json
  apportion convert --config volcano-scheduler.conf > policy.json
  apportion shares --snapshot snapshot.json --policy policy.json
  apportion convert --config volcano-scheduler.conf --to fair -o yaml > fair.yaml
  apportion convert --extender volcano-scheduler.conf`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if delegate != "" {
				return convertExtender(s, delegate, form, reached)
			}
			if target != "" {
				return convertTo(s, &input, target, format)
			}
			var result proto.Message
			if !input.given() {
				policy, warnings, err := input.rules()
				if err != nil {
					return err
				}
				render.Warnings(s.err, warnings)
				result = policy
			} else {
				loaded, err := input.load(command.Context(), s)
				if err != nil {
					return err
				}
				render.Warnings(s.err, loaded.warnings)
				result = loaded.Snapshot
			}
			return writeConverted(s, format, result)
		},
	}
	input.register(command.Flags())
	command.Flags().StringVarP(&format, "output", "o", formatJSON, "json, yaml or binary")
	mustComplete(command, "output", formatJSON, formatYAML, formatBinary)
	command.Flags().StringVar(&target, "to", "", "propose settings of another policy: "+policyFair)
	mustComplete(command, "to", policyFair)
	command.Flags().StringVar(&delegate, "extender", "", "volcano-scheduler.conf `FILE` to rewrite so that Volcano calls Apportion")
	command.Flags().StringVar(&form, "extender-form", formBoth, "delegate, shadow or both")
	command.Flags().StringVar(&reached.URL, "extender-url", "http://127.0.0.1:7173/volcano", "URL at which Volcano reaches Apportion")
	command.Flags().DurationVar(&reached.Timeout, "extender-timeout", time.Second, "how long Volcano waits for an answer")
	mustComplete(command, "extender-form", formDelegate, formShadow, formBoth)
	for _, other := range []string{"file", "snapshot", "config", "policy", "output", "to"} {
		command.MarkFlagsMutuallyExclusive("extender", other)
	}
	return command
}

// policyFair is the policy that settings can be proposed of.
const policyFair = "fair"

// convertTo writes the settings of another policy that come nearest to a configuration.
func convertTo(s streams, input *inputFlags, target, format string) error {
	switch {
	case target != policyFair:
		return fmt.Errorf("--to: %q is not %s", target, policyFair)
	case len(input.files) > 0 || input.snapshot != "":
		return errors.New("--to takes a configuration or a preset: give --config or --policy, without manifests")
	case input.config == "":
		policy, _, err := input.rules()
		if err != nil {
			return err
		}
		proposed, warnings := volcano.AsFair(policy)
		render.Warnings(s.err, warnings)
		return writeConverted(s, format, proposed)
	}
	data, err := os.ReadFile(input.config)
	if err != nil {
		return err
	}
	proposed, warnings, err := volcano.ReadConfigurationAsFair(volcano.Source{Name: input.config, Data: data})
	if err != nil {
		return err
	}
	render.Warnings(s.err, warnings)
	return writeConverted(s, format, proposed)
}

// The forms of a configuration that asks Apportion.
const (
	formDelegate = "delegate"
	formShadow   = "shadow"
	formBoth     = "both"
)

// convertExtender writes a configuration in the forms that ask Apportion, two of them as documents of one stream.
func convertExtender(s streams, file, form string, options delegation.Options) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	forms, warnings, err := delegation.New(volcano.Source{Name: file, Data: data}, options)
	if err != nil {
		return err
	}
	render.Warnings(s.err, warnings)
	var out []byte
	switch form {
	case formDelegate:
		out = forms.Delegating
	case formShadow:
		out = forms.Shadow
	case formBoth:
		out = slices.Concat(forms.Delegating, []byte("---\n"), forms.Shadow)
	default:
		return fmt.Errorf("--extender-form: %q is neither delegate, shadow nor both", form)
	}
	_, err = s.out.Write(out)
	return err
}

func writeConverted(s streams, format string, result proto.Message) error {
	var data []byte
	var err error
	switch format {
	case formatBinary:
		data, err = proto.MarshalOptions{Deterministic: true}.Marshal(result)
	case formatJSON:
		data, err = document.JSON(result)
	case formatYAML:
		if data, err = document.JSON(result); err == nil {
			data, err = document.YAML(data)
		}
	default:
		err = fmt.Errorf("--output: %q is neither json, yaml nor binary", format)
	}
	if err != nil {
		return err
	}
	_, err = s.out.Write(data)
	return err
}
