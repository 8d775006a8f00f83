// Package render shows answers to people: as tables, bars and sentences.
package render

import (
	"io"
	"slices"
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"

	"github.com/apportion/apportion/internal/visible"
)

// Style contains the settings of the display.
type Style struct {
	// ASCII does without block and line characters.
	ASCII bool
	// Color marks verdicts.
	Color bool
	// Width is the width of the terminal; 0: there is none, and tables have a fixed width.
	Width int
	// Record, if it is not nil, receives what is shown.
	Record *Record
}

// Paint is a colour with a meaning.
type Paint string

const (
	// Good is a yes.
	Good Paint = "32"
	// Bad is a no.
	Bad Paint = "31"
	// Strong is a heading.
	Strong Paint = "1"
)

// Paint colours a text if the style has colours.
func (s Style) Paint(paint Paint, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return colour + string(paint) + "m" + text + colour + "0m"
}

// colour begins a change of colour until it is written. The byte is in no text of UTF-8, so that no name of a cluster can contain it.
const colour = "\xff"

// Table is rows under headings. A heading that begins with > is that of a column of numbers, aligned to the right.
type Table struct {
	style    Style
	headings []string
	right    []bool
	rows     []row
	// wrap is the column at which the last column is broken; 0: at the table's width.
	wrap int
	// bars is the column of bars, -1 if there is none.
	bars int
	// optional are the columns that are left out where the width is too small, in this order.
	optional []string
	// amounts are those in the cells, by their numbers.
	amounts []tableAmount
}

// row is the cells of a row, and its bar.
type row struct {
	cells []string
	bar   func(columns int) string
}

const (
	// fixedWidth is the width of tables without a terminal.
	fixedWidth = 120
	// standardBar, leastBar and mostBar are widths of a bar, without the text that follows it.
	standardBar, leastBar, mostBar = 24, 8, 48
	// barText is the largest width of the text behind a bar.
	barText = 6
	// leastText is the smallest width of the last column.
	leastText = 24
	// gap stands between two columns.
	gap = 2
)

// NewTable begins a table.
func (s Style) NewTable(headings ...string) *Table {
	t := &Table{style: s, bars: -1}
	for _, heading := range headings {
		name, right := strings.CutPrefix(heading, ">")
		t.headings = append(t.headings, name)
		t.right = append(t.right, right)
	}
	return t
}

// Wrap breaks the cells of the last column between words, at so many columns, or where the table would be wider than the terminal.
func (t *Table) Wrap(columns int) *Table {
	t.wrap = columns
	return t
}

// Optional names the columns to leave out where the terminal is too narrow for all, the first of them first.
func (t *Table) Optional(headings ...string) *Table {
	t.optional = headings
	return t
}

// Row adds a row; cells that are missing at its end are empty.
func (t *Table) Row(cells ...string) {
	t.rows = append(t.rows, row{cells: seen(cells)})
}

// BarRow adds a row with a bar in one column, whose cell is empty. The bar is as wide as the terminal allows.
func (t *Table) BarRow(column int, bar func(columns int) string, cells ...string) {
	t.bars = column
	t.rows = append(t.rows, row{cells: seen(cells), bar: bar})
}

// Empty says whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Write writes the table. Where the terminal is too narrow even without the optional columns, it writes the cells of each row below each
// other, all of them.
func (t *Table) Write(out io.Writer) {
	t.inUnits()
	for _, r := range t.rows {
		t.style.Record.row(t, r.cells)
	}
	whole := *t
	whole.headings, whole.right, whole.rows = slices.Clone(t.headings), slices.Clone(t.right), slices.Clone(t.rows)
	dropped := t.fit()
	if t.style.Width > 0 && t.minWidth() > t.style.Width && len(t.headings) > 1 {
		whole.stack(out)
		return
	}
	t.drawBars()
	t.wrapLast()
	widths := t.widths()
	headings := make([]string, len(t.headings))
	for i, heading := range t.headings {
		headings[i] = t.style.Paint(Strong, heading)
	}
	var text strings.Builder
	t.line(&text, widths, headings)
	for _, r := range t.rows {
		t.line(&text, widths, r.cells)
	}
	if len(dropped) > 0 {
		for _, line := range wrap("narrow terminal: without "+strings.Join(dropped, ", "), t.style.Width) {
			text.WriteString(line + "\n")
		}
	}
	write(out, text.String())
}

// stack writes each row as its first cell, and below it the others under their headings.
func (t *Table) stack(out io.Writer) {
	const indent = "  "
	var text strings.Builder
	for _, r := range t.rows {
		if len(r.cells) > 0 && strings.TrimSpace(r.cells[0]) != "" {
			text.WriteString(t.style.Paint(Strong, r.cells[0]) + "\n")
		}
		for i := 1; i < len(r.cells); i++ {
			heading, cell := strings.ToLower(t.headings[i]), r.cells[i]
			if heading != "" {
				heading += " "
			}
			if i == t.bars && r.bar != nil {
				cell = t.style.shorter(r.bar, min(max(t.style.Width-width(indent+heading)-barText, leastBar), standardBar))
			} else if cell != "" {
				cell = strings.Join(wrap(cell, t.style.Width-width(indent+heading)), "\n"+indent+strings.Repeat(" ", width(heading)))
			}
			if cell != "" {
				text.WriteString(indent + heading + cell + "\n")
			}
		}
	}
	write(out, text.String())
}

