package render

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// Remedies shows what would make a job run, with the command that tries each, and what was not tried.
func (p *Printer) Remedies(a *apportionv1.RemediesAnswer) { p.RemediesWith(a, nil, false) }

// RemediesWith shows what would make a job run, with the command that tries each and the changes of objects that make it, and what was not
// tried. With parts it shows the parts of the objects that change.
func (p *Printer) RemediesWith(a *apportionv1.RemediesAnswer, changes [][]objects.Patch, parts bool) {
	none := a.GetOutcome() == apportionv1.RemedyOutcome_REMEDY_OUTCOME_NONE
	if reasons := text.Reasons(p.Names, a.GetReasons()); reasons != "" && (len(a.GetRemedies()) > 0 || none) {
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
		Job: a.GetJob(), Outcome: a.GetOutcome(), Check: a.GetCheck(), Reasons: a.GetReasons(), UnjudgedConstraints: a.GetUnjudgedConstraints(),
		Kueue: a.GetKueue(),
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
	name := p.Snapshot.JobName(job)
	switch plan := remedy.GetKind() == apportionv1.RemedyKind_REMEDY_KIND_EVICTION; {
	case plan && strings.HasPrefix(name, "-"):
		words = append(append(append(words, "plan"), p.Input...), "--", name)
	case plan:
		words = append(append(words, "plan", name), p.Input...)
	case len(remedy.GetWhatifArguments()) == 0:
		return ""
	default:
		words = append(append(append(words, "whatif"), remedy.GetWhatifArguments()...), p.Input...)
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
