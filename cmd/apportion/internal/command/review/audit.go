// Package review has the commands that say what is wrong: with a cluster and its policy (audit), and with an answer (verify).
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// auditing are the flags of `apportion audit`.
type auditing struct {
	question.Asking
	severity  string
	inputOnly bool
}

// NewAudit is `apportion audit`.
func NewAudit(s cli.Streams) *cobra.Command {
	a := &auditing{Asking: question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}, severity: string(audit.Error)}
	command := &cobra.Command{
		Use:   "audit",
		Short: "Check manifests, settings and decisions: errors, jobs that can never run, unfairness",
		Long: `Check a cluster and its policy, and report suspicious findings, each with numbers and a remedy:

  input: errors and ineffective settings in manifests and configuration, by file, line and key;
  settings: guarantees or deserved shares that do not fit, limits that contradict each other or miss a
  resource, weights of 0, queues above their share that are not reclaimable, minResources that are
  missing or too small;
  jobs that can never run, because no node or no queue is large enough, or that the scheduler does
  not consider;
  fairness: guarantees that are not kept, resources that are idle and wanted, queues that get less
  than equal queues, queues that evict each other again and again.

Without manifests, or with --input-only, only the input is checked. The exit code is 1 if the input has
errors; with --strict warnings are errors, such as a field that this version of Volcano does not have.
It is 2 if there is a finding of at least the severity of --fail-on, or if too little could be judged,
because the input has no nodes or holds the objects of another system.`,
		Example: `  apportion audit -f cluster.yaml --policy volcano-scheduler.conf
  apportion audit -f queues.yaml --input-only --strict -o json
  kubectl apportion audit -o sarif --fail-on warning > findings.sarif`,
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.Repeat(command.Context(), func(ctx context.Context) error {
				c := &checked{}
				return a.finish(c, a.audit(ctx, c))
			})
		},
	}
	a.Register(command, cli.FormatMarkdown, cli.FormatSARIF)
	severities := []string{string(audit.Error), string(audit.Warning), string(audit.Note), "never"}
	cli.Choose(command, &a.severity, "fail-on", "", "lowest severity for which the exit code is 2", severities...)
	command.Flags().BoolVar(&a.inputOnly, "input-only", false, "check only that the input can be read and has an effect")
	command.Flags().Lookup("strict").Usage = "treat warnings about the input as errors"
	return command
}

// audit fills what was found. An error is a fault of the input, or what kept it from being read.
func (a *auditing) audit(ctx context.Context, c *checked) error {
	if !a.From.Given() && (!a.From.Live.On || a.inputOnly && a.From.Policy != "") {
		if a.From.Policy == "" {
			return errors.New("nothing to check: name manifests with -f, or a policy with --policy")
		}
		rules, err := a.From.Rules(nil)
		if err != nil {
			return err
		}
		c.Tiers, c.Plugins = policy.Count(rules.Message)
		c.warnings = rules.Warnings
		return checkPolicy(rules.Message)
	}
	read := a.From
	read.Strict = a.From.Strict || a.inputOnly
	loaded, err := read.Load(ctx, a.Streams)
	if err != nil {
		return err
	}
	c.count(loaded)
	var invalid error
	if loaded.Cluster != nil {
		invalid = loaded.Cluster.Fault("")
		c.warnings = question.Unprinted(c.warnings, manifest.LeftOut(loaded.Cluster.Faulty))
	}
	err = a.About(ctx, loaded, func(ctx context.Context, q *question.Question) error {
		session, err := q.Decider.OpenSession(ctx, q.Input)
		if err != nil {
			return err
		}
		c.warnings = slices.Concat(c.warnings, q.Placed(question.Unsaid(session.Basis().GetWarnings(), q.Warnings)))
		if a.inputOnly && len(q.Lookup.GetNodes()) == 0 {
			c.warnings = ofQueuesAlone(c.warnings)
		}
		if err := session.Close(); err != nil || a.inputOnly {
			return err
		}
		end, bounded := cli.ShowWaiting(a.Err, "auditing"), cli.Frugal(len(q.Lookup.Tasks))
		defer end()
		defer bounded()
		findings, report, err := audit.Check(ctx, q.Decider, q.Input, audit.Limits{})
		if err != nil {
			return err
		}
		shown := render.Shown(a.Resources)
		c.audited, c.unjudged = true, report.Unjudged || q.Unread() != ""
		c.Partial = strings.Join(slices.DeleteFunc([]string{report.Partial, q.Unread()}, func(s string) bool { return s == "" }), "; ")
		c.Findings = slices.DeleteFunc(findings, func(f audit.Finding) bool { return f.Resource != "" && !shown(f.Resource) })
		return nil
	})
	return cmp.Or(err, invalid)
}

