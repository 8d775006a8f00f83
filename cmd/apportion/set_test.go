package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/command/compare"
	"github.com/apportion/apportion/internal/editing"
)

func TestEveryFieldOfSetIsDocumentedAndCanBeSet(t *testing.T) {
	cluster, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pending", "taint", "dump.yaml"))
	require.NoError(t, err)
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	const job = "scheduling.k8s.io/group-name: train"
	require.NoError(t, os.WriteFile(dump, []byte(strings.ReplaceAll(string(cluster), job, job+", volcano.sh/task-spec: worker")), 0o600))
	names := strings.NewReplacer("NAMESPACE/NAME", "ml/train", "queue/NAME", "queue/ml", "node/NAME", "node/n1", "ROLE", "worker", "RESOURCE", "cpu")
	values := map[string]string{
		"state": "closing", "reclaimable": "false", "budgetKind": "soft", "queue": "ml", "otherNode": "n1",
		"maintenance": "2126-03-02T15:00:00Z/2126-03-02T17:00:00Z", "parent": "web", "ended": "true", "removed": "true", "cordoned": "true",
	}
	fields := editing.Settings()
	for _, field := range slices.Concat(fieldsOf("queue/NAME", fields), fieldsOf("job/NAMESPACE/NAME", fields), fieldsOf("node/NAME", fields)) {
		value, known := values[field[strings.LastIndex(field, ".")+1:]]
		if !known {
			value = "3"
		}
		arguments := []string{"whatif", "-f", dump, "-o", "json"}
		if strings.Contains(field, ".spent.") || strings.HasSuffix(field, ".budgetKind") {
			arguments = append(arguments, "--set", "queue/ml.budget.cpu=100")
		}
		code, out, errors := execute(t, "", append(arguments, "--set", names.Replace(field)+"="+value)...)
		require.Equal(t, cli.ExitYes, code, "%s: %s", field, errors)
		require.Contains(t, out, `"change": {`, field)
	}

	// An error lists the same fields, and the table of docs/cli.md and the shell have the same form.
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	_, completed, _ := execute(t, "", "__complete", "whatif", "-f", dump, "--set", "")
	require.Contains(t, completed, "\njob/ml/train.worker.minAvailable=\n", "a role is completed without the word role too")
	require.Contains(t, compare.NewWhatIf(cli.Streams{}).Long, editing.Help())
	for subject, want := range fields {
		row := regexp.MustCompile("(?m)^\\| `--set " + subject + "\\.FIELD=VALUE` \\|(.*)\\|$").FindStringSubmatch(string(document))
		require.NotNil(t, row, subject)
		for _, field := range want {
			require.Contains(t, row[1], "`"+field+"`", "docs/cli.md, %s", subject)
		}
		if !slices.Contains([]string{"queue/NAME", "job/NAMESPACE/NAME", "node/NAME"}, subject) {
			continue
		}
		for _, field := range fieldsOf(subject, fields) {
			require.Contains(t, completed, names.Replace(field)+"=", "completions")
		}
		_, _, errors := execute(t, "", "whatif", "-f", dump, "--set", names.Replace(subject)+".nothing=3")
		_, listed, _ := strings.Cut(errors, "there are ")
		require.Equal(t, strings.Join(want, ", "), strings.TrimSpace(listed))
	}
}

// fieldsOf returns the fields of a subject behind it.
func fieldsOf(subject string, of map[string][]string) []string {
	list := make([]string, len(of[subject]))
	for i, field := range of[subject] {
		list[i] = subject + "." + field
	}
	return list
}
