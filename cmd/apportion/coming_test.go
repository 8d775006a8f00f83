package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented returns the commands of Apportion in the first block of a section of a document.
func documented(t *testing.T, document, section string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(data), section+"\n")
	require.True(t, found, section)
	_, text, found = strings.Cut(text, "```sh\n")
	require.True(t, found, section)
	text, _, _ = strings.Cut(text, "```")
	var out []string
	for line := range strings.Lines(text) {
		if line, _, _ = strings.Cut(line, "#"); strings.HasPrefix(line, "apportion ") {
			out = append(out, line)
		}
	}
	return out
}

func TestEachDocumentedPathFromAnotherSchedulerLeadsToItsLastTable(t *testing.T) {
	for document, c := range map[string]struct {
		section, inputs string
		// tables are what commands write that begin with a text.
		tables map[string][]string
	}{
		"fair.md": {"### Coming from Slurm, KAI and Kueue", "coming", map[string][]string{
			"apportion usage import":               {"2 rows, 2 with usage"},
			"apportion shares -f settings/queues":  {"chem 10 cpu", "nvidia.com/gpu 0 4 0 16 16", "physics 30 cpu", "nvidia.com/gpu 0 12 0 16 16"},
			"apportion shares -f kai/queues":       {"first 1 cpu", "nvidia.com/gpu* 0 8 12 12 12", "second 1 cpu", "nvidia.com/gpu 0 4 0 4 12"},
			"apportion shares -f kueue.yaml":       {"team 1 cpu 0 8 0 8 20", "other 1 cpu* 0 12 16 16 20"},
			"apportion convert --from kai":         {""},
			"apportion convert --from slurm":       {""},
			"apportion convert --from kueue -f ku": {""},
		}},
		"kueue.md": {"## Coming from Kueue to fair", "coming/kueue", map[string][]string{
			"apportion shares": {"team 1 cpu 0 8 0 8 20"}, "apportion explain": {"team/train"}, "apportion diff": {"team/train"},
		}},
	} {
		t.Run(document, func(t *testing.T) {
			lines := documented(t, document, c.section)
			require.NotEmpty(t, lines)
			inputs, err := filepath.Abs(filepath.Join("testdata", c.inputs))
			require.NoError(t, err)
			t.Chdir(t.TempDir())
			require.NoError(t, os.CopyFS(".", os.DirFS(inputs)))
			seen := map[string]bool{}
			for _, line := range lines {
				code, out, errors := execute(t, "", strings.Fields(line)[1:]...)
				// A job that waits, or a change that a comparison finds, is a code of its own.
				require.Contains(t, []int{0, 2}, code, "%s\n%s", line, errors)
				plain := strings.Join(strings.Fields(out), " ")
				for begin, tables := range c.tables {
					if !strings.HasPrefix(line, begin) {
						continue
					}
					seen[begin] = true
					for _, table := range tables {
						require.Contains(t, plain, table, "%s\n%s", line, out)
					}
				}
			}
			require.Len(t, seen, len(c.tables), "a command of %s is missing", document)
		})
	}
}
