package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsageOfAHistoryIsThatOfEveryFormat(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		format, file string
		warnings     []string
		csv          []string
	}{
		{
			"sacct", "sacct.txt",
			[]string{
				"1 row was left out: AllocTRES has an amount of cpu that is no quantity, such as line 9", "the end is before the start, such as line 7",
				"the start is no time, such as line 6", "start lies in the future, such as line 11", "it names no job, or no account, such as line 8",
				"the row has fewer columns than the first line, such as line 10",
			},
			[]string{
				"2026-10-05T00:00:00Z,2026-10-12T00:00:00Z,vision,,nvidia.com/gpu,48.0000,172800",
				"2026-10-05T00:00:00Z,2026-10-12T00:00:00Z,vision,ann,cpu,192.0000,691200000",
				"2026-10-05T00:00:00Z,2026-10-12T00:00:00Z,language,bob,nvidia.com/gpu,156.0000,561600",
				"2026-10-12T00:00:00Z,2026-10-13T00:00:00Z,root,,memory,384.0000,1415577600",
			},
		},
		{
			"csv", "usage.csv",
			[]string{"another number of columns than the first line, such as line 4", "the amount of cpu is no quantity, such as line 5"},
			[]string{"2026-10-05T00:00:00Z,2026-10-12T00:00:00Z,vision,ann,nvidia.com/gpu,24.0000,86400"},
		},
		{
			"prometheus", "range.json",
			[]string{"2 rows were left out: a sample is no number of 0 or more", "1 row was left out: the series has no label queue"},
			[]string{"vision,ann,nvidia.com/gpu,8.0000,28800"},
		},
	} {
		t.Run(c.format, func(t *testing.T) {
			kept := filepath.Join(dir, c.format)
			var first string
			for range 2 {
				code, out, errors := execute(t, "", "usage", "import", "--ledger", kept, "--from", c.format, "testdata/history/"+c.file)
				require.Zero(t, code, errors)
				require.Contains(t, out, "rows")
				for _, warning := range c.warnings {
					require.Contains(t, errors, warning)
				}
				code, out, errors = execute(t, "", "usage", "--ledger", kept, "-o", "csv", "--owners", "--until", "2026-10-13")
				require.Zero(t, code, errors)
				for _, line := range c.csv {
					require.Contains(t, out, line)
				}
				if first == "" {
					first = out
				}
				require.Equal(t, first, out, "a history counts once")
			}
		})
	}

	copied := filepath.Join(dir, "copy")
	code, _, errors := execute(t, "", "usage", "copy", "--ledger", filepath.Join(dir, "sacct"), copied)
	require.Zero(t, code, errors)
	_, before, _ := execute(t, "", "usage", "--ledger", filepath.Join(dir, "sacct"), "-o", "json")
	_, after, _ := execute(t, "", "usage", "--ledger", copied, "-o", "json")
	require.Equal(t, before, after)
	code, _, errors = execute(t, "", "usage", "merge", "--ledger", copied, filepath.Join(dir, "sacct"))
	require.Zero(t, code, errors)
	_, after, _ = execute(t, "", "usage", "--ledger", copied, "-o", "json")
	require.Equal(t, before, after)
}

// hoursOf returns the hours of a resource that the queues of a ledger used altogether.
func hoursOf(t *testing.T, kept, resource string) map[string]string {
	t.Helper()
	code, out, errors := execute(t, "", "usage", "--ledger", kept, "--by", "total", "--resource", resource, "-o", "csv")
	require.Zero(t, code, errors)
	hours := map[string]string{}
	for line := range strings.Lines(out) {
		if cells := strings.Split(line, ","); cells[0] != "begin" && len(cells) > 5 {
			hours[cells[2]] = cells[5]
		}
	}
	return hours
}