// widths returns the widths of the columns, without bars that are not drawn yet.
func (t *Table) widths() []int {
	widths := make([]int, len(t.headings))
	for i, heading := range t.headings {
		widths[i] = width(heading)
	}
	for _, r := range t.rows {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], width(cell))
		}
	}
	return widths
}

// total returns the width of a table of such columns.
func total(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// fit leaves out optional columns until the table fits the terminal, and returns their headings.
func (t *Table) fit() (dropped []string) {
	for _, heading := range t.optional {
		if t.style.Width == 0 || t.minWidth() <= t.style.Width {
			break
		}
		i := slices.Index(t.headings, heading)
		if i < 0 {
			continue
		}
		if heading == "" {
			heading = "the bars"
		}
		dropped = append(dropped, heading)
		t.headings, t.right = slices.Delete(t.headings, i, i+1), slices.Delete(t.right, i, i+1)
		for k := range t.rows {
			r := &t.rows[k]
			if i < len(r.cells) {
				r.cells = slices.Delete(slices.Clone(r.cells), i, i+1)
			}
			if i == t.bars {
				r.bar = nil
			}
		}
		switch {
		case i == t.bars:
			t.bars = -1
		case i < t.bars:
			t.bars--
		}
	}
	return dropped
}

// minWidth returns the smallest width of the table.
func (t *Table) minWidth() int {
	widths := t.widths()
	last := len(widths) - 1
	switch {
	case t.bars >= 0:
		widths[t.bars] = max(leastBar+barText, width(t.headings[t.bars]))
	case !t.right[last]:
		// A word is not broken.
		word := leastText
		for _, r := range t.rows {
			if len(r.cells) > last {
				for part := range strings.FieldsSeq(r.cells[last]) {
					word = max(word, width(part))
				}
			}
		}
		widths[last] = min(widths[last], word)
	}
	return total(widths)
}

// drawBars fills the column of bars.
func (t *Table) drawBars() {
	if t.bars < 0 {
		return
	}
	columns := standardBar
	if t.style.Width > 0 {
		widths := t.widths()
		widths[t.bars] = 0
		columns = min(max(t.style.Width-total(widths)-barText, leastBar), mostBar)
	}
	for i := range t.rows {
		if r := &t.rows[i]; r.bar != nil {
			r.cells = slices.Clone(r.cells)
			r.cells[t.bars] = t.style.shorter(r.bar, columns)
		}
	}
}

// shorter returns a bar of so many columns, or a shorter one if the text behind it is longer than barText and there is a width to keep.
func (s Style) shorter(bar func(columns int) string, columns int) string {
	cell := bar(columns)
	if over := width(cell) - columns - barText; over > 0 && s.Width > 0 {
		return bar(max(columns-over, leastBar))
	}
	return cell
}

// wrapLast breaks the cells of the last column between words, where that is asked for or the terminal is too narrow.
func (t *Table) wrapLast() {
	last := len(t.headings) - 1
	columns := t.wrap
	if t.style.Width > 0 || columns > 0 {
		widths := t.widths()
		widths[last] = 0
		room := fixedWidth
		if t.style.Width > 0 {
			room = t.style.Width
		}
		room = max(room-total(widths), leastText)
		if columns == 0 || columns > room {
			columns = room
		}
	}
	if columns == 0 || t.right[last] || t.bars == last {
		return
	}
	var rows []row
	for _, r := range t.rows {
		if len(r.cells) <= last || width(r.cells[last]) <= columns {
			rows = append(rows, r)
			continue
		}
		for i, line := range wrap(r.cells[last], columns) {
			if i == 0 {
				rows = append(rows, row{cells: append(slices.Clone(r.cells[:last]), line)})
				continue
			}
			rows = append(rows, row{cells: append(make([]string, last), line)})
		}
	}
	t.rows = rows
}

func (t *Table) line(text *strings.Builder, widths []int, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		space := strings.Repeat(" ", widths[i]-width(cell))
		if i > 0 {
			line.WriteString(strings.Repeat(" ", gap))
		}
		if t.right[i] {
			line.WriteString(space + cell)
		} else {
			line.WriteString(cell + space)
		}
	}
	text.WriteString(strings.TrimRight(line.String(), " "))
	text.WriteByte('\n')
}

// seen returns cells as they are shown, each on one line.
func seen(cells []string) []string {
	for i, cell := range cells {
		cells[i] = visible.Except(cell, colour+amountMark)
	}
	return cells
}

// write passes a text on, with its colours and the ends of its lines but nothing else that controls a terminal. Whether the reader is gone
// shows when the output is closed.
func write(out io.Writer, text string) {
	text = strings.ReplaceAll(visible.Except(text, "\n"+colour), colour, "\x1b[")
	if _, err := io.WriteString(out, text); err != nil {
		return
	}
}

// width returns the number of columns that a text takes on a terminal, without colours: two for each wide character, as those of Chinese
// and most emoji are, and none for one that is combined with the character before it.
func width(text string) int {
	columns, escaped := 0, false
	hued := strings.Contains(text, colour)
	for i, r := range text {
		switch {
		case hued && text[i] == colour[0]:
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			columns += columnsOf(r)
		}
	}
	return columns
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	if kind := eastasian.LookupRune(r).Kind(); kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth {
		return 2
	}
	return 1
}
