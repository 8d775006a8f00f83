package render

import (
	"io"
	"slices"
	"strings"

	"github.com/apportion/apportion/internal/visible"
)

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
