package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/test/raced"
)

// TestDocumentsShowWhatTheCommandsPrint runs every `$ apportion …` in the console blocks of the documents, from the root of the project,
// and compares what follows it with what is printed. -update writes it anew.
func TestDocumentsShowWhatTheCommandsPrint(t *testing.T) {
	if raced.On {
		t.Skip("the scripts in testdata run the same commands under the race detector")
	}
	t.Chdir(filepath.Join("..", ".."))
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, name := range []string{
		"README.md", "docs/cli.md", "docs/volcano.md", "docs/fair.md", "docs/kueue.md", "docs/rehearse.md", "docs/forecast.md", "docs/reservations.md",
		"docs/backfill.md",
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			before, err := os.ReadFile(name)
			require.NoError(t, err)
			c := console{t: t}
			after := c.play(string(before))
			require.Positive(t, c.commands, "there are commands in the document")
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(after), 0o600))
				return
			}
			require.Equal(t, string(before), after)
		})
	}
}

// TestTheDocumentShowsWhatAStoryOfMemoryPrints compares a table of the document about the commands with that of the script, which has the
// ledger.
func TestTheDocumentShowsWhatAStoryOfMemoryPrints(t *testing.T) {
	script, err := txtar.ParseFile(filepath.Join("testdata", "script", "memory.txtar"))
	require.NoError(t, err)
	at := slices.IndexFunc(script.Files, func(f txtar.File) bool { return f.Name == "want/half-life" })
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	require.Contains(t, string(document), string(script.Files[at].Data))
}

// console plays the console blocks of a document.
type console struct {
	t        *testing.T
	code     int
	commands int
}

const (
	fence = "```"
	opens = fence + "console"
)

// play is the document with every output as the command prints it.
func (c *console) play(document string) string {
	var out strings.Builder
	inside, replaced := false, false
	for line := range strings.SplitAfterSeq(document, "\n") {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case !inside && text == opens:
			inside, replaced = true, false
		case inside && text == fence:
			inside = false
		case inside && strings.HasPrefix(text, "$ "):
			answer, ran := c.run(strings.TrimPrefix(text, "$ "))
			out.WriteString(line + answer)
			replaced = ran
			continue
		case inside && replaced:
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

// run runs a command line: apportion with its arguments, perhaps behind a pipe from itself or echo, or `echo $?`. Other programs are not
// run.
func (c *console) run(line string) (output string, ran bool) {
	if line == "echo $?" {
		return strconv.Itoa(c.code) + "\n", true
	}
	input := ""
	if said, command, piped := strings.Cut(line, " | "); piped {
		switch words := split(said); words[0] {
		case "echo":
			input = strings.Join(words[1:], " ") + "\n"
		case "apportion":
			input, _ = c.run(said)
		default:
			return "", false
		}
		line = command
	}
	words := split(line)
	if words[0] != "apportion" {
		return "", false
	}
	c.commands++
	var out bytes.Buffer
	c.code = run(c.t.Context(), words[1:], strings.NewReader(input), &out, &out)
	return out.String(), true
}

// split splits a command line into words; those in single quotes stay together.
func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// TestTheProgramOfTheReadmeRuns compiles and runs the Go code of the README as it stands there, and compares what it prints.
func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	if raced.On {
		t.Skip("the program is compiled without the race detector")
	}
	root := filepath.Join("..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "\n## In Go\n")
	require.True(t, found)
	_, section, _ = strings.Cut(section, "```go\n")
	program, section, _ := strings.Cut(section, "```\n")
	_, section, _ = strings.Cut(section, "```\n")
	expected, _, found := strings.Cut(section, "```\n")
	require.True(t, found)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
	run := exec.CommandContext(t.Context(), "go", "run", file)
	run.Dir = root
	printed, err := run.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	require.Equal(t, expected, string(printed))
}