func TestEachRowCountsOnceInAnyNumberOfImports(t *testing.T) {
	for story, c := range map[string]struct {
		imports  [][]string
		want     map[string]string
		out      string
		warnings []string
	}{
		"two halves": {
			[][]string{{"import-1.txt"}, {"import-2.txt"}}, map[string]string{"a": "61.0000", "c": "86.0000", "root": "147.0000"}, "3 rows, 3 with usage", nil,
		},
		"in one call": {
			[][]string{{"import-1.txt", "import-2.txt"}}, map[string]string{"a": "61.0000", "c": "86.0000", "root": "147.0000"}, "", nil,
		},
		"rows that still ran in January": {
			[][]string{{"running-january.txt"}},
			map[string]string{"beta": "192.0000", "root": "192.0000"},
			"3 rows, 1 with usage, 2 without, 2 still ran",
			[]string{"2 rows have no end: what still ran counts until 2026-01-30T00:00:00Z, the time of the history"},
		},
		"by the time of the file": {
			[][]string{{"--as-of", "2026-01-31", "running-january.txt"}},
			map[string]string{"alpha": "192.0000", "beta": "216.0000", "root": "408.0000"},
			"3 with usage",
			[]string{"until 2026-01-31T00:00:00Z"},
		},
		"and their ends": {
			[][]string{{"--as-of", "2026-03-01", "running-january.txt"}, {"running-today.txt"}},
			map[string]string{"alpha": "384.0000", "beta": "240.0000", "root": "624.0000"},
			"", nil,
		},
		"ends first": {
			[][]string{{"running-today.txt"}, {"--as-of", "2026-03-01", "running-january.txt"}},
			map[string]string{"alpha": "384.0000", "beta": "240.0000", "root": "624.0000"},
			"", nil,
		},
		"two clusters": {
			[][]string{{"two-clusters.txt"}}, map[string]string{"alpha": "27.0000", "beta": "1.0000", "root": "28.0000"}, "4 with usage", nil,
		},
		"two clusters without their names": {
			[][]string{{"no-clusters.txt"}},
			map[string]string{"alpha": "5.0000", "root": "5.0000"},
			"",
			[]string{"of 2 rows task and start are those of an earlier row with another queue, owner, amount or end"},
		},
		"runs before a requeue": {[][]string{{"requeue.txt"}}, map[string]string{"alpha": "12.0000", "root": "12.0000"}, "3 with usage", nil},
		"devices": {
			[][]string{{"devices.txt"}},
			map[string]string{"alpha": "10.0000", "beta": "30.0000", "root": "40.0000"},
			"13 rows, 9 with usage, 1 without",
			[]string{
				"of 1 row gres/shard is not counted", "of 1 row gres/gpumem is not counted",
				"1 row was left out: it has no resource that is counted, which are cpu, mem and gres/gpu, such as line 5",
				"an amount of cpu that is no quantity",
			},
		},
		"a start of 1970, suspended time, no end": {
			[][]string{{"--queues", "../tree.yaml", "odd.txt"}},
			map[string]string{"alpha": "6.0000", "gone": "1.0000", "root": "7.0000"},
			"2 with usage",
			[]string{
				"the start is before the year 2000, such as line 2", "of 1 row the time for which the job was suspended does not count",
				"1 row is charged directly below the root, because the tree lacks the queue: gone", "Suspended is no time",
			},
		},
		"series of one queue": {
			[][]string{{"--from", "prometheus", "pods.json"}},
			map[string]string{"vision": "5.0000", "root": "5.0000"},
			"4 with usage",
			[]string{"of 1 row the series differs from another one of its queue and owner in other labels: their values are added", "each sample counts for 30m"},
		},
	} {
		t.Run(story, func(t *testing.T) {
			kept := filepath.Join(t.TempDir(), "ledger")
			for i, files := range c.imports {
				args := []string{"usage", "import", "--ledger", kept}
				for _, name := range files {
					if filepath.Ext(name) != "" {
						name = filepath.Join("testdata", "history", name)
					}
					args = append(args, name)
				}
				code, out, errors := execute(t, "", args...)
				require.Zero(t, code, errors)
				require.Contains(t, out, " rows, ")
				if i == len(c.imports)-1 {
					require.Contains(t, out, c.out)
				}
				for _, warning := range c.warnings {
					require.Contains(t, errors, warning)
				}
			}
			require.Equal(t, c.want, hoursOf(t, kept, "gpu"))
		})
	}
}

