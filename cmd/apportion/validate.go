package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// newValidate is `apportion validate`.
func newValidate(s streams) *cobra.Command {
	v := &validation{streams: s}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Check manifests and a configuration",
		Long: `Check manifests and a configuration. Errors are listed by file, line and key; suspicious or ineffective
settings are warnings. With --strict warnings are errors, such as a field that this version of Volcano
does not have.

With -o json or yaml the result is written to standard output: valid, counts, faults and warnings.
The exit code is 1 if there are errors.`,
		Example: `  apportion validate -f cluster.yaml --config volcano-scheduler.conf
  apportion validate -f queues.yaml --strict -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := v.output.check(); err != nil {
				return err
			}
			return v.finish(v.check(command.Context()))
		},
	}
	v.input.register(command.Flags())
	command.Flags().BoolVar(&v.strict, "strict", false, "treat warnings as errors")
	command.Flags().StringVarP(&v.output.format, "output", "o", formatTable, "table, json or yaml")
	mustComplete(command, "output", formatTable, formatJSON, formatYAML)
	return command
}

// validation is a check of manifests or a policy.
type validation struct {
	streams
	input  inputFlags
	output outputFlags
	strict bool
	found  validated
}

// validated is what a check has found; its JSON form.
type validated struct {
	Valid    bool         `json:"valid"`
	Queues   int          `json:"queues"`
	Jobs     int          `json:"jobs"`
	Tasks    int          `json:"tasks"`
	Nodes    int          `json:"nodes"`
	Plugins  int          `json:"plugins"`
	Tiers    int          `json:"tiers"`
	Faults   []diagnostic `json:"faults"`
	Warnings []diagnostic `json:"warnings"`
	// Omitted counts the faults that are not listed.
	Omitted int `json:"omittedFaults,omitempty"`

	warnings  []*apportionv1.Warning
	manifests bool
}

// diagnostic is a fault or a warning. Place is file:line and the key, or whatever is known of them.
type diagnostic struct {
	Code    string `json:"code,omitempty"`
	Place   string `json:"place,omitempty"`
	Message string `json:"message"`
}

// check fills what was found. An error is a fault of the input, or what kept it from being read.
func (v *validation) check(ctx context.Context) error {
	f := &v.found
	if !v.input.given() {
		if v.input.config == "" && v.input.policy == "" {
			return errors.New("nothing to check: name manifests with -f, or a configuration with --config")
		}
		policy, warnings, err := v.input.rules()
		if err == nil {
			err = checkPolicy(policy)
		}
		f.count(policy)
		f.warnings = warnings
		return err
	}
	loaded, err := v.input.load(ctx, v.streams)
	if err != nil {
		return err
	}
	f.manifests = true
	f.warnings = loaded.warnings
	session, err := client.InProcess().OpenSession(ctx, loaded.Input)
	if err != nil {
		return loaded.named(err)
	}
	f.warnings = slices.Concat(f.warnings, loaded.placed(unsaid(session.Basis().GetWarnings(), loaded.warnings)))
	f.count(loaded.Policy)
	snapshot := loaded.snapshot
	f.Queues, f.Jobs = len(snapshot.GetQueues()), len(snapshot.GetJobs())
	f.Tasks, f.Nodes = len(snapshot.Tasks), len(snapshot.GetNodes())
	return session.Close()
}

// count counts what a policy holds.
func (f *validated) count(policy *apportionv1.Policy) {
	f.Tiers = len(policy.GetTiers())
	for _, tier := range policy.GetTiers() {
		f.Plugins += len(tier.GetPlugins())
	}
}

// finish writes what was found in the format that is asked for.
func (v *validation) finish(err error) error {
	f := &v.found
	if v.strict && err == nil && len(f.warnings) > 0 {
		err = fmt.Errorf("%s, which --strict takes for faults", text.Count(len(f.warnings), "warning"))
	}
	if v.output.format == formatTable {
		render.Warnings(v.err, f.warnings)
		if err != nil {
			return err
		}
		tiers := fmt.Sprintf("%s in %s", text.Count(f.Plugins, "plugin"), text.Count(f.Tiers, "tier"))
		if f.manifests {
			tiers = fmt.Sprintf("%s, %s, %s, %s, %s", text.Count(f.Queues, "queue"), text.Count(f.Jobs, "job"), text.Count(f.Tasks, "task"),
				text.Count(f.Nodes, "node"), tiers)
		}
		fmt.Fprintf(v.out, "valid: %s; %s\n", tiers, text.Count(len(f.warnings), "warning"))
		return nil
	}
	f.Valid, f.Faults, f.Warnings = err == nil, []diagnostic{}, []diagnostic{}
	f.list(err)
	for _, w := range f.warnings {
		f.Warnings = append(f.Warnings, diagnostic{
			Code: strings.TrimPrefix(w.GetCode().String(), "WARNING_CODE_"), Place: w.GetPath(), Message: w.GetMessage(),
		})
	}
	compact, failed := json.Marshal(f)
	if failed != nil {
		return failed
	}
	raw, failed := document.Indent(compact)
	if failed != nil {
		return failed
	}
	if failed := v.output.raw(v.streams, raw); failed != nil {
		return failed
	}
	return err
}

// list lists the faults that an error holds.
func (f *validated) list(err error) {
	if err == nil {
		return
	}
	if faults, ok := errors.AsType[*volcano.Error](err); ok {
		for _, p := range faults.Problems {
			place := fmt.Sprintf("%s:%d", p.File, p.Line)
			if p.Path != "" {
				place += ": " + p.Path
			}
			f.Faults = append(f.Faults, diagnostic{Place: place, Message: p.Message})
		}
		f.Omitted = faults.Total - len(faults.Problems)
		return
	}
	if _, total := client.Violations(err); total > 1 {
		for line := range strings.SplitSeq(describe(err), "\n") {
			f.Faults = append(f.Faults, diagnostic{Message: line})
		}
		return
	}
	f.Faults = append(f.Faults, diagnostic{Message: describe(err)})
}

// checkPolicy finds the faults of a policy.
func checkPolicy(policy *apportionv1.Policy) error {
	if _, err := wire.Policy(policy); err != nil {
		return status.FromProto(wire.Status(err)).Err()
	}
	return nil
}
