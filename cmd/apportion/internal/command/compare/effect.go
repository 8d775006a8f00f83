package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// print shows effects as tables. The deserved amounts of queues by two policies have a separate table.
func (d *differences) print(p *render.Printer, was, is *apportionv1.SharesAnswer) {
	switch {
	case d.between:
		p.Line("by %s in place of %s, each job judged alone:", d.B, d.A)
		d.table(p, "every job that waits has the same answer")
	case !d.Was.IsZero():
		p.Line("by %s in place of %s:", d.B, d.A)
		p.Changes(was, is)
		p.Line("")
		d.table(p, "no queue and no job would be decided about otherwise", comparison.LessDeserved, comparison.MoreDeserved)
	default:
		p.Line("%s", p.Paint(render.Strong, d.A+" → "+d.B))
		d.table(p, "nothing is decided otherwise")
	}
	printBreaches(p, d.A, d.WasAudit)
	printBreaches(p, d.B, d.IsAudit)
}

// table shows the effects except those of some kinds. The first row of each kind contains its name.
func (d *differences) table(p *render.Printer, none string, without ...comparison.Kind) {
	const columns = 60
	table := p.NewTable("EFFECT", "FOR", "RESOURCE", ">WAS", ">IS", "WHY").Wrap(columns)
	kind := comparison.Kind("")
	effects := slices.DeleteFunc(slices.Clone(d.Effects), func(e comparison.Effect) bool { return slices.Contains(without, e.Kind) })
	for _, e := range comparison.InUnits(effects) {
		words := ""
		if e.Kind != kind {
			kind, words = e.Kind, e.Kind.Words()
		}
		table.Row(words, about(&e), e.Resource, e.Was, e.Is, reason(&e))
	}
	if table.Empty() {
		p.Line("%s", none)
	} else {
		table.Write(p.Out)
	}
	if d.Omitted > 0 {
		p.Line("\n%s", omitted(d))
	}
}

func about(e *comparison.Effect) string {
	if e.Queue != "" {
		return "queue " + e.Queue
	}
	return "job " + e.Job
}

// reason returns why an effect occurs, or the first of its tasks.
func reason(e *comparison.Effect) string {
	const most = 3
	switch {
	case len(e.Tasks) == 0:
		return e.Why
	case len(e.Tasks) <= most:
		return strings.Join(e.Tasks, ", ")
	}
	return strings.Join(e.Tasks[:most], ", ") + " …"
}

// printBreaches shows the violations of fairness by a policy; nil: it was not audited.
func printBreaches(p *render.Printer, policy string, report *audit.Report) {
	const columns = 90
	if report == nil {
		return
	}
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

// markdown shows effects as the text of a comment on a pull request: a summary, and a table for each kind.
func (d *differences) markdown() string {
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
	b.WriteString("\n<details><summary>All effects</summary>\n\n")
	render.MarkdownTable(&b, "effect", "for", "resource", "was:", "is:", "why")
	for _, e := range comparison.InUnits(d.Effects) {
		render.MarkdownRow(&b, e.Kind.Words(), about(&e), e.Resource, e.Was, e.Is, reason(&e))
	}
	b.WriteString("\n</details>\n")
	if d.Omitted > 0 {
		fmt.Fprintf(&b, "\n%s.\n", omitted(d))
	}
	return b.String()
}

// omitted counts the jobs whose evictions were not compared.
func omitted(d *differences) string {
	return text.Count(d.Omitted, "more job") + " " + text.Verb(d.Omitted, "waits", "wait") + " whose evictions were not compared"
}
