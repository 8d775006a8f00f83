package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/editing"
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
		for _, r := range f.GetCauses() {
			if r.GetCode() != apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT || r.Queue == nil || len(r.GetDimensions()) == 0 ||
				int(r.GetQueue()) >= len(p.Snapshot.GetQueues()) {
				continue
			}
			queue := p.Snapshot.GetQueues()[r.GetQueue()]
			dimension := r.GetDimensions()[0]
			left, stated := lookup.Left(queue.GetBudget(), dimension)
			capability := slices.Index(queue.GetCapability().GetDimensions(), dimension)
			if !stated || queue.GetBudget().GetKind() != apportionv1.BudgetKind_BUDGET_KIND_HARD ||
				capability >= 0 && queue.GetCapability().GetAmounts()[capability] <= r.GetLimit() {
				continue
			}
			said := fmt.Sprintf("queue %s has a hard budget of %s, of which %s is left: that is what limits it",
				p.Names.Queue(r.GetQueue()), p.Names.Dimension(dimension), finePercent(left))
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
		case len(plugin.GetQueues()) > 0 || len(plugin.GetHierarchyCauses()) > 0:
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

// Remedies shows what would make a job run, with the command that tries each, and what was not tried.
func (p *Printer) Remedies(a *apportionv1.RemediesAnswer) { p.RemediesWith(a, nil, false) }

// RemediesWith shows what would make a job run, with the command that tries each and the changes of objects that make it, and what was not
// tried. With parts it shows the parts of the objects that change.
func (p *Printer) RemediesWith(a *apportionv1.RemediesAnswer, changes [][]objects.Patch, parts bool) {
	none := a.GetOutcome() == apportionv1.RemedyOutcome_REMEDY_OUTCOME_NONE
	if reasons := text.Reasons(p.Names, a.GetCauses()); reasons != "" && (len(a.GetRemedies()) > 0 || none) {
		p.Text("", visible.Text(p.Snapshot.JobName(a.GetJob()))+" waits: "+reasons+".")
		p.Line("")
	}
	p.remedyList(a, true, changes, parts)
	for _, untried := range a.GetUntriedKinds() {
		p.Text("", text.Untried(untried))
	}
	if len(a.GetUntriedKinds()) > 0 {
		p.Line("")
	}
	paint := Good
	switch a.GetOutcome() { //nolint:exhaustive // The others are good.
	case apportionv1.RemedyOutcome_REMEDY_OUTCOME_NONE, apportionv1.RemedyOutcome_REMEDY_OUTCOME_NOT_JUDGED:
		paint = Bad
	}
	short := &apportionv1.RemediesAnswer{
		Job: a.GetJob(), Outcome: a.GetOutcome(), Check: a.GetCheck(), Causes: a.GetCauses(),
		UnjudgedConstraints: a.GetUnjudgedConstraints(),
		Kueue:               a.GetKueue(),
	}
	for range a.GetRemedies() {
		short.Remedies = append(short.Remedies, &apportionv1.Remedy{})
	}
	names := p.Names
	names.Job = p.Snapshot.JobName
	p.Text(paint, strings.TrimSpace(text.Remedies(names, short)))
}

// RemedyList lists remedies in a sentence each.
func (p *Printer) RemedyList(a *apportionv1.RemediesAnswer) {
	p.Heading("%s", text.Say("letsRun", "changes", text.Count(len(a.GetRemedies()), "change")))
	p.remedyList(a, false, nil, false)
	for _, untried := range a.GetUntriedKinds() {
		if text.CutShort(untried) {
			p.Text("", text.Untried(untried))
		}
	}
}

func (p *Printer) remedyList(a *apportionv1.RemediesAnswer, commands bool, changes [][]objects.Patch, parts bool) {
	const indent = "    "
	width := p.textWidth() - len(indent)
	for i, remedy := range a.GetRemedies() {
		mark := strconv.Itoa(i+1) + "."
		mark += strings.Repeat(" ", max(len(indent)-len(mark), 1))
		for k, line := range wrap(remedy.GetText(), width) {
			if k > 0 {
				mark = indent
			}
			p.Line("%s%s", mark, line)
		}
		if !commands {
			continue
		}
		if trial := p.Trial(a.GetJob(), remedy); trial != "" {
			p.Copied("%s%s", indent, p.Paint(Strong, trial))
		}
		if i < len(changes) {
			p.patches(changes[i], indent, parts)
		}
	}
	if commands && len(a.GetRemedies()) > 0 {
		p.Line("")
	}
}

// Trial is the command that tries a remedy; "" if none can.
func (p *Printer) Trial(job uint32, remedy *apportionv1.Remedy) string {
	words := strings.Fields(cmp.Or(p.Program, "apportion"))
	names := p.Names
	names.Job, names.Node = p.Snapshot.JobName, p.Snapshot.NodeName
	name, changes := names.Job(job), editing.Arguments(names, remedy)
	switch plan := remedy.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION; {
	case plan && strings.HasPrefix(name, "-"):
		words = append(append(append(words, "plan"), p.Input...), "--", name)
	case plan:
		words = append(append(words, "plan", name), p.Input...)
	case len(changes) == 0:
		return ""
	default:
		words = append(append(append(words, "whatif"), changes...), p.Input...)
	}
	return Quoted(words)
}

// patches shows changes of objects: why, the command that makes each, and the part that changes if wanted or if there is no command.
func (p *Printer) patches(list []objects.Patch, indent string, parts bool) {
	for _, patch := range list {
		if patch.Why != "" {
			for _, line := range wrap(patch.Why, p.textWidth()-len(indent)) {
				p.Line("%s%s", indent, line)
			}
		}
		if len(patch.Kubectl) > 0 {
			p.Copied("%s%s", indent, p.Paint(Strong, Quoted(patch.Kubectl)))
		}
		if parts || len(patch.Kubectl) == 0 {
			for line := range strings.Lines(patch.YAML) {
				p.Copied("%s  %s", indent, strings.TrimSuffix(line, "\n"))
			}
		}
	}
}

// Quoted joins the words of a command as a shell reads them. A command with characters that are not shown is written with escapes, which
// the shell reads first.
func Quoted(arguments []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:@+,"
	words := make([]string, len(arguments))
	for i, argument := range arguments {
		words[i] = argument
		if strings.Trim(argument, plain) != "" || argument == "" {
			words[i] = "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
		}
	}
	line := strings.Join(words, " ")
	if visible.Text(line) == line {
		return line
	}
	var format strings.Builder
	for _, r := range line {
		switch c := string(r); {
		case c == `\` || c == "%":
			format.WriteString(c + c)
		case c == "'":
			format.WriteString(`'\''`)
		case visible.Text(c) != c:
			for _, b := range []byte(c) {
				fmt.Fprintf(&format, `\%03o`, b)
			}
		default:
			format.WriteString(c)
		}
	}
	return `eval "$(printf '` + format.String() + `')"`
}
