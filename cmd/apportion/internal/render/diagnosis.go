package render

import (
	"strings"

	"github.com/apportion/apportion/client/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Findings lists the checks of a job and how each went.
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
	p.table(table)
}

// QueueShares shows the accounts of queues without their order.
func (p *Printer) QueueShares(answer *apportionv1.SharesAnswer) {
	for _, plugin := range answer.GetPlugins() {
		if len(plugin.GetQueues()) > 0 || len(plugin.GetHierarchyReasons()) > 0 {
			p.plugin(answer, plugin)
		}
	}
}

// lineWidth is where long sentences are broken.
const lineWidth = 100

// Verdict says what holds a job back.
func (p *Printer) Verdict(e *apportionv1.Explanation) {
	paint := Bad
	switch e.GetVerdict() {
	case apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, apportionv1.PendingVerdict_PENDING_VERDICT_COMPLETE:
		paint = Good
	default:
	}
	p.Line("")
	for _, line := range wrap(e.GetText(), lineWidth) {
		p.Line("%s", p.Paint(paint, line))
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
