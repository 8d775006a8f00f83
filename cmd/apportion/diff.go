package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const formatMarkdown = "markdown"

// differing are the flags of `apportion diff`.
type differing struct {
	*asking
	failOn []string
}

// newDiff is `apportion diff`.
func newDiff(s streams) *cobra.Command {
	d := &differing{asking: &asking{streams: s}}
	command := &cobra.Command{
		Use:   "diff A B",
		Short: "Show the effects of a change of queues, policy or cluster on queues and jobs",
		Long: `Show what differs between A and B: what queues deserve, their guarantees and limits, their order, which jobs
are admitted and allocated, and which tasks may be evicted. A and B are

  two dumps of a cluster;
  two files of queues, which replace the queues of the cluster of -f;
  two policies for the cluster of -f: a preset, a volcano-scheduler.conf, or a file written by convert.

The exit code is 2 if something differs; with --fail-on only if one of these effects occurs:
` + kindsInLines(),
		Example: `  apportion diff monday.yaml tuesday.yaml
  apportion diff old/queues.yaml new/queues.yaml -f cluster.yaml -o markdown --fail-on less-deserved,more-evictions
  apportion diff old.conf new.conf -f cluster.yaml`,
		Args: exactly(2, "two files or policies"),
		RunE: func(command *cobra.Command, sides []string) error {
			if err := d.check(); err != nil {
				return err
			}
			return d.diff(command.Context(), sides[0], sides[1])
		},
	}
	d.register(command, true)
	command.Flags().StringSliceVar(&d.failOn, "fail-on", nil, "exit with code 2 only for these `EFFECTS`")
	command.Flags().Lookup("output").Usage = "table, markdown, json or yaml"
	var kinds []string
	for _, kind := range comparison.Kinds {
		kinds = append(kinds, string(kind))
	}
	mustComplete(command, "fail-on", kinds...)
	return command
}

// kindsInLines lists the kinds of effects for people.
func kindsInLines() string {
	var lines strings.Builder
	width := 0
	for _, kind := range comparison.Kinds {
		const columns = 100
		if width+len(kind)+2 > columns || width == 0 {
			lines.WriteString("\n  ")
			width = 2
		}
		lines.WriteString(string(kind) + " ")
		width += len(kind) + 1
	}
	return lines.String()
}

func (d *differing) check() error {
	if d.output.format != formatMarkdown {
		if err := d.output.check(); err != nil {
			return fmt.Errorf("--output: %q is neither table, markdown, json nor yaml", d.output.format)
		}
	}
	for _, kind := range d.failOn {
		if !slices.Contains(comparison.Kinds, comparison.Kind(kind)) {
			return fmt.Errorf("--fail-on: no effect %q; there are:%s", kind, kindsInLines())
		}
	}
	return nil
}

// side is A or B with its outcome.
type side struct {
	name    string
	input   *input
	basis   *apportionv1.Basis
	outcome *comparison.Outcome
	omitted int
}