// ofQueuesAlone leaves out the warnings that follow from the lack of nodes and jobs, which a file of queues need not have.
func ofQueuesAlone(warnings []*apportionv1.Warning) []*apportionv1.Warning {
	return slices.DeleteFunc(question.Without(warnings, apportionv1.WarningCode_WARNING_CODE_DIMENSION_NOT_OFFERED,
		apportionv1.WarningCode_WARNING_CODE_GUARANTEES_EXCEED_TOTAL, apportionv1.WarningCode_WARNING_CODE_SCALAR_GUARANTEED_AWAY,
		apportionv1.WarningCode_WARNING_CODE_IDLE_GUARANTEE,
	), func(w *apportionv1.Warning) bool { return w.GetMessage() == manifest.NoNode })
}

// checkPolicy finds the faults of a policy.
func checkPolicy(rules *apportionv1.Policy) error {
	if _, err := decode.Policy(rules); err != nil {
		return status.FromProto(decode.Status(err)).Err()
	}
	return nil
}

// finish writes what was found in the format that is asked for.
func (a *auditing) finish(c *checked, err error) error {
	if a.From.Strict && err == nil && len(c.warnings) > 0 {
		err = fmt.Errorf("%s, which --strict takes for errors", text.Count(len(c.warnings), "warning"))
	}
	c.complete(err)
	if a.Format != cli.FormatJSON && a.Format != cli.FormatYAML {
		render.Warnings(a.Err, c.warnings)
		if err != nil && !c.audited {
			return err
		}
	}
	var failed error
	switch a.Format {
	case cli.FormatMarkdown:
		_, failed = io.WriteString(a.Out, visible.Lines(c.markdown()))
	case cli.FormatSARIF:
		failed = writeSARIF(a.Out, c.Findings, firstFile(a.From.Files))
	default:
		failed = a.Write(c, c.print)
	}
	least := slices.Index(audit.Severities, audit.Severity(a.severity))
	severe := slices.ContainsFunc(c.Findings, func(f audit.Finding) bool { return slices.Index(audit.Severities, f.Severity) <= least })
	return cmp.Or(failed, err, cli.Verdict(a.severity == "never" || !c.unjudged && !severe))
}

func firstFile(files []string) string {
	if len(files) == 0 || files[0] == cli.Stdin {
		return ""
	}
	return files[0]
}

// nothing is the sentence for an audit without findings: it calls the cluster sound only if everything was judged and nothing is warned of.
func (c *checked) nothing() string {
	switch {
	case c.unjudged || c.Partial != "":
		return "no finding, but not everything could be judged"
	case len(c.warnings) > 0:
		return "no finding besides " + text.Count(len(c.warnings), "warning")
	}
	return "nothing suspicious was found"
}

// print shows findings by rule, and what was checked.
func (c *checked) print(p *render.Printer) {
	if c.audited && len(c.Findings) == 0 {
		p.Line("%s", c.nothing())
	}
	rule := ""
	for i := range c.Findings {
		f := &c.Findings[i]
		if f.Rule != rule {
			if rule != "" {
				p.Line("")
			}
			paint := render.Strong
			if f.Severity == audit.Error {
				paint = render.Bad
			}
			rule = f.Rule
			p.Line("%s %s", p.Paint(paint, string(f.Severity)+":"), p.Paint(render.Strong, rule))
			p.Line("  %s", f.Help)
		}
		p.Line("  - %s", f.Witness)
	}
	if c.Partial != "" {
		p.Line("\n(%s)", c.Partial)
	}
	if c.audited {
		p.Line("")
	}
	about := ""
	if slices.ContainsFunc(c.Findings, func(f audit.Finding) bool { return f.Severity == audit.Warning }) {
		about = " about the input"
	}
	p.Wrapped("checked: %s; %s%s", c.counts, text.Count(len(c.warnings), "warning"), about)
}

// markdown shows findings as a table.
func (c *checked) markdown() string {
	var b strings.Builder
	if len(c.Findings) == 0 {
		fmt.Fprintf(&b, "%s.\n", "N"+strings.TrimPrefix(c.nothing(), "n"))
	} else {
		render.MarkdownTable(&b, "severity", "rule", "finding", "what to do")
		for i := range c.Findings {
			f := &c.Findings[i]
			render.MarkdownRow(&b, string(f.Severity), f.Rule, f.Witness, f.Help)
		}
	}
	if c.Partial != "" {
		fmt.Fprintf(&b, "\n(%s)\n", c.Partial)
	}
	return b.String()
}
