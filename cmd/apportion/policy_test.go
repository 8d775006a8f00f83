package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/internal/test/raced"
)

// TestEveryCommandTakesEveryFormOfAPolicy runs each command that has --policy with one policy in each of its forms, and expects one answer.
func TestEveryCommandTakesEveryFormOfAPolicy(t *testing.T) {
	raced.Skip(t)
	research := filepath.Join("..", "..", "examples", "clusters", "research")
	week := filepath.Join("..", "..", "examples", "traces", "week.csv")
	// The actions are those that a rehearsal has without a volcano-scheduler.conf.
	conf := "actions: \"enqueue, allocate, preempt, reclaim\"\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: capacity\n"
	files := map[string]string{"scheduler.conf": conf, "configuration.yaml": conf}
	files["configmap.yaml"] = "apiVersion: v1\nkind: ConfigMap\ndata:\n  volcano-scheduler.conf: |\n    " + strings.ReplaceAll(conf, "\n", "\n    ") + "\n"
	files["configmaps.json"] = `{"kind": "List", "items": [{"kind": "ConfigMap", "data": {"volcano-scheduler.conf": ` + strconv.Quote(conf) + `}}]}`
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for name, text := range files {
		write(name, text)
	}
	for name, format := range map[string]string{"policy.json": cli.FormatJSON, "policy.yaml": cli.FormatYAML, "policy.pb": cli.FormatBinary} {
		files[name] = outputOf(t, cli.ExitYes, "convert", "--policy", filepath.Join(folder, "scheduler.conf"), "-o", format)
		write(name, files[name])
	}
	given := map[string][]string{
		"audit": {"-f", research, "--fail-on", "never"}, "convert": {}, "decide allocatable": {"pretrain-7b-worker-0", "-f", research},
		"decide enqueue": {"-f", research}, "decide nodes": {"tokenize-shard-0", "-f", research},
		"decide preempt": {"grasp-eval-eval-0", "-f", research}, "decide reclaim": {"grasp-eval-eval-0", "-f", research},
		"forecast": {"grasp-train", "-f", research, "--history", week, "--as-of", "2026-03-02T12:00:00Z"},
		"explain":  {"grasp-train", "-f", research}, "get jobs": {"-f", research}, "get queues": {"-f", research},
		"get nodes": {"-f", research},
		"pending":   {"-f", research}, "plan": {"grasp-train", "-f", research}, "queue": {"robotics", "-f", research},
		"rehearse": {"-f", research, "--trace", week, "--every", "6h", "--entitled-by", "capacity", "-o", "json"}, "shares": {"-f", research},
		"simulate": {filepath.Join("..", "..", "examples", "scenarios", "make-room.yaml")},
		"whatif":   {"--finish", "scavenge/hyperopt", "-f", research},
	}
	for name, command := range everyCommand(newRoot(cli.Streams{})) {
		// These take two policies as their arguments, serve pages, serve agents, and check plugin fair alone.
		if command.Flags().Lookup("policy") == nil || slices.Contains([]string{"diff", "ui", "mcp", "verify"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			arguments, known := given[name]
			require.True(t, known, "the arguments of %s", name)
			var want string
			for _, form := range []string{"policy.json", "policy.yaml", "policy.pb", "scheduler.conf", "configuration.yaml", "configmap.yaml", "configmaps.json"} {
				out, code := answerOf(t, slices.Concat(strings.Fields(name), arguments, []string{"--policy", filepath.Join(folder, form)})...)
				require.Contains(t, []int{cli.ExitYes, cli.ExitNo}, code, form)
				out = strings.NewReplacer(": volcano-scheduler.conf", "", form, "POLICY", "scheduler.conf", "POLICY").Replace(out)
				if want == "" {
					want = out
				}
				require.Equal(t, want, out, form)
			}
		})
	}
	for form := range files {
		out, code := answerOf(t, "diff", filepath.Join(folder, form), "capacity", "-f", research, "-o", "json")
		require.Contains(t, []int{cli.ExitYes, cli.ExitNo}, code, form)
		require.Contains(t, out, `"was"`, "policies are compared, not files")
	}
}
