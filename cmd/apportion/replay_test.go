package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

const recordedLog = "../../testdata/replay/decisions.jsonl"

func replay(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"replay"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestAReplayNamesAndSkipsLinesOfGarbage(t *testing.T) {
	data, err := os.ReadFile(recordedLog)
	require.NoError(t, err)
	lines := bytes.SplitAfterN(data, []byte("\n"), 3)
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	garbage := slices.Concat([]byte("\x00\xff garbage\n"), lines[0], bytes.Repeat([]byte("[1]\n"), 30), lines[1], lines[2])
	require.NoError(t, os.WriteFile(broken, garbage, 0o600))
	store := filepath.Join(filepath.Dir(recordedLog), "store")

	code, out, _ := replay(t, broken, "--store", store)
	require.Equal(t, cli.ExitYes, code)
	require.Contains(t, out, broken+":1: not an entry: invalid character")
	require.Contains(t, out, broken+":3: not an entry: ")
	require.Contains(t, out, "31 not decided again: the line is not an entry")
	require.Contains(t, out, fmt.Sprintf("%d decided the same", bytes.Count(data, []byte("\n"))))
	require.Equal(t, 20, strings.Count(out, ": not an entry"), "the first lines are listed, all are counted")
	code, out, _ = replay(t, broken, "--store", store, "-o", "json")
	require.Equal(t, cli.ExitYes, code)
	require.Contains(t, out, `"fault": "invalid character`)
}

func TestAReplayTellsWhatIsDecidedOtherwise(t *testing.T) {
	code, out, _ := replay(t, recordedLog)
	require.Equal(t, cli.ExitYes, code)
	require.Contains(t, out, "0 otherwise")

	data, err := os.ReadFile(recordedLog)
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed.jsonl")
	require.NoError(t, os.WriteFile(changed, bytes.Replace(data, []byte(`"weight":1`), []byte(`"weight":3`), 1), 0o600))
	code, out, _ = replay(t, changed, "--store", filepath.Join(filepath.Dir(recordedLog), "store"))
	require.Equal(t, cli.ExitNo, code)
	require.Regexp(t, `weight: 3\d* -> 1`, out)
	code, out, _ = replay(t, changed, "--store", filepath.Join(filepath.Dir(recordedLog), "store"), "-o", "json")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, out, `"method": "EvaluateShares"`)

	code, _, errOut := replay(t, changed)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errOut, "the log has no entry whose decision could be repeated")
}
