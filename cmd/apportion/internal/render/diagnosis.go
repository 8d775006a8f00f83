package render

import (
	"strings"

	"github.com/apportion/apportion/cmd/apportion/internal/diagnosis"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Diagnosis lists the checks of a job and how each went.
func (p *Printer) Diagnosis(d *diagnosis.Diagnosis) {
	table := p.NewTable("", "CHECK", "FOUND").Wrap(lineWidth)
	for _, f := range d.Findings {
		mark := " "
		if f.Outcome != diagnosis.Noted {
			mark = p.mark(f.Outcome == diagnosis.Passed)
		}
		table.Row(mark, f.Check, f.Text)
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

// Verdict says the diagnosis in plain words.
func (p *Printer) Verdict(d *diagnosis.Diagnosis) {
	paint := Good
	if d.Waits {
		paint = Bad
	}
	p.Line("")
	for _, line := range wrap(d.Verdict, lineWidth) {
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
