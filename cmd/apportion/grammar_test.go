package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/service/history"
)

// ground is a directory with an input for every command, which is made the current one so that paths in answers are short.
type ground struct {
	t    *testing.T
	runs map[string][][]string
	made int
}

func newGround(t *testing.T) *ground {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	own, err := filepath.Abs("testdata")
	require.NoError(t, err)
	nine := time.Date(2026, 11, 20, 9, 12, 0, 0, time.UTC)
	past := history.New(history.Options{Retain: 24 * time.Hour, Step: time.Minute, Gap: 3 * time.Hour, Bytes: 1 << 20})
	address := serveKept(t, filepath.Join(own, "cluster.yaml"), nine, past)
	t.Chdir(t.TempDir())
	t.Setenv("LC_ALL", "C.UTF-8")
	for to, from := range map[string]string{
		"research": "examples/clusters/research", "kueue.yaml": "examples/kueue/cluster.yaml", "job.yaml": "examples/jobs/batch-job.yaml",
		"log": "testdata/replay", "small.yaml": "cmd/apportion/testdata/cluster.yaml", "history.csv": "cmd/apportion/testdata/history/usage.csv",
	} {
		require.NoError(t, os.Symlink(filepath.Join(root, from), to))
	}
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("week.csv", firstLines(t, filepath.Join(root, "examples", "traces", "week.csv"), 30))
	write("scenario.yaml", scenarioAbout(""))
	write("a.test.yaml", `{cluster: research, tests: [{name: what language deserves, steps: [{shares: {queues: [language]}, expect: {deserved.gpu: 1}}]}]}`)
	write("budgets.yaml", `{budgets: [{queue: vision, kind: hard, periods: [{begin: 2026-10-01, hours: {nvidia.com/gpu: 100}}]}]}`)
	for _, line := range []string{
		"usage import --ledger used --from csv history.csv", "usage copy --ledger used other", "usage copy --ledger used adopted",
		"verify -f research --policy fair --keep .",
		"rehearse -f research --trace week.csv --every 12h --results results",
	} {
		require.Equal(t, cli.ExitYes, run(t.Context(), strings.Fields(line), nil, io.Discard, io.Discard), line)
	}

	g := &ground{t: t, runs: runsAbout("", "scenario.yaml")}
	for name, list := range g.runs {
		for i := range list {
			g.runs[name][i] = slices.Concat(list[i], []string{"-f", "research"})
		}
	}
	for name, list := range map[string][][]string{
		"whatif":          {{"--job", "job.yaml", "-f", "research"}},
		"pending":         {{"-f", "kueue.yaml"}, {"-f", "small.yaml", "--all"}},
		"shares":          {{"-f", "kueue.yaml"}, {"-f", "small.yaml", "--resource", "all"}, {"-f", "research", "--policy", "fair", "--ledger", "used"}},
		"audit":           {{"-f", "kueue.yaml"}},
		"verify":          {{"request.json", "response.json"}},
		"convert":         {{"--policy", "research/volcano-scheduler.conf"}, {"--policy", "capacity", "--to", "fair"}},
		"diff":            {{"proportion", "capacity", "-f", "research"}, {"proportion", "fair", "-f", "research"}, {"small.yaml", "research"}},
		"rehearse":        {{"-f", "research", "--trace", "week.csv", "--policy", "proportion", "--policy", "fair"}},
		"rehearse merge":  {{"results"}},
		"generate":        {{"--queues", "2", "--jobs", "2", "--tasks", "4", "--nodes", "2"}},
		"test":            {{"."}, {".", "-v"}},
		"replay":          {{"log/decisions.jsonl"}},
		"man":             {{"man1"}},
		"health":          {{"--server", address}},
		"history":         {{"job/ml/huge", "queue/ml", "--server", address}},
		"version":         {{}, {"--policies"}},
		"config print":    {{}},
		"config schema":   {{}},
		"config token":    {{}},
		"ui":              {{"-f", "research", "--no-open"}},
		"usage":           {{"--ledger", "used"}, {"--ledger", "used", "--owners"}, {"--ledger", "used", "--by", "budget", "--budgets", "budgets.yaml", "--owners"}},
		"usage import":    {{"--ledger", "used", "--from", "csv", "history.csv"}},
		"usage adopt":     {{"--ledger", "adopted", "--cluster", "0d4f3c1e"}},
		"usage merge":     {{"--ledger", "used", "other"}},
		"usage copy":      {{"--ledger", "used", "NEW"}},
		"config validate": {{}},
	} {
		g.runs[name] = append(g.runs[name], list...)
	}
	return g
}