func TestALedgerIsFilledFromAServerOfPrometheus(t *testing.T) {
	answer, err := os.ReadFile("testdata/history/range.json")
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != "gpus" || r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	dir := t.TempDir()
	kept, token := filepath.Join(dir, "ledger"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	ask := func(more ...string) (int, string, string) {
		return execute(t, "", append([]string{
			"usage", "import", "--ledger", kept, "--from", "prometheus", "--url", server.URL, "--query", "gpus", "--since", "2026-10-05",
			"--until", "2026-10-13", "--step", "1h",
		}, more...)...)
	}
	code, _, errors := ask()
	require.NotZero(t, code)
	require.Contains(t, errors, "the server answers 403 Forbidden")
	_, err = os.Stat(kept)
	require.ErrorIs(t, err, os.ErrNotExist)
	code, out, errors := ask("--token-file", token)
	require.Zero(t, code, errors)
	require.Contains(t, out, "rows")
	code, _, errors = ask("--token-file", token, "--max-bytes", "10")
	require.NotZero(t, code)
	require.Contains(t, errors, "more than 10 bytes")
	code, _, errors = ask("history.json")
	require.NotZero(t, code)
	require.Contains(t, errors, "name files, or a server with --url")
	code, out, errors = execute(t, "", "usage", "--ledger", kept, "-o", "csv", "--owners")
	require.Zero(t, code, errors)
	require.Contains(t, out, "vision,ann,nvidia.com/gpu,")
}

func TestAFileThatIsNoHistoryIsAnErrorAndChangesNothing(t *testing.T) {
	for format, want := range map[string]string{
		"sacct": "the first line names no column JobID", "csv": "the first line names no column task", "prometheus": "no JSON",
	} {
		kept := filepath.Join(t.TempDir(), "ledger")
		code, _, errors := execute(t, "hello world\n", "usage", "import", "--ledger", kept, "--from", format, "-")
		require.NotZero(t, code)
		require.Contains(t, errors, want)
		_, err := os.Stat(kept)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

func TestABudgetSaysWhoSpentIt(t *testing.T) {
	dir := t.TempDir()
	kept, budgets := filepath.Join(dir, "ledger"), filepath.Join(dir, "budgets.yaml")
	require.NoError(t, os.WriteFile(budgets, []byte("budgets: [{queue: vision, kind: hard, periods: [{begin: 2026-10-01, hours: {nvidia.com/gpu: 96}}]}, "+
		"{queue: root, kind: soft, periods: [{begin: 2026-10-01, hours: {nvidia.com/gpu: 480}}]}]"), 0o600))
	code, _, errors := execute(t, "", "usage", "import", "--ledger", kept, "--from", "sacct", "testdata/history/sacct.txt")
	require.Zero(t, code, errors)
	code, _, errors = execute(t, "", "usage", "--ledger", kept, "--by", "budget")
	require.NotZero(t, code)
	require.Contains(t, errors, "name the file of the budgets")
	code, out, errors := execute(t, "", "usage", "--ledger", kept, "--by", "budget", "--budgets", budgets, "--owners", "-o", "csv", "--until", "2026-10-13")
	require.Zero(t, code, errors)
	require.Equal(t, `begin,end,budget,kind,user,owner,resource,granted_hours,hours,quantum_seconds
2026-10-01T00:00:00Z,,vision,hard,,,nvidia.com/gpu,96.0000,48.0000,172800
2026-10-01T00:00:00Z,,vision,hard,vision,ann,nvidia.com/gpu,96.0000,48.0000,172800
2026-10-01T00:00:00Z,,root,soft,,,nvidia.com/gpu,480.0000,216.0000,777600
2026-10-01T00:00:00Z,,root,soft,language,,nvidia.com/gpu,480.0000,168.0000,604800
2026-10-01T00:00:00Z,,root,soft,language,bob,nvidia.com/gpu,480.0000,168.0000,604800
2026-10-01T00:00:00Z,,root,soft,vision,,nvidia.com/gpu,480.0000,48.0000,172800
2026-10-01T00:00:00Z,,root,soft,vision,ann,nvidia.com/gpu,480.0000,48.0000,172800
`, out)
	code, out, errors = execute(t, "", "usage", "--ledger", kept, "--by", "budget", "--budgets", budgets, "--queue", "vision")
	require.Zero(t, code, errors)
	require.Contains(t, out, "vision, hard")
	require.Contains(t, out, "50%")
}

func TestALedgerOfAnotherClusterIsMergedAfterItIsAdopted(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, kept := range []string{one, two} {
		code, _, errors := execute(t, "", "usage", "import", "--ledger", kept, "--from", "csv", "testdata/history/usage.csv")
		require.Zero(t, code, errors)
		code, _, errors = execute(t, "", "usage", "adopt", "--ledger", kept, "--cluster", filepath.Base(kept))
		require.Zero(t, code, errors)
	}
	code, _, errors := execute(t, "", "usage", "merge", "--ledger", one, two)
	require.NotZero(t, code)
	require.Contains(t, errors, `the ledger is about another cluster: "one", not "two"`)
	code, _, errors = execute(t, "", "usage", "adopt", "--ledger", two, "--cluster", "one")
	require.Zero(t, code, errors)
	code, _, errors = execute(t, "", "usage", "merge", "--ledger", one, two)
	require.Zero(t, code, errors)
}

// execute runs a command line with some input.
func execute(t *testing.T, in string, args ...string) (code int, out, errors string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(in), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}
