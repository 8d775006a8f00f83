package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

const formatSARIF = "sarif"

// newAudit is `apportion audit`.
func newAudit(s streams) *cobra.Command {
	a := &asking{streams: s}
	severity := string(audit.Error)
	command := &cobra.Command{
		Use:   "audit",
		Short: "Find unintended settings, jobs that can never run, and unfair decisions",
		Long: `Check a cluster and its policy, and report suspicious findings, each with numbers and a remedy:

  settings: guarantees or deserved shares that do not fit, limits that contradict each other or miss a
  resource, weights of 0, queues above their share that are not reclaimable, minResources that are
  missing or too small;
  jobs that can never run, because no node or no queue is large enough, or that the scheduler does
  not consider;
  fairness: guarantees that are not kept, resources that are idle and wanted, queues that get less
  than equal queues, queues that evict each other again and again.

The exit code is 2 if there is a finding of at least the severity of --fail-on.`,
		Example: `  apportion audit -f cluster.yaml --config volcano-scheduler.conf
  kubectl apportion audit -o sarif --fail-on warning > findings.sarif`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !slices.Contains(audit.Severities, audit.Severity(severity)) && severity != "never" {
				return fmt.Errorf("--fail-on: %q is neither error, warning, note nor never", severity)
			}
			if slices.Contains([]string{formatMarkdown, formatSARIF}, a.output.format) {
				return a.repeat(command.Context(), func(ctx context.Context) error {
					return a.once(ctx, func(ctx context.Context, q *question) error { return q.audit(ctx, severity) })
				})
			}
			return a.ask(command.Context(), func(ctx context.Context, q *question) error { return q.audit(ctx, severity) })
		},
	}
	a.register(command, true)
	a.watch.register(command.Flags())
	command.Flags().Lookup("output").Usage = "table, markdown, sarif, json or yaml"
	command.Flags().StringVar(&severity, "fail-on", severity,
		"lowest `SEVERITY` for which the exit code is 2: error, warning, note or never")
	mustComplete(command, "fail-on", string(audit.Error), string(audit.Warning), string(audit.Note), "never")
	return command
}

// auditAnswer is the JSON form of an audit.
type auditAnswer struct {
	Findings []audit.Finding `json:"findings"`
	Partial  string          `json:"partial,omitempty"`
}

func (q *question) audit(ctx context.Context, severity string) error {
	findings, report, err := audit.Check(ctx, q.decider, q.Input, audited)
	if err != nil {
		return err
	}
	shown := shownResource(q.output.resources)
	findings = slices.DeleteFunc(findings, func(f audit.Finding) bool { return f.Resource != "" && !shown(f.Resource) })
	switch q.output.format {
	case formatMarkdown:
		q.warn(nil)
		_, err = q.out.Write([]byte(findingsMarkdown(findings, report.Partial)))
	case formatSARIF:
		q.warn(nil)
		err = writeSARIF(q.out, findings, firstFile(q.asking.input.files))
	default:
		err = q.writeAny(nil, auditAnswer{findings, report.Partial}, func(p *render.Printer) { printFindings(p, findings, report.Partial) })
	}
	if err != nil {
		return err
	}
	least := slices.Index(audit.Severities, audit.Severity(severity))
	return verdict(!slices.ContainsFunc(findings, func(f audit.Finding) bool {
		return slices.Index(audit.Severities, f.Severity) <= least
	}))
}

func firstFile(files []string) string {
	if len(files) == 0 || files[0] == "-" {
		return ""
	}
	return files[0]
}

func printFindings(p *render.Printer, findings []audit.Finding, partial string) {
	if len(findings) == 0 {
		p.Line("nothing suspicious was found")
	}
	rule := ""
	for i := range findings {
		f := &findings[i]
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
	if partial != "" {
		p.Line("\n(%s)", partial)
	}
}

// findingsMarkdown shows findings as a table.
func findingsMarkdown(findings []audit.Finding, partial string) string {
	var b strings.Builder
	if len(findings) == 0 {
		b.WriteString("Nothing suspicious was found.\n")
	} else {
		b.WriteString("| severity | rule | finding | what to do |\n|---|---|---|---|\n")
		cell := strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;")
		for i := range findings {
			f := &findings[i]
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Severity, f.Rule, cell.Replace(f.Witness), cell.Replace(f.Help))
		}
	}
	if partial != "" {
		fmt.Fprintf(&b, "\n(%s)\n", partial)
	}
	return b.String()
}
