package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
	if forecast := e.GetForecast(); forecast != nil {
		table.Row(" ", "forecast", strings.TrimSuffix(forecast.GetText(), "."))
	}
	p.table(table)
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
		if len(plugin.GetQueues()) > 0 || len(plugin.GetHierarchyReasons()) > 0 {
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
		for _, line := range wrap(paragraph, p.textWidth()) {
			p.Line("%s", p.Paint(paint, line))
		}
	}
}

// Pending shows jobs that wait with the reason of each: in groups by cause, the largest first, or in the order of the answer. wanted says
// which jobs are shown: those of a namespace, or all if it is "".
func (p *Printer) Pending(a *apportionv1.ExplainAnswer, grouped bool, namespace string, wanted func(*apportionv1.Explanation) bool) {
	of := make(map[uint32]*apportionv1.Explanation, len(a.GetJobs()))
	var all []uint32
	for _, e := range a.GetJobs() {
		of[e.GetJob()] = e
		all = append(all, e.GetJob())
	}
	groups := a.GetGroups()
	if !grouped {
		groups = []*apportionv1.PendingGroup{{Jobs: all}}
	}
	shown := 0
	for _, group := range groups {
		if table, rows := p.pendingTable(group.GetJobs(), of, wanted); rows > 0 {
			if shown > 0 {
				p.Line("")
			}
			shown += rows
			if grouped {
				p.Line("%s", p.Paint(Strong, fmt.Sprintf("%d %s", rows, group.GetText())))
			}
			p.table(table)
		}
	}
	out := slices.DeleteFunc(slices.Clone(a.GetLeftOut()), func(l *apportionv1.LeftOutExplanation) bool {
		return namespace != "" && l.GetLeftOut().GetNamespace() != namespace
	})
	if len(out) > 0 {
		p.Heading("%d not considered", len(out))
		p.leftOut(out)
	}
	if shown > 0 || len(out) > 0 {
		p.Line("")
	}
	if namespace != "" {
		p.Text(Strong, fmt.Sprintf("%s in namespace %s, %d in all.", text.Count(shown, "job")+" "+text.Verb(shown, "waits", "wait"), namespace, len(all)))
		return
	}
	p.Text(Strong, a.GetText())
}

// leftOut lists what is not considered. Of pods that another scheduler places the first are named.
func (p *Printer) leftOut(list []*apportionv1.LeftOutExplanation) {
	const named = 3
	pods := map[string]int{}
	for _, l := range list {
		scheduler := l.GetLeftOut().GetScheduler()
		if pods[scheduler]++; scheduler == "" || pods[scheduler] <= named {
			p.Text("", l.GetText())
		}
	}
	delete(pods, "")
	for _, scheduler := range slices.Sorted(maps.Keys(pods)) {
		if more := pods[scheduler] - named; more > 0 {
			p.Text("", fmt.Sprintf("%s left to scheduler %s.", text.Are(more, "more pod"), scheduler))
		}
	}
}

// pendingTable is a table of jobs that wait, and how many rows it has.
func (p *Printer) pendingTable(
	jobs []uint32, of map[uint32]*apportionv1.Explanation, wanted func(*apportionv1.Explanation) bool,
) (table *Table, rows int) {
	table = p.NewTable("JOB", "QUEUE", "PHASE", ">TASKS", "FOUND").Wrap(lineWidth).Optional("TASKS", "PHASE", "QUEUE")
	for _, index := range jobs {
		e := of[index]
		if e == nil || !wanted(e) {
			continue
		}
		rows++
		table.Row(e.GetName(), p.Names.Queue(e.GetQueue()), text.Enum(e.GetPhase(), "JOB_PHASE_"), count(e.GetWaitingTasks()), found(e))
	}
	return table, rows
}

// found returns the finding of the check that blocks.
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
