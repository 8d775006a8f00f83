package render

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// Printer shows answers about one snapshot.
type Printer struct {
	Style
	Out      io.Writer
	Snapshot *lookup.Snapshot
	Names    text.Names
	// Resources are the dimensions to show. Empty: all that matter.
	Resources []string
	// Brief leaves out derivations, of which other parts of the output are made.
	Brief bool
	// Program is the command by which the user runs the program, and Input the flags that name the input, for commands in answers.
	Program string
	Input   []string
	// ByOwners says that the policy serves jobs of equal priority by what their owners used.
	ByOwners bool
	// Since says since when each waiting job waits for its present cause; nil: that is not known of any.
	Since map[uint32]string
}

// Line writes a line, which is broken between words where a terminal is narrower. The ends of lines are those of the format, not of what it
// is filled with.
func (p *Printer) Line(format string, args ...any) {
	line := p.filled(format, args)
	p.Record.sentence(line)
	write(p.Out, narrowed(line, p.Width)+"\n")
}

// Copied writes a line that is copied as a whole, such as a command, and never broken.
func (p *Printer) Copied(format string, args ...any) {
	line := p.filled(format, args)
	p.Record.sentence(line)
	write(p.Out, line+"\n")
}

func (*Printer) filled(format string, args []any) string {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = visible.Except(s, colour)
		}
	}
	return fmt.Sprintf(format, args...)
}

// narrowed breaks the lines of a text that are wider than so many columns between words; 0: none is. What follows has the indent of the
// line, and that of the text behind the mark of an entry.
func narrowed(text string, columns int) string {
	if columns == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if width(line) <= columns {
			continue
		}
		rest := strings.TrimLeft(line, " ")
		first := line[:len(line)-len(rest)]
		if entry, is := strings.CutPrefix(rest, "- "); is {
			first, rest = first+"- ", entry
		}
		indent := strings.Repeat(" ", len(first))
		lines[i] = first + strings.Join(wrap(rest, columns-len(first)), "\n"+indent)
	}
	return strings.Join(lines, "\n")
}

// Wrapped writes a line that is broken between words where a terminal is narrower.
func (p *Printer) Wrapped(format string, args ...any) {
	line := visible.Except(fmt.Sprintf(format, args...), colour)
	if p.Width == 0 {
		p.Line("%s", line)
		return
	}
	p.broken(line, wrap(line, p.Width))
}

// broken writes a text that is broken into lines, and records it as one.
func (p *Printer) broken(text string, lines []string) {
	p.Record.sentence(text)
	for _, line := range lines {
		write(p.Out, line+"\n")
	}
}

// Heading writes a line that stands out, with an empty one before it unless it is the first.
func (p *Printer) Heading(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.Width == 0 || width(text) <= p.Width {
		p.Line("\n%s", p.Paint(Strong, text))
		return
	}
	p.Line("")
	p.Text(Strong, text)
}

// table writes a table that has rows.
func (p *Printer) table(t *Table) { t.Write(p.Out) }

// Vote is a vote in one coloured word.
func (p *Printer) Vote(vote apportionv1.Vote) string {
	word := text.Vote(vote)
	switch vote {
	case apportionv1.Vote_VOTE_PERMIT:
		return p.Paint(Good, word)
	case apportionv1.Vote_VOTE_REJECT:
		return p.Paint(Bad, word)
	case apportionv1.Vote_VOTE_ABSTAIN, apportionv1.Vote_VOTE_UNSPECIFIED:
	}
	return word
}

// Reasons says reasons in words.
func (p *Printer) Reasons(reasons []*apportionv1.Cause) string {
	return text.Reasons(p.Names, reasons)
}

// seldom are dimensions that are only shown if they decide something, or are asked for.
var seldom = []string{"pods", "ephemeral-storage"}

// shown are the dimensions to show: those asked for, or those in which something is written, the seldom ones only if dominant.
func (p *Printer) shown(dominant []uint32, resources ...*apportionv1.Resource) []int {
	var list []int
	for i, name := range p.Names.Dimensions {
		if len(p.Resources) > 0 {
			if slices.ContainsFunc(p.Resources, func(asked string) bool { return Matches(name, asked) }) {
				list = append(list, i)
			}
			continue
		}
		if slices.Contains(dominant, uint32(i)) {
			list = append(list, i)
			continue
		}
		written := slices.ContainsFunc(resources, func(r *apportionv1.Resource) bool { return value(r, i) != 0 })
		if written && !slices.Contains(seldom, name) {
			list = append(list, i)
		}
	}
	return list
}

// Matches says whether a dimension is meant: by its name, by the part behind the slash, or by all.
func Matches(name, asked string) bool {
	_, last, _ := strings.Cut(name, "/")
	return name == asked || last != "" && last == asked || asked == "all"
}

// Shown returns the function that selects the compared resources: the named ones, or all except those that Kubernetes uses itself.
func Shown(named []string) func(string) bool {
	if len(named) == 0 {
		return func(resource string) bool { return resource != "pods" && resource != "ephemeral-storage" }
	}
	return func(resource string) bool {
		return slices.ContainsFunc(named, func(n string) bool {
			return n == "all" || n == resource || strings.HasSuffix(resource, "/"+n)
		})
	}
}

// alike is up to how many warnings of one text are written one by one.
const alike = 3

