package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

// newConvert is `apportion convert`.
func newConvert(s streams) *cobra.Command {
	var input inputFlags
	var format string
	command := &cobra.Command{
		Use:   "convert",
		Short: "Translate manifests into a snapshot, or a configuration into a policy",
		Long: `Translate manifests into the Snapshot of the contract (apportion.v1), or, without manifests, a
volcano-scheduler.conf or a preset into the Policy. Calls from other languages take these as they
are; -o binary is the form whose bytes have a digest.`,
		Example: `  apportion convert -f cluster.yaml > snapshot.json
  apportion convert --config volcano-scheduler.conf > policy.json
  apportion shares --snapshot snapshot.json --policy policy.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var result proto.Message
			if len(input.files) == 0 && input.snapshot == "" {
				policy, warnings, err := input.rules()
				if err != nil {
					return err
				}
				render.Warnings(s.err, warnings)
				result = policy
			} else {
				loaded, err := input.load(s.in)
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
	return command
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
