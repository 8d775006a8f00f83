// Package sample summarises measurements: quantiles, tables in Markdown, and lines of name=value pairs that scripts compare.
package sample

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Durations are measurements of one operation.
type Durations []time.Duration

// Quantile returns the smallest duration that a fraction q of all does not exceed; 0 of none.
func (d Durations) Quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	at := int(q*float64(len(sorted))+0.5) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Median returns the middle of some numbers, the lower one of two; 0 if there are none.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}

// Milliseconds of a duration.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Table is a table in Markdown whose columns line up in plain text too.
type Table struct {
	head []string
	rows [][]string
}

// NewTable returns a table without rows.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Add adds a row: numbers with three significant digits, texts as they are.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case float64:
			row[i] = Number(c)
		default:
			row[i] = fmt.Sprint(c)
		}
	}
	t.rows = append(t.rows, row)
}

// WriteTo writes the table.
func (t *Table) WriteTo(out io.Writer) (int64, error) {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var text strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			fmt.Fprintf(&text, "| %-*s ", width[i], cell)
		}
		text.WriteString("|\n")
	}
	line(t.head)
	for _, w := range width {
		text.WriteString("|" + strings.Repeat("-", w+2))
	}
	text.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
	n, err := io.WriteString(out, text.String())
	return int64(n), err
}

// Number writes a number with three digits that mean something and no exponent, and whole numbers whole. What is not a number, because
// nothing was measured, is a dash.
func Number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	if x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	decimals := 0
	for y := math.Abs(x); y < 100 && y != 0 && decimals < 6; y *= 10 {
		decimals++
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// Line is a line of name=value pairs.
type Line struct {
	title string
	pairs []string
}

// NewLine returns a line that begins with a title.
func NewLine(title string) *Line { return &Line{title: title} }

// Add adds a pair.
func (l *Line) Add(name string, value float64) { l.pairs = append(l.pairs, name+"="+Number(value)) }

func (l *Line) String() string { return l.title + ": " + strings.Join(l.pairs, " ") }
