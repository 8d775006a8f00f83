package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/report"
)

var rareGangsFlag = flag.Bool("raregangs", false, "rehearse half years in which gangs are rare, and compare the table of docs/rehearse.md")

// TestRareGangsWaitAsTheDocumentsShow rehearses ten half years in which two of the week's twelve gangs of 32 GPUs are left and the others are
// three jobs of a node each, under the preset `fair` and under one in which gangs alone have turns. -update writes the table anew.
func TestRareGangsWaitAsTheDocumentsShow(t *testing.T) {
	if !*rareGangsFlag {
		t.Skip("it takes minutes; -args -raregangs runs it")
	}
	t.Chdir(filepath.Join("..", ".."))
	week, err := os.ReadFile("examples/traces/week.csv")
	require.NoError(t, err)
	directory := t.TempDir()
	gangs := filepath.Join(directory, "gangs.yaml")
	require.NoError(t, os.WriteFile(gangs, []byte(
		"tiers: [{plugins: [{priority: {}}, {gang: {}}, {conformance: {}}, {fair: {turns: {}}}]}]\ntierWalk: TIER_WALK_STRICT\n"), 0o600))
	trace := filepath.Join(directory, "rare.csv")
	var found []report.Report
	for _, left := range [][]int{{1, 7}, {6, 12}, {1, 2}, {3, 9}, {4, 11}, {2, 8}, {5, 10}, {3, 6}, {2, 11}, {9, 12}} {
		require.NoError(t, os.WriteFile(trace, []byte(withRareGangs(string(week), left)), 0o600))
		out := outputOf(t, 0, "rehearse", "-f", "examples/clusters/research", "--trace", trace, "--repeat", "26",
			"--policy", gangs, "--policy", "fair", "--half-life", "7d", "-o", "json")
		var r report.Report
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		found = append(found, r)
	}
	requireTable(t, "docs/rehearse.md", "rare-gangs", rareGangs(found))
}

// withRareGangs returns the week's trace with only these gangs of 32 GPUs, counted from 1; each other one is three jobs of one task.
func withRareGangs(week string, left []int) string {
	var b strings.Builder
	gang := 0
	for line := range strings.Lines(week) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) > 8 && f[4] == "4" && f[5] == "4" && f[8] == "8" {
			if gang++; !slices.Contains(left, gang) {
				for _, part := range []string{"a", "b", "c"} {
					fmt.Fprintf(&b, "%s,%s-%s,%s,1,1,%s\n", f[0], f[1], part, strings.Join(f[2:4], ","), strings.Join(f[6:], ","))
				}
				continue
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// rareGangs is a table of means over half years, with a column for each policy, and of the least and the greatest in brackets.
func rareGangs(found []report.Report) string {
	rows := []struct {
		name, form string
		of         func(r *rehearsal.Result) float64
	}{
		{"longest wait", "%.2f d (%.2f to %.2f)", func(r *rehearsal.Result) float64 { return float64(r.Waits.Longest) / 86400 }},
		{"mean wait", "%.1f h (%.1f to %.1f)", func(r *rehearsal.Result) float64 { return r.Waits.Mean / 3600 }},
		{"mean wait of language", "%.1f h (%.1f to %.1f)", func(r *rehearsal.Result) float64 { return r.Queues[0].Waits.Mean / 3600 }},
		{"mean wait of vision", "%.1f h (%.1f to %.1f)", func(r *rehearsal.Result) float64 { return r.Queues[3].Waits.Mean / 3600 }},
		{"GPUs in use while jobs arrive", "%.1f %% (%.1f to %.1f)", func(r *rehearsal.Result) float64 { return 100 * r.Use[0].Arriving }},
		{"evicted tasks", "%.0f (%.0f to %.0f)", func(r *rehearsal.Result) float64 { return float64(r.Evictions.Total) }},
		{"GPU hours lost", "%.0f (%.0f to %.0f)", func(r *rehearsal.Result) float64 { return r.Use[0].Lost }},
		{"fairness", "%.3f (%.3f to %.3f)", func(r *rehearsal.Result) float64 { return r.Fairness }},
	}
	var b strings.Builder
	b.WriteString("| | gangs alone have turns | jobs of one task after half a day, too |\n| --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row.name)
		for policy := range found[0].Runs {
			sum, values := 0.0, []float64(nil)
			for i := range found {
				value := row.of(found[i].Runs[policy])
				sum, values = sum+value, append(values, value)
			}
			fmt.Fprintf(&b, " "+row.form+" |", sum/float64(len(values)), slices.Min(values), slices.Max(values))
		}
		b.WriteString("\n")
	}
	return b.String()
}