func (d *differing) diff(ctx context.Context, a, b string) error {
	policies := isPolicy(a)
	if policies != isPolicy(b) {
		return fmt.Errorf("%s is a policy and %s is not: both are policies, or both are files of a cluster",
			first(policies, a, b), first(policies, b, a))
	}
	if policies && d.input.config+d.input.policy+d.input.policyName != "" {
		return errors.New("the arguments are the policies: --config, --policy and --policy-name say nothing more")
	}
	var sides [2]*side
	for i, name := range []string{a, b} {
		read := d.readFiles
		if policies {
			read = d.readPolicy
		}
		loaded, err := read(ctx, name)
		if err != nil {
			return err
		}
		if err := d.output.checkResources(loaded.snapshot); err != nil {
			return err
		}
		sides[i] = &side{name: name, input: loaded}
	}
	decider, ctx, done, err := d.server.decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, s := range sides {
		if err := s.decide(ctx, decider); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return d.show(sides[0], sides[1])
}

func first(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// isPolicy reports whether an argument is a policy: a preset, a configuration of Volcano, or a file as written by convert.
func isPolicy(name string) bool {
	if _, preset := client.Preset(strings.TrimPrefix(name, "preset:")); preset || filepath.Ext(name) == ".conf" {
		return true
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	var keys struct {
		Tiers yaml.Node `yaml:"tiers"`
	}
	return yaml.Unmarshal(data, &keys) == nil && keys.Tiers.Kind != 0
}

func (d *differing) readPolicy(ctx context.Context, name string) (*input, error) {
	flags := d.input.by(name)
	return flags.load(ctx, d.streams)
}

// readFiles reads a file or directory, with the rest of the cluster behind it.
func (d *differing) readFiles(ctx context.Context, name string) (*input, error) {
	flags := d.input
	flags.files = []string{name}
	sources, err := flags.sources(ctx, d.in)
	if err != nil {
		return nil, err
	}
	if len(d.input.files) > 0 {
		rest, err := d.input.sources(ctx, d.in)
		if err != nil {
			return nil, err
		}
		for _, source := range rest {
			source.Background = true
			sources = append(sources, source)
		}
	}
	return flags.read(d.streams, sources)
}

// decide asks all that is compared.
func (s *side) decide(ctx context.Context, decider *client.Client) error {
	plan := comparison.New(s.input.snapshot)
	answered, err := decider.Simulate(ctx, s.input.Input, plan.Steps()...)
	if err != nil {
		return err
	}
	for i := range comparison.Needed {
		if err := answered.Err(i); err != nil {
			return err
		}
	}
	s.basis, s.omitted = answered.Basis, plan.Omitted
	s.outcome = plan.OutcomeOf(answered.Answers, s.input.snapshot.Names(answered.Basis))
	return nil
}

// differences is the JSON form of a difference.
type differences struct {
	A       string              `json:"a"`
	B       string              `json:"b"`
	Effects []comparison.Effect `json:"effects"`
	Omitted int                 `json:"omitted_jobs,omitempty"`
}

func (d *differing) show(a, b *side) error {
	render.Warnings(d.err, a.input.warnings)
	render.Warnings(d.err, slices.DeleteFunc(slices.Clone(b.input.warnings), func(w *apportionv1.Warning) bool {
		return slices.ContainsFunc(a.input.warnings, func(o *apportionv1.Warning) bool { return o.GetMessage() == w.GetMessage() })
	}))
	shown := shownResource(d.output.resources)
	out := differences{
		A: a.name, B: b.name, Effects: comparison.Effects(a.outcome, b.outcome, shown), Omitted: max(a.omitted, b.omitted),
	}
	var err error
	switch d.output.format {
	case formatTable:
		p := &render.Printer{Style: d.output.style(d.out), Out: d.out}
		effectTables(p, &out)
	case formatMarkdown:
		_, err = d.out.Write([]byte(markdown(&out)))
	default:
		err = (&question{asking: d.asking, input: b.input}).writeAny(b.basis, out, nil)
	}
	if err != nil {
		return err
	}
	return verdict(!slices.ContainsFunc(out.Effects, func(e comparison.Effect) bool {
		return len(d.failOn) == 0 || slices.Contains(d.failOn, string(e.Kind))
	}))
}

// shownResource returns which resources are compared: those named, or all that Kubernetes does not keep for itself.
func shownResource(named []string) func(string) bool {
	if len(named) == 0 {
		return func(resource string) bool { return resource != "pods" && resource != "ephemeral-storage" }
	}
	return func(resource string) bool {
		return slices.ContainsFunc(named, func(n string) bool {
			return n == "all" || n == resource || strings.HasSuffix(resource, "/"+n)
		})
	}
}

// effectTables shows effects as tables: amounts of queues, the rest.
func effectTables(p *render.Printer, d *differences) {
	p.Line("%s", p.Paint(render.Strong, d.A+" → "+d.B))
	if len(d.Effects) == 0 {
		p.Line("nothing is decided otherwise")
		return
	}
	effectTable(p, d.Effects).Write(p.Out)
	printOmitted(p, d.Omitted)
}

// effectTable is a table of effects. A kind is named in the first of its rows.
func effectTable(p *render.Printer, list []comparison.Effect) *render.Table {
	const columns = 60
	table := p.NewTable("EFFECT", "FOR", "RESOURCE", ">WAS", ">IS", "WHY").Wrap(columns)
	kind := comparison.Kind("")
	for i := range list {
		e := &list[i]
		words := ""
		if e.Kind != kind {
			kind, words = e.Kind, e.Kind.Words()
		}
		table.Row(words, about(e), e.Resource, e.Was, e.Is, reason(e))
	}
	return table
}

// printOmitted says how many jobs were not asked about.
func printOmitted(p *render.Printer, omitted int) {
	if omitted > 0 {
		p.Line("\n%d more jobs wait whose evictions were not compared", omitted)
	}
}

func about(e *comparison.Effect) string {
	if e.Queue != "" {
		return "queue " + e.Queue
	}
	return "job " + e.Job
}

func reason(e *comparison.Effect) string {
	if len(e.Tasks) > 0 {
		return few(e.Tasks)
	}
	return e.Why
}

// markdown shows effects as the text of a comment on a pull request: a summary, and a table for each kind.
func markdown(d *differences) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### `%s` → `%s`\n\n", d.A, d.B)
	if len(d.Effects) == 0 {
		b.WriteString("Nothing is decided otherwise.\n")
		return b.String()
	}
	counts := map[comparison.Kind]int{}
	for i := range d.Effects {
		counts[d.Effects[i].Kind]++
	}
	for _, kind := range comparison.Kinds {
		if counts[kind] > 0 {
			fmt.Fprintf(&b, "- **%s**: %d\n", kind.Words(), counts[kind])
		}
	}
	b.WriteString("\n<details><summary>All effects</summary>\n\n" +
		"| effect | for | resource | was | is | why |\n|---|---|---|---:|---:|---|\n")
	cell := strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "`", "'")
	for i := range d.Effects {
		e := &d.Effects[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.Kind.Words(), cell.Replace(about(e)), cell.Replace(e.Resource),
			cell.Replace(e.Was), cell.Replace(e.Is), cell.Replace(reason(e)))
	}
	b.WriteString("\n</details>\n")
	if d.Omitted > 0 {
		fmt.Fprintf(&b, "\n%d more jobs wait whose evictions were not compared.\n", d.Omitted)
	}
	return b.String()
}
