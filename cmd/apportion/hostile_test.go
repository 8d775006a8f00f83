package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/internal/visible"
)

// hostile ends every text of a cluster: it clears a terminal, colours it, ends the line, and writes from right to left.
const hostile = "\x1b[2J\x1b[31m\n\r\t\u202e\u2066\u200b\x7f\u2028"

// poison appends to every text of a message.
func poison(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		texts, messages := f.Kind() == protoreflect.StringKind, f.Message() != nil
		switch {
		case f.IsMap():
		case f.IsList() && texts:
			for i := range v.List().Len() {
				if known := v.List().Get(i).String(); known != "cpu" && known != "memory" {
					v.List().Set(i, protoreflect.ValueOfString(known+hostile))
				}
			}
		case f.IsList() && messages:
			for i := range v.List().Len() {
				poison(v.List().Get(i).Message())
			}
		case texts && v.String() != "":
			m.Set(f, protoreflect.ValueOfString(v.String()+hostile))
		case messages && !f.IsList():
			poison(v.Message())
		}
		return true
	})
}

// hostileFile writes the sample cluster with hostile texts everywhere, and returns its path.
func hostileFile(t *testing.T) string {
	t.Helper()
	flags := question.InputFlags{Files: []string{filepath.Join("..", "..", "examples", "clusters", "research")}}
	in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: &bytes.Buffer{}})
	require.NoError(t, err)
	snapshot := proto.CloneOf(in.Snapshot)
	poison(snapshot.ProtoReflect())
	data, err := document.JSON(snapshot)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "snapshot.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// runsAbout are the arguments of each command that reads a snapshot, beside the snapshot: that of the sample cluster, all names with an
// end. nil: the command prints nothing of it.
func runsAbout(end, scenario string) map[string][][]string {
	named := func(name string) string { return name + end }
	full := func(namespace, name string) string { return named(namespace) + "/" + named(name) }
	waiting, running := full("language", "pretrain-7b"), full("vision", "detector-train")
	task := full("language", "pretrain-7b-worker-0")
	return map[string][][]string{
		"explain": {
			{waiting},
			{waiting, "--remedies"},
			{"--all"},
			{waiting, "--runtime", "1h", "--as-of", "2026-03-02T12:00:00Z"},
			{waiting, "--runtime", "1h"},
			{named("nothing")},
			{full("robotics", "grasp-train"), "--remedies"},
		},
		"pending": {{}, {"--top", "1"}, {"-o", "name"}, {"--queue", named("language")}, {"--queue", named("nothing")}},
		"queue":   {{named("language")}, {named("nothing")}},
		"plan":    {{waiting}, {waiting, "--max-victims", "1"}, {full("robotics", "grasp-train")}, {named("nothing")}},
		"forecast": {
			{waiting},
			{waiting, "--history", filepath.Join("..", "..", "examples", "traces", "week.csv"), "--as-of", "2026-03-02T12:00:00Z"},
			{named("nothing")},
		},
		"shares": {{}, {"--tree"}, {"--explain"}, {"--policy", "fair", "--explain"}, {"--policy", "capacity", "--tree"}},
		"whatif": {
			{"--set", "queue/" + named("vision") + ".weight=5"},
			{"--finish", running},
			{"--set", "job/" + waiting + ".queue=" + named("vision")},
			{"--add-nodes", "2", "--like", named("gpu-a100-01")},
			{"--set", "queue/nothing.weight=5"},
			{"--finish", "nothing"},
		},
		"audit":              {{}, {"--input-only"}, {"-o", "markdown"}, {"--policy", "fair"}},
		"diff":               {{"--policy", "fair"}, {"--policy", "capacity", "-o", "markdown"}},
		"get queues":         {{}, {"-o", "wide"}, {"-o", "name"}},
		"get jobs":           {{}, {"-o", "wide"}, {"-o", "name"}},
		"get nodes":          {{}, {"-o", "wide"}, {"-o", "name"}},
		"decide preempt":     {{task}, {task, "--all"}, {named("nothing")}},
		"decide reclaim":     {{task}, {task, "--all"}, {task, "--policy", "fair"}, {named("nothing")}},
		"decide allocatable": {{task}, {named("nothing")}},
		"decide enqueue":     {{}, {waiting}, {named("nothing")}},
		"decide nodes":       {{task}, {named("nothing")}},
		"verify":             {{}, {"--policy", "fair"}},
		"simulate":           {{scenario}},
		"convert":            {{}},
		"ui":                 nil, "rehearse": nil, "mcp": nil,
	}
}

// scenarioOf writes a scenario beside a snapshot, and returns its path.
func scenarioOf(snapshot string) string {
	return filepath.Join(filepath.Dir(snapshot), "scenario.yaml")
}

// scenarioAbout are steps about the sample cluster, all names with an end.
func scenarioAbout(end string) string {
	queue := strconv.Quote("language" + end)
	return "steps:\n- shares: {}\n- enqueue: {}\n- jobs: {}\n- order: {queues: [" + queue + "]}\n- inspect: {queues: true}\n"
}

// TestNoNameOfAClusterControlsATerminal runs every command that reads a snapshot on one whose texts are all hostile. Its output for people
// contains no invisible characters except line ends.
func TestNoNameOfAClusterControlsATerminal(t *testing.T) {
	path := hostileFile(t)
	require.NoError(t, os.WriteFile(scenarioOf(path), []byte(scenarioAbout(hostile)), 0o600))
	runs := runsAbout(hostile, scenarioOf(path))
	for name, command := range everyCommand(newRoot(cli.Streams{})) {
		if command.Flags().Lookup("snapshot") == nil || command.HasSubCommands() {
			continue
		}
		lists, known := runs[name]
		require.True(t, known, "%s reads a snapshot, but is not tried", name)
		for _, list := range lists {
			requireSeen(t, slices.Concat(strings.Fields(name), list, []string{"--snapshot", path})...)
		}
	}
}

// requireSeen runs a command and requires that all it prints is seen.
func requireSeen(t *testing.T, args ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errOut)
	require.NotEmpty(t, out.String()+errOut.String(), args)
	require.NotContains(t, errOut.String(), "unknown flag", args)
	for line := range strings.Lines(out.String() + errOut.String()) {
		line = strings.TrimSuffix(line, "\n")
		require.Equal(t, visible.Text(line), line, "%d %q", code, args)
	}
	require.NotRegexp(t, `(?m)^(\\r|\\t)`, out.String()+errOut.String(), "a name ends a line: %q", args)
}
