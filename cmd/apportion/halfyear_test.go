package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/report"
)

var halfYearFlag = flag.Bool("halfyear", false, "run the sample week 26 times and compare the table and the drawing of docs/rehearse.md")

// TestTheHalfYearIsAsTheDocumentsShowIt runs the sample week 26 times with memory and without, as docs/rehearse.md says, and compares its
// table and its drawing. -update writes them anew.
func TestTheHalfYearIsAsTheDocumentsShowIt(t *testing.T) {
	if !*halfYearFlag {
		t.Skip("it takes half a minute of two processors; `make half-year` runs it")
	}
	t.Chdir(filepath.Join("..", ".."))
	const document, drawing = "docs/rehearse.md", "docs/rehearse-shares.svg"
	plot := filepath.Join(t.TempDir(), "shares.svg")
	before, err := os.ReadFile(document)
	require.NoError(t, err)
	line := ""
	for candidate := range strings.Lines(string(before)) {
		if strings.Contains(candidate, "--repeat 26 ") && strings.Contains(candidate, "--plot shares.svg") {
			line = strings.TrimSpace(candidate)
		}
	}
	arguments := strings.Fields(strings.Replace(line, "shares.svg", plot, 1))
	out := outputOf(t, 0, append(arguments[1:], "-o", "json")...)
	var found report.Report
	require.NoError(t, json.Unmarshal([]byte(out), &found))

	drawn, err := os.ReadFile(plot)
	require.NoError(t, err)
	requireTable(t, document, "half-year", halfYear(&found))
	if *update {
		require.NoError(t, os.WriteFile(drawing, drawn, 0o600))
		return
	}
	kept, err := os.ReadFile(drawing)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(drawn))
}

// requireTable requires that a document has a table between the comments of a mark. -update writes it there.
func requireTable(t *testing.T, document, mark, table string) {
	t.Helper()
	begin, end := "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
	before, err := os.ReadFile(document)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(string(before), begin)
	kept, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(head+begin+table+end+tail), 0o600))
		return
	}
	require.Equal(t, kept, table)
}

// halfYear is a table of the main figures, with a column for each run.
func halfYear(r *report.Report) string {
	rows := [][]string{{""}, {"---"}, {"GPUs in use while jobs arrive"}, {"mean wait"}, {"longest wait"}, {"evicted tasks"}, {"GPU hours lost"}}
	for i := range r.Runs[0].Queues {
		q := &r.Runs[0].Queues[i]
		rows = append(rows, []string{fmt.Sprintf("share of %s (by weight %.1f %%), longest wait", q.Name, 100*q.ByWeight)})
	}
	for _, run := range r.Runs {
		column := []string{
			run.Name, "---", fmt.Sprintf("%.1f %%", 100*run.Use[0].Arriving), report.Span(run.Waits.Mean), report.Span(float64(run.Waits.Longest)),
			fmt.Sprint(run.Evictions.Total), fmt.Sprintf("%.1f", run.Use[0].Lost),
		}
		for i := range run.Queues {
			q := &run.Queues[i]
			column = append(column, fmt.Sprintf("%.1f %%, %s", 100*q.Share, report.Span(float64(q.Waits.Longest))))
		}
		for i := range rows {
			rows[i] = append(rows[i], column[i])
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString("| " + strings.TrimSpace(strings.Join(row, " | ")) + " |\n")
	}
	return b.String()
}
