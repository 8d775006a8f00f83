package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// newCompare is `apportion compare`.
func newCompare(s streams) *cobra.Command {
	a := &asking{streams: s}
	var policies []string
	command := &cobra.Command{
		Use:   "compare --policy A --policy B",
		Short: "Show what another policy would change, queue by queue and job by job",
		Long: `Show what would change if policy B replaced policy A: what queues deserve and their order, which jobs
may enter and be allocated, and which tasks they may evict. Also list what is unfair about each policy:
the properties of docs/fair.md that its answers violate, with the numbers. A policy is a preset, a file
written by convert, or a volcano-scheduler.conf.

The exit code is 2 if something would change.`,
		Example: `  apportion compare --policy proportion --policy capacity -f cluster.yaml
  apportion compare --policy old.conf --policy new.conf -f cluster.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if len(policies) != 2 {
				return errors.New("two policies are compared: give --policy twice")
			}
			if err := a.output.check(); err != nil {
				return err
			}
			return a.compare(command.Context(), policies[0], policies[1])
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&a.input.files, "file", "f", nil,
		"file or directory of manifests as printed by kubectl, YAML or JSON; - is standard input (repeatable)")
	flags.StringVar(&a.input.snapshot, "snapshot", "", "snapshot `FILE` written by convert, instead of manifests")
	flags.StringVar(&a.input.asOf, "as-of", "",
		"time of the decisions, as 2006-01-02T15:04:05Z; default: now if a policy uses it, else none")
	a.input.live.Register(flags)
	flags.StringArrayVar(&policies, "policy", nil,
		"the current policy, then the one to compare it with: a preset ("+strings.Join(client.Presets(), ", ")+") or a `FILE`")
	a.output.register(command, true)
	a.server.register(flags)
	mustComplete(command, "policy", client.Presets()...)
	return command
}

// by returns the same input by another policy.
func (f inputFlags) by(policy string) inputFlags {
	f.config, f.policy = "", policy
	if strings.HasSuffix(policy, ".conf") {
		f.config, f.policy = policy, ""
	}
	return f
}

// compared is the JSON form of a comparison.
type compared struct {
	Was     message             `json:"was"`
	Is      message             `json:"is"`
	Effects []comparison.Effect `json:"effects"`
	Omitted int                 `json:"omitted_jobs,omitempty"`
	// WasAudit and IsAudit are what is unfair about each.
	WasAudit *audit.Report `json:"was_audit,omitempty"`
	IsAudit  *audit.Report `json:"is_audit,omitempty"`
}

func (a *asking) compare(ctx context.Context, was, is string) error {
	second := a.input.by(is)
	policy, warnings, err := second.rules()
	if err != nil {
		return err
	}
	a.input = a.input.by(was)
	// Both decide about one moment.
	if _, given, err := second.moment(policy); err != nil {
		return err
	} else if given && a.input.asOf == "" {
		a.input.asOf = time.Now().UTC().Format(time.RFC3339)
	}
	loaded, err := a.input.load(ctx, a.streams)
	if err != nil {
		return err
	}
	loaded.warnings = append(loaded.warnings, unsaid(warnings, loaded.warnings)...)
	return a.askAbout(ctx, loaded, func(ctx context.Context, q *question) error {
		return compare(ctx, q, policy, was, is)
	})
}

// compare asks both policies the same.
func compare(ctx context.Context, q *question, policy *apportionv1.Policy, first, second string) error {
	plan := comparison.New(q.snapshot)
	was, err := q.decider.Simulate(ctx, q.Input, plan.Steps()...)
	if err != nil {
		return err
	}
	other := q.Input
	other.Policy = policy
	is, err := q.decider.Simulate(ctx, other, plan.Steps()...)
	if err != nil {
		return err
	}
	for i := range comparison.Needed {
		if err := errors.Join(was.Err(i), is.Err(i)); err != nil {
			return err
		}
	}
	effects := comparison.Effects(
		plan.OutcomeOf(was.Answers, q.snapshot.Names(was.Basis)), plan.OutcomeOf(is.Answers, q.snapshot.Names(is.Basis)),
		shownResource(q.output.resources))
	before, after := was.Answers[0].GetShares(), is.Answers[0].GetShares()
	out := compared{Was: message{before}, Is: message{after}, Effects: effects, Omitted: plan.Omitted}
	if out.WasAudit, err = audit.Find(ctx, q.decider, q.Input, audited); err == nil {
		out.IsAudit, err = audit.Find(ctx, q.decider, other, audited)
	}
	if err != nil {
		return err
	}
	err = q.writeAny(is.Basis, out, func(p *render.Printer) {
		p.Line("by %s in place of %s:", second, first)
		p.Changes(before, after)
		printEffects(p, effects, plan.Omitted)
		printBreaches(p, first, out.WasAudit)
		printBreaches(p, second, out.IsAudit)
	})
	if err != nil {
		return err
	}
	return verdict(len(effects) == 0)
}

// printEffects shows effects but for what queues deserve, which has a table of its own.
func printEffects(p *render.Printer, all []comparison.Effect, omitted int) {
	table := effectTable(p, slices.DeleteFunc(slices.Clone(all), func(e comparison.Effect) bool {
		return e.Kind == comparison.LessDeserved || e.Kind == comparison.MoreDeserved
	}))
	p.Line("")
	if table.Empty() {
		p.Line("no queue and no job would be decided about otherwise")
	} else {
		table.Write(p.Out)
	}
	printOmitted(p, omitted)
}

// audited bounds what is tried to find what is unfair.
var audited = audit.Limits{Blocks: 200, Moves: 300}

// printBreaches shows what is unfair about a policy.
func printBreaches(p *render.Printer, policy string, report *audit.Report) {
	const columns = 90
	if len(report.Breaches) == 0 {
		p.Line("\nnothing unfair was found in what %s decides", policy)
	} else {
		p.Heading("what %s decides is unfair:", policy)
		table := p.NewTable("PROPERTY", "", "WITNESS").Wrap(columns)
		for _, b := range report.Breaches {
			table.Row(fmt.Sprintf("%2d", b.Property), b.Title, b.Witness)
		}
		table.Write(p.Out)
	}
	if report.Partial != "" {
		p.Line("(%s)", report.Partial)
	}
}

// few names the first of a list.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " …"
}