// firstLines returns the first lines of a file.
func firstLines(t *testing.T, name string, n int) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.Join(strings.SplitAfterN(string(data), "\n", n+1)[:n], "")
}

// each runs every command in every way that is listed for it, in a format. It fails for a command that is not listed.
func (g *ground) each(format string, answered func(answer any) error, check func(line, out string, err error)) {
	g.t.Helper()
	// What these write has a form of its own: a log, a protocol, and a script for the shell.
	without := regexp.MustCompile(`^(serve|mcp|completion.*)$`)
	for name, command := range everyCommand(newRoot(cli.Streams{})) {
		if without.MatchString(name) || command.HasSubCommands() && command.Flags().Lookup("output") == nil {
			continue
		}
		require.NotEmpty(g.t, g.runs[name], "%s prints an answer, but is not tried", name)
		printed, last := 0, ""
		for _, args := range g.runs[name] {
			if slices.Contains(args, "-o") {
				continue
			}
			g.made++
			args = slices.Concat(strings.Fields(name), args, []string{"-o", format})
			if at := slices.Index(args, "NEW"); at >= 0 {
				args[at] = "new-" + strconv.Itoa(g.made)
			}
			ctx, cancel := context.WithCancel(g.t.Context())
			var out, problems bytes.Buffer
			// The page is served until the command is interrupted.
			to := io.Writer(&out)
			if name == "ui" {
				to = &ending{&out, cancel}
			}
			root := newRoot(cli.Streams{In: strings.NewReader(""), Out: to, Err: &problems, Answered: answered})
			root.SetArgs(args)
			err := root.ExecuteContext(ctx)
			cancel()
			line := strings.Join(args, " ")
			if out.Len() == 0 {
				require.Error(g.t, err, line)
				require.NotErrorIs(g.t, err, cli.ErrDecidedNo, "%s: %s", line, problems.String())
				last = fmt.Sprintf("%s: %v", line, err)
				continue
			}
			printed++
			check(line, out.String(), err)
		}
		assert.Positive(g.t, printed, "%s prints no answer; %s", name, last)
	}
}

// ending is a writer that cancels at the first byte.
type ending struct {
	io.Writer

	cancel func()
}

func (e *ending) Write(p []byte) (int, error) {
	defer e.cancel()
	return e.Writer.Write(p)
}

// commandLine matches a line to copy into a shell.
var commandLine = regexp.MustCompile(`^\s*(apportion|kubectl) `)

// TestNoLineIsWiderThanTheTerminal prints every answer on a terminal of 60 columns. A line may be wider in two cases: it is a command to
// copy, or all that stands before its last word is an indent or a heading. A word is not cut, so that names can be copied.
func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	raced.Skip(t)
	const columns, heading = 60, 30
	g := newGround(t)
	t.Setenv("COLUMNS", strconv.Itoa(columns))
	g.each(cli.FormatTable, nil, func(line, out string, _ error) {
		for text := range strings.Lines(out) {
			text = strings.TrimSuffix(text, "\n")
			before, _ := cutLast(text)
			if utf8.RuneCountInString(text) <= columns || commandLine.MatchString(text) ||
				strings.TrimSpace(before) == "" || utf8.RuneCountInString(before) <= heading && headed.MatchString(before) {
				continue
			}
			t.Errorf("%s: %d columns: %s", line, utf8.RuneCountInString(text), text)
		}
	})
}

// headed matches what stands before the value of a cell that is written below its row, or before that of a line.
var headed = regexp.MustCompile(`^ +[a-z][a-z ]*$|^[a-z]+: *$`)

// cutLast returns a line without its last word, and that word.
func cutLast(line string) (before, word string) {
	at := strings.LastIndex(line, " ") + 1
	return line[:at], line[at:]
}

