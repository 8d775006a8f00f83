// Package render shows answers to people: as tables, bars and sentences.
package render

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Style is how things are shown.
type Style struct {
	// ASCII does without block and line characters.
	ASCII bool
	// Color marks verdicts.
	Color bool
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
	return "\x1b[" + string(paint) + "m" + text + "\x1b[0m"
}

// width is how many columns a text takes: its characters, without colours.
func width(text string) int {
	if !strings.Contains(text, "\x1b[") {
		return utf8.RuneCountInString(text)
	}
	columns, escaped := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			columns++
		}
	}
	return columns
}

// Table is rows under headings. A heading that begins with > is that of a column of numbers, aligned to the right.
type Table struct {
	style    Style
	headings []string
	right    []bool
	rows     [][]string
	// wrap is where the last column is broken; 0: nowhere.
	wrap int
}

// NewTable begins a table.
func (s Style) NewTable(headings ...string) *Table {
	t := &Table{style: s}
	for _, heading := range headings {
		name, right := strings.CutPrefix(heading, ">")
		t.headings = append(t.headings, name)
		t.right = append(t.right, right)
	}
	return t
}

// Wrap breaks the cells of the last column between words, at so many columns.
func (t *Table) Wrap(columns int) *Table {
	t.wrap = columns
	return t
}

// Row adds a row; cells that are missing at its end are empty.
func (t *Table) Row(cells ...string) {
	last := len(t.headings) - 1
	if t.wrap == 0 || len(cells) <= last {
		t.rows = append(t.rows, cells)
		return
	}
	for i, line := range wrap(cells[last], t.wrap) {
		if i == 0 {
			t.rows = append(t.rows, append(slices.Clone(cells[:last]), line))
			continue
		}
		t.rows = append(t.rows, append(make([]string, last), line))
	}
}

// Empty says whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Write writes the table.
func (t *Table) Write(out io.Writer) {
	widths := make([]int, len(t.headings))
	for i, heading := range t.headings {
		widths[i] = width(heading)
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	headings := make([]string, len(t.headings))
	for i, heading := range t.headings {
		headings[i] = t.style.Paint(Strong, heading)
	}
	var text strings.Builder
	t.line(&text, widths, headings)
	for _, row := range t.rows {
		t.line(&text, widths, row)
	}
	write(out, text.String())
}

func (t *Table) line(text *strings.Builder, widths []int, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		space := strings.Repeat(" ", widths[i]-width(cell))
		if i > 0 {
			line.WriteString("  ")
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

// write passes a text on. The caller that closes the output learns that the reader has gone away.
func write(out io.Writer, text string) {
	if _, err := io.WriteString(out, text); err != nil {
		return
	}
}
