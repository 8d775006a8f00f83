package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cause is a directory of testdata/pending: a cluster in which a job waits, and what is to be said about it.
type cause struct {
	folder string
	// headers of expect.txt, and its sentence.
	headers  map[string]string
	sentence string
}

// input are the flags that name the cause's files.
func (c *cause) input() []string {
	flags := []string{"-f", filepath.Join(c.folder, "dump.yaml")}
	if config := filepath.Join(c.folder, "volcano-scheduler.conf"); exists(config) {
		flags = append(flags, "--config", config)
	}
	return flags
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// causes are all directories of testdata/pending.
func causes(t *testing.T) map[string]*cause {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "pending", "*", "expect.txt"))
	require.NoError(t, err)
	all := make(map[string]*cause, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		head, sentence, found := strings.Cut(string(data), "\n\n")
		require.True(t, found, "%s has no empty line after its headers", file)
		c := &cause{folder: filepath.Dir(file), headers: make(map[string]string), sentence: unwrapped(sentence)}
		for line := range strings.Lines(head) {
			name, value, found := strings.Cut(strings.TrimSpace(line), ": ")
			require.True(t, found, "%s: no header: %q", file, line)
			c.headers[name] = value
		}
		all[filepath.Base(c.folder)] = c
	}
	return all
}

// write replaces the sentence of expect.txt.
func (c *cause) write(t *testing.T, sentence string) {
	t.Helper()
	file := filepath.Join(c.folder, "expect.txt")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(data), "\n\n")
	require.NoError(t, os.WriteFile(file, []byte(head+"\n\n"+sentence+"\n"), 0o600))
}

// unwrapped is a text on one line.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestPending asks about every cause as a person does, and compares the sentence that is printed. With -update it writes the sentence.
func TestPending(t *testing.T) {
	for name, c := range causes(t) {
		t.Run(name, func(t *testing.T) {
			var out, warnings bytes.Buffer
			root := newRoot(streams{in: strings.NewReader(""), out: &out, err: &warnings})
			root.SetArgs(append([]string{"explain", c.headers["job"]}, c.input()...))
			err := root.ExecuteContext(t.Context())
			require.ErrorIs(t, err, errDecidedNo, "%s%s", out.String(), warnings.String())
			paragraphs := strings.Split(strings.TrimSpace(out.String()), "\n\n")
			said := unwrapped(paragraphs[len(paragraphs)-1])
			if *update {
				c.write(t, said)
				return
			}
			require.Equal(t, c.sentence, said)
		})
	}
}
