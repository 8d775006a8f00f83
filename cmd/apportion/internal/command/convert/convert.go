// Package convert has the commands that write clusters, policies and settings for other programs: convert and generate.
package convert

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/extender/delegation"
	"github.com/apportion/apportion/adapter/fairshare"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// New is `apportion convert`.
func New(s cli.Streams) *cobra.Command {
	var input question.InputFlags
	var target, system, into string
	var reached delegation.Options
	form, release := formBoth, ""
	c := &converting{cli.Answering{Streams: s, Format: cli.FormatJSON}}
	command := &cobra.Command{
		Use:   "convert",
		Short: "Convert manifests to a snapshot, or a configuration to a policy",
		Long: `Convert manifests to a Snapshot of the contract (apportion.v1), or, without manifests, a
volcano-scheduler.conf or a preset to a Policy. Calls from other languages can use the output
directly; digests are computed from the form of -o binary.

Where releases of Volcano differ in their decisions, --volcano names the one whose decisions the policy
takes. Without it that is the release of the image of the Deployment volcano-scheduler, if the file of
--policy contains it beside the ConfigMap, and v1.15 else; docs/volcano.md lists the differences.

With --to fair, propose the settings of policy fair that are nearest to a configuration or a preset:
base NONE for proportion, base DESERVED for capacity. Settings that are dropped, or change their
meaning, cause a warning with line and reason. Use diff to see the effect on a cluster.

With --to fair and -f, propose policy fair and its queues for ClusterQueues and Cohorts of Kueue, as documents
of one stream or as files in --into, which then also has the cluster as fair sees it (snapshot.json).

With --from, propose policy fair with memory for the settings by which Slurm, KAI or Kueue share by past
usage: a policy, settings of the ledger, budgets and queues, as documents of one stream or as files in
--into. Every setting that is dropped, or changes its meaning, causes a warning with the reason. -f names
slurm.conf and the output of sacctmgr show assoc -P format=Cluster,Account,ParentName,User,Share,GrpTRESMins,GrpTRES;
KAI's SchedulingShard and Queues; or Kueue's Configuration, or the ConfigMap that holds it.

With --to extender, rewrite the volcano-scheduler.conf of --policy so that stock Volcano calls Apportion
through its extender plugin: the delegate form, which decides as the original does and lists what cannot
be delegated exactly, and the shadow form, in which Volcano does not use Apportion's decisions.`,
		Example: `  apportion convert -f cluster.yaml > snapshot.json
  apportion convert --policy volcano-scheduler.conf > policy.json
  apportion shares --snapshot snapshot.json --policy policy.json
  apportion convert --policy volcano-scheduler.conf --volcano v1.16 > policy.json
  apportion convert --policy volcano-scheduler.conf --to fair -o yaml > fair.yaml
  apportion convert --to fair -f kueue.yaml --into settings
  apportion convert --from slurm -f slurm.conf -f assoc.txt --into settings
  apportion convert --policy volcano-scheduler.conf --to extender`,
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case system != "":
				return convertFrom(s, &input, system, into)
			case into != "" && (target == "" || len(input.Files) == 0):
				return errors.New("--into: it is where --from writes, and --to with -f; name the system with --from")
			case target == targetExtender:
				return convertExtender(s, &input, form, reached)
			case target != "":
				return convertTo(command.Context(), c, &input, into)
			case !input.Given():
				rules, err := input.Rules(nil)
				if err != nil {
					return err
				}
				render.Warnings(s.Err, rules.Warnings)
				setRelease(rules.Message, release)
				return c.writeMessage(rules.Message)
			}
			loaded, err := input.Load(command.Context(), s)
			if err != nil {
				return err
			}
			render.Warnings(s.Err, loaded.Warnings)
			return c.writeMessage(loaded.Snapshot)
		},
	}
	input.Register(command)
	c.Register(command, cli.FormatBinary)
	cli.Choose(command, &target, "to", "", "propose settings of another policy, or of Volcano's extender plugin",
		policyFair, targetExtender)
	cli.Choose(command, &release, "volcano", "", "release of Volcano whose decisions the policy takes; default: that of the Deployment, "+
		"else "+release115, release115, release116)
	registerFrom(command, &system, &into)
	cli.Choose(command, &form, "extender-form", "", "which configurations to write with --to extender", formDelegate, formShadow, formBoth)
	registerReached(command, &reached)
	excludeForms(command)
	command.PreRunE = func(*cobra.Command, []string) error { return outputFits(command, target, &input) }
	return command
}

// registerFrom adds the flags that name another system, and where to write.
func registerFrom(command *cobra.Command, system, into *string) {
	cli.Choose(command, system, "from", "", "propose policy fair with memory for the settings in -f of a system",
		string(fairshare.Slurm), string(fairshare.KAI), string(fairshare.Kueue))
	command.Flags().StringVar(into, "into", "",
		"`DIRECTORY` for the files of --from or --to, none of which exists; it is made; default: standard output")
}