// TestEveryAnswerIsADocumentInJSONAndYAML reads every answer in both formats. A message of the contract is read again as itself, in which no
// other name is known; other answers have names in camelCase, but for settings, which have those of the configuration file.
func TestEveryAnswerIsADocumentInJSONAndYAML(t *testing.T) {
	raced.Skip(t)
	g := newGround(t)
	var answers []any
	keep := func(answer any) error {
		answers = append(answers, answer)
		return nil
	}
	settings := regexp.MustCompile(`^config (print|schema) `)
	g.each(cli.FormatJSON, keep, func(line, out string, _ error) {
		decoder, documents := json.NewDecoder(strings.NewReader(out)), 0
		for ; ; documents++ {
			var raw json.RawMessage
			err := decoder.Decode(&raw)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, line)
			requireNames(t, line, raw, documents, answers, settings.MatchString(line))
		}
		require.Positive(t, documents, line)
		answers = nil
	})
	g.each(cli.FormatYAML, keep, func(line, out string, _ error) {
		decoder, documents := yaml.NewDecoder(strings.NewReader(out)), 0
		for ; ; documents++ {
			var value any
			err := decoder.Decode(&value)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "%s\n%s", line, out)
			raw, err := json.Marshal(value)
			require.NoError(t, err, line)
			requireNames(t, line, raw, documents, answers, settings.MatchString(line))
		}
		require.Positive(t, documents, line)
		answers = nil
	})
}

// TestEveryFormatSaysTheSame requires that the answers of a command are equal in JSON and in YAML, and that all formats end with the same
// code. Secrets, times, and what is in a ledger that other commands change are not the same twice.
func TestEveryFormatSaysTheSame(t *testing.T) {
	raced.Skip(t)
	g := newGround(t)
	once := regexp.MustCompile(`^(config token|health|usage( [a-z]+)?|ui) `)
	values, codes := map[string][]any{}, map[string]int{}
	line := func(line, format string) string { return strings.TrimSuffix(line, " -o "+format) }
	g.each(cli.FormatJSON, nil, func(said, out string, err error) {
		decoder := json.NewDecoder(strings.NewReader(out))
		for decoder.More() {
			var value any
			require.NoError(t, decoder.Decode(&value), said)
			values[line(said, cli.FormatJSON)] = append(values[line(said, cli.FormatJSON)], value)
		}
		codes[line(said, cli.FormatJSON)] = ended(err)
	})
	g.each(cli.FormatYAML, nil, func(said, out string, err error) {
		if once.MatchString(said) {
			return
		}
		var list []any
		for decoder := yaml.NewDecoder(strings.NewReader(out)); ; {
			var value any
			if errors.Is(decoder.Decode(&value), io.EOF) {
				break
			}
			raw, err := json.Marshal(value)
			require.NoError(t, err, said)
			var again any
			require.NoError(t, json.Unmarshal(raw, &again), said)
			list = append(list, again)
		}
		require.Equal(t, values[line(said, cli.FormatYAML)], list, said)
		require.Equal(t, codes[line(said, cli.FormatYAML)], ended(err), said)
	})
	g.each(cli.FormatTable, nil, func(said, _ string, err error) {
		if code, known := codes[line(said, cli.FormatTable)]; known && !once.MatchString(said) {
			require.Equal(t, code, ended(err), said)
		}
	})
}

// ended is the code with which a command ends.
func ended(err error) int {
	switch {
	case err == nil:
		return cli.ExitYes
	case errors.Is(err, cli.ErrDecidedNo):
		return cli.ExitNo
	}
	return cli.ExitCode(err)
}

// snake matches a name that is not in camelCase.
var snake = regexp.MustCompile(`^[A-Za-z0-9]+(_[A-Za-z0-9]+)+$|^[A-Z][a-zA-Z]*$`)

// requireNames requires that a document has the names of the contract, or names in camelCase.
func requireNames(t *testing.T, line string, raw []byte, number int, answers []any, settings bool) {
	t.Helper()
	if number < len(answers) {
		if message, is := answers[number].(proto.Message); is {
			again := message.ProtoReflect().New().Interface()
			require.NoError(t, protojson.Unmarshal(raw, again), line)
			require.True(t, proto.Equal(message, again), line)
			return
		}
	}
	var value any
	require.NoError(t, json.Unmarshal(raw, &value), line)
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, inner := range v {
				require.False(t, !settings && snake.MatchString(key), "%s: %s", line, key)
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(value)
}
