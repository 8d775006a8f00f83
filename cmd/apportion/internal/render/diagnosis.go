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
	p.Text(paint, e.GetText())
}

// Text writes paragraphs, one a line, broken between words.
func (p *Printer) Text(paint Paint, paragraphs string) {
	for paragraph := range strings.SplitSeq(paragraphs, "\n") {
		for _, line := range wrap(paragraph, lineWidth) {
			p.Line("%s", p.Paint(paint, line))
		}
	}
}

// Pending shows jobs that wait with the reason of each, in groups by cause, the largest first. wanted says which jobs are shown.
func (p *Printer) Pending(a *apportionv1.ExplainAnswer, wanted func(*apportionv1.Explanation) bool) {
	of := make(map[uint32]*apportionv1.Explanation, len(a.GetJobs()))
	for _, e := range a.GetJobs() {
		of[e.GetJob()] = e
	}
	for _, group := range a.GetGroups() {
		table := p.NewTable("JOB", "QUEUE", "PHASE", ">TASKS", "FOUND").Wrap(lineWidth)
		rows := 0
		for _, index := range group.GetJobs() {
			e := of[index]
			if e == nil || !wanted(e) {
				continue
			}
			rows++
			table.Row(e.GetName(), p.Names.Queue(e.GetQueue()), text.Enum(e.GetPhase(), "JOB_PHASE_"), count(e.GetWaitingTasks()), found(e))
		}
		if rows > 0 {
			p.Heading("%d %s", rows, group.GetText())
			p.table(table)
		}
	}
	if len(a.GetLeftOut()) > 0 {
		p.Heading("%d not considered", len(a.GetLeftOut()))
		for _, l := range a.GetLeftOut() {
			p.Text("", l.GetText())
		}
	}
	p.Line("")
	p.Text(Strong, a.GetText())
}

// found is what the check that blocks found.
func found(e *apportionv1.Explanation) string {
	if e.Blocking != nil && int(e.GetBlocking()) < len(e.GetFindings()) {
		return e.GetFindings()[e.GetBlocking()].GetText()
	}
	return ""
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