// Columns returns the number of columns of the terminal behind a writer; 0: there is none, or it is unknown.
func Columns(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Warn writes a warning, broken between words where the terminal behind the writer is narrower.
func Warn(out io.Writer, text string) {
	write(out, warning(text, Columns(out)))
}

// warning is a warning in lines of at most so many columns; 0: in one.
func warning(text string, columns int) string {
	const indent = "  "
	line := "warning: " + visible.Text(text)
	if columns > 2*len(indent) && width(line) > columns {
		line = strings.Join(wrap(line, columns-len(indent)), "\n"+indent)
	}
	return line + "\n"
}

// Warnings writes warnings, one a line or broken as Warn does. Of many of one text the first is written, with the number of the others.
func Warnings(out io.Writer, warnings []*apportionv1.Warning) {
	type kind struct {
		code    apportionv1.WarningCode
		message string
	}
	count := map[kind]int{}
	for _, w := range warnings {
		count[kind{w.GetCode(), w.GetMessage()}]++
	}
	for _, w := range warnings {
		of := kind{w.GetCode(), w.GetMessage()}
		n := count[of]
		if n == 0 {
			continue
		}
		place, message := "", cmp.Or(w.GetMessage(), text.Enum(w.GetCode(), "WARNING_CODE_"))
		if w.GetPath() != "" {
			place = w.GetPath() + ": "
		}
		if n > alike {
			message += fmt.Sprintf(" (and %d more like it)", n-1)
			count[of] = 0
		}
		Warn(out, place+message)
	}
}

// Record is what an answer showed: the rows of its tables and its sentences. Of an answer to the same question later it tells what changed.
type Record struct{ lines []recorded }

// recorded is a row of a table, or a sentence, which has no headings.
type recorded struct {
	key             string
	headings, cells []string
}

// row records a row of a table. Rows of a group whose first cells are empty have those of the row above.
func (r *Record) row(t *Table, cells []string) {
	if r == nil {
		return
	}
	line := recorded{}
	for i, heading := range t.headings {
		if heading == "" || i == t.bars || i >= len(cells) {
			continue
		}
		line.headings, line.cells = append(line.headings, heading), append(line.cells, plain(cells[i]))
	}
	if n := len(r.lines); n > 0 && slices.Equal(r.lines[n-1].headings, line.headings) {
		for i := 0; i < len(line.cells) && line.cells[i] == ""; i++ {
			line.cells[i] = r.lines[n-1].cells[i]
		}
	}
	line.key = keyOf(t, line)
	r.lines = append(r.lines, line)
}

// keyOf names what a row is about: the cause, or the first cell that is not a number, and the resource.
func keyOf(t *Table, line recorded) string {
	var parts []string
	for i, heading := range line.headings {
		numeric := t.right[slices.Index(t.headings, heading)]
		switch {
		case heading == "WHY":
			return line.cells[i]
		case len(parts) == 0 && !numeric, heading == "RESOURCE":
			parts = append(parts, strings.TrimRight(line.cells[i], "*"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	parts[0], _, _ = strings.Cut(parts[0], " (")
	return strings.Join(parts, " ")
}

// sentence records a line of text.
func (r *Record) sentence(line string) {
	if line = strings.TrimSpace(plain(line)); r != nil && line != "" {
		r.lines = append(r.lines, recorded{key: line})
	}
}

// plain is a text without colours.
func plain(text string) string {
	for {
		from := strings.Index(text, colour)
		if from < 0 {
			return text
		}
		text = text[:from] + text[from+strings.IndexByte(text[from:], 'm')+1:]
	}
}

// Changes writes what differs from an earlier answer: + what is new, - what is gone, and ~ what changed, with the old and the new value. It
// reports whether there is anything.
func (r *Record) Changes(before *Record, style Style, out io.Writer) bool {
	old, rows := map[string]recorded{}, map[string]bool{}
	var gone, added []string
	for _, line := range before.lines {
		old[line.key] = line
	}
	for _, line := range r.lines {
		rows[line.key] = true
	}
	lines := 0
	say := func(paint Paint, mark, text string) {
		lines++
		write(out, style.Paint(paint, mark+" "+visible.Except(text, colour))+"\n")
	}
	for _, line := range before.lines {
		if rows[line.key] {
			continue
		}
		if line.headings == nil {
			gone = append(gone, line.key)
		} else {
			say(Bad, "-", line.text())
		}
	}
	for _, line := range r.lines {
		was, known := old[line.key]
		switch {
		case !known && line.headings == nil:
			added = append(added, line.key)
		case !known:
			say(Good, "+", line.text())
		default:
			if change := line.since(was); change != "" {
				say(Strong, "~", line.key+"  "+change)
			}
		}
	}
	if len(gone) == len(added) {
		for i := range gone {
			say(Strong, "~", gone[i]+" -> "+added[i])
		}
		return lines > 0
	}
	for _, line := range gone {
		say(Bad, "-", line)
	}
	for _, line := range added {
		say(Good, "+", line)
	}
	return lines > 0
}

// text is a row on one line.
func (l recorded) text() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(l.cells), func(cell string) bool { return cell == "" }), "  ")
}

// since lists the cells that differ from those of an earlier row, with both values.
func (l recorded) since(was recorded) string {
	var changes []string
	for i, heading := range l.headings {
		j := slices.Index(was.headings, heading)
		switch {
		case j < 0 && l.cells[i] != "":
			changes = append(changes, strings.ToLower(heading)+": "+l.cells[i])
		case j >= 0 && was.cells[j] != l.cells[i]:
			changes = append(changes, strings.ToLower(heading)+": "+orNothing(was.cells[j])+" -> "+orNothing(l.cells[i]))
		}
	}
	return strings.Join(changes, "; ")
}

func orNothing(cell string) string {
	if cell == "" {
		return "nothing"
	}
	return cell
}
