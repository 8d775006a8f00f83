package render

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// Findings lists the checks of a job and how each went, and its forecast.
func (p *Printer) Findings(e *apportionv1.Explanation) {
	table := p.NewTable("", "CHECK", "FOUND").Wrap(lineWidth)
	for _, f := range e.GetFindings() {
		mark := " "
		switch f.GetOutcome() {
		case apportionv1.CheckOutcome_CHECK_OUTCOME_PASSED:
			mark = p.mark(true)
		case apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED:
			mark = p.mark(false)
		case apportionv1.CheckOutcome_CHECK_OUTCOME_NOT_KNOWN:
			mark = "?"
		default:
		}
		table.Row(mark, text.Enum(f.GetCheck(), "CHECK_KIND_"), f.GetText())
	}
	for _, budget := range p.limitingBudgets(e) {
		table.Row(" ", "budget", budget)
	}
	if int(e.GetQueue()) < len(p.Snapshot.GetQueues()) {
		if owners := p.owners(p.Snapshot.GetQueues()[e.GetQueue()]); owners != "" {
			table.Row(" ", "owner", owners)
		}
	}
	if forecast := e.GetForecast(); forecast != nil {
		table.Row(" ", "forecast", strings.TrimSuffix(forecast.GetText(), "."))
	}
	p.table(table)
}

// limitingBudgets says which hard budgets lower the limits that hold a job back.
func (p *Printer) limitingBudgets(e *apportionv1.Explanation) (budgets []string) {
	for _, f := range e.GetFindings() {
		for _, r := range f.GetReasons() {
			if r.GetCode() != apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT || r.Queue == nil ||
				int(r.GetQueue()) >= len(p.Snapshot.GetQueues()) {
				continue
			}
			queue := p.Snapshot.GetQueues()[r.GetQueue()]
			left, stated := lookup.Left(queue.GetBudget(), r.GetDimension())
			capability := slices.Index(queue.GetCapability().GetDimensions(), r.GetDimension())
			if !stated || queue.GetBudget().GetKind() != apportionv1.BudgetKind_BUDGET_KIND_HARD ||
				capability >= 0 && queue.GetCapability().GetAmounts()[capability] <= r.GetLimit() {
				continue
			}
			said := fmt.Sprintf("queue %s has a hard budget of %s, of which %s is left: that is what limits it",
				p.Names.Queue(r.GetQueue()), p.Names.Dimension(r.GetDimension()), finePercent(left))
			if !slices.Contains(budgets, said) {
				budgets = append(budgets, said)
			}
		}
	}
	return budgets
}

// Submitted shows what would become of jobs that are submitted together, and which queues would deserve something else then.
func (p *Printer) Submitted(jobs []*apportionv1.Job, explained []*apportionv1.Explanation, before, after *apportionv1.SharesAnswer) {
	if len(jobs) == 1 {
		p.Line("if %s were submitted to queue %s now:\n", p.Paint(Strong, lookup.JobName(jobs[0])), jobs[0].GetQueue())
		p.Findings(explained[0])
		p.Changes(before, after)
		p.Verdict(explained[0])
		return
	}
	p.Line("if %s were submitted now, each with a PodGroup of its own:\n", text.Count(len(jobs), "job"))
	table := p.NewTable("", "JOB", "QUEUE", ">TASKS", "FOUND").Wrap(lineWidth).Optional("TASKS", "QUEUE")
	for i, e := range explained {
		goesOn := e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN
		table.Row(p.mark(goesOn), e.GetName(), jobs[i].GetQueue(), count(e.GetWaitingTasks()), e.GetText())
	}
	p.table(table)
	p.Changes(before, after)
}

// QueueShares shows the accounts of queues without their order.
func (p *Printer) QueueShares(answer *apportionv1.SharesAnswer) {
	for _, plugin := range answer.GetPlugins() {
		switch {
		case ofKueue(plugin):
			p.kueue(plugin)
		case len(plugin.GetQueues()) > 0 || len(plugin.GetHierarchyReasons()) > 0:
			p.plugin(answer, plugin)
		}
	}
}

// lineWidth is the largest width at which sentences are broken.
const lineWidth = 100

// textWidth returns the width at which sentences are broken.
func (s Style) textWidth() int {
	if s.Width > 0 {
		return min(s.Width, lineWidth)
	}
	return lineWidth
}

// Verdict says what holds a job back.
func (p *Printer) Verdict(e *apportionv1.Explanation) {
	paint := Bad
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		paint = Good
	default:
	}
	p.Line("")
	p.Text(paint, e.GetText())
}

// Text writes paragraphs, one a line, broken between words.
func (p *Printer) Text(paint Paint, paragraphs string) {
	for paragraph := range strings.SplitSeq(paragraphs, "\n") {
		lines := wrap(visible.Except(paragraph, colour), p.textWidth())
		for i := range lines {
			lines[i] = p.Paint(paint, lines[i])
		}
		p.broken(paragraph, lines)
	}
}

// wrap breaks a text between words.
func wrap(sentence string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(sentence) {
		if line != "" && width(line)+1+width(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