// registerReached adds the flags that say how Volcano reaches Apportion.
func registerReached(command *cobra.Command, reached *delegation.Options) {
	command.Flags().StringVar(&reached.URL, "extender-url", "http://127.0.0.1:7173/volcano", "URL at which Volcano reaches Apportion")
	cli.DurationVar(command.Flags(), &reached.Timeout, "extender-timeout", time.Second, "how long Volcano waits for an answer")
}

// outputFits returns an error for a format where convert writes files for other programs.
func outputFits(command *cobra.Command, target string, input *question.InputFlags) error {
	manifests := target == targetExtender || target != "" && len(input.Files) > 0
	if manifests && command.Flags().Changed("output") && command.Flag("output").Value.String() != cli.FormatYAML {
		return errors.New("-o: --to extender, and --to fair with -f, write files for other programs, in YAML")
	}
	return nil
}

// excludeForms makes flags of different forms of convert exclude each other.
func excludeForms(command *cobra.Command) {
	for _, other := range []string{"file", "snapshot", "from", "to"} {
		command.MarkFlagsMutuallyExclusive("volcano", other)
	}
	for _, other := range []string{"to", "snapshot", "output"} {
		command.MarkFlagsMutuallyExclusive("from", other)
	}
}

// The releases of Volcano that differ in their decisions.
const release115, release116 = "v1.15", "v1.16"

// setRelease sets the release of a policy, if one is named.
func setRelease(policy *apportionv1.Policy, release string) {
	switch release {
	case release115:
		policy.VolcanoRelease = apportionv1.VolcanoRelease_VOLCANO_RELEASE_UNSPECIFIED
	case release116:
		policy.VolcanoRelease = apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_16
	}
}

// policyFair is the policy for which settings can be proposed, and targetExtender the plugin of Volcano.
const policyFair, targetExtender = "fair", "extender"

// convertTo writes the settings of policy fair that are nearest to a configuration, or to the queues of Kueue.
func convertTo(ctx context.Context, c *converting, input *question.InputFlags, into string) error {
	if len(input.Files) > 0 {
		return convertKueue(ctx, c.Streams, input, into)
	}
	if input.Snapshot != "" {
		return errors.New("--to takes a configuration or a preset, or manifests of Kueue: give --policy or -f, without --snapshot")
	}
	rules, err := input.Rules(nil)
	if err != nil {
		return err
	}
	proposed, warnings := schedulerconf.AsFair(rules.Message)
	if rules.Configuration != nil {
		if proposed, warnings, err = schedulerconf.ReadAsFair(*rules.Configuration); err != nil {
			return err
		}
	}
	render.Warnings(c.Err, warnings)
	return c.writeMessage(proposed)
}

// The forms of a configuration that delegates decisions to Apportion.
const (
	formDelegate = "delegate"
	formShadow   = "shadow"
	formBoth     = "both"
)

// convertExtender writes a configuration in the forms that delegate decisions to Apportion, two of them as documents of one stream.
func convertExtender(s cli.Streams, input *question.InputFlags, form string, options delegation.Options) error {
	if input.Policy == "" || len(input.Files) > 0 || input.Snapshot != "" {
		return errors.New("--to extender rewrites a volcano-scheduler.conf: give it as --policy FILE, without -f and --snapshot")
	}
	source, err := policy.Configuration(input.Policy)
	if err != nil {
		return err
	}
	forms, warnings, err := delegation.New(source, options)
	if err != nil {
		return err
	}
	render.Warnings(s.Err, warnings)
	var out []byte
	switch form {
	case formDelegate:
		out = forms.Delegating
	case formShadow:
		out = forms.Shadow
	case formBoth:
		out = slices.Concat(forms.Delegating, []byte("---\n"), forms.Shadow)
	}
	_, err = s.Out.Write(out)
	return err
}

// converting is a command that writes a message for other programs.
type converting struct{ cli.Answering }

// writeMessage writes a snapshot or a policy; as a table, its numbers of entities.
func (c *converting) writeMessage(message proto.Message) error {
	if c.Format == cli.FormatBinary {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			return err
		}
		_, err = c.Out.Write(data)
		return err
	}
	return c.Write(message, func(p *render.Printer) {
		switch m := message.(type) {
		case *apportionv1.Snapshot:
			snapshot := lookup.Of(m)
			p.Line("a snapshot of %s, %s, %s, %s", text.Count(len(m.GetQueues()), "queue"), text.Count(len(m.GetJobs()), "job"),
				text.Count(len(snapshot.Tasks), "task"), text.Count(len(m.GetNodes()), "node"))
		case *apportionv1.Policy:
			tiers, plugins := policy.Count(m)
			p.Line("a policy of %s in %s", text.Count(plugins, "plugin"), text.Count(tiers, "tier"))
		}
	})
}
