package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const recordedLog = "../../testdata/replay/decisions.jsonl"

func TestAReplayTellsWhatIsDecidedOtherwise(t *testing.T) {
	replay := func(args ...string) (code int, out, errOut string) {
		var o, e bytes.Buffer
		code = run(t.Context(), append([]string{"replay"}, args...), strings.NewReader(""), &o, &e)
		return code, o.String(), e.String()
	}
	code, out, _ := replay(recordedLog)
	require.Equal(t, exitYes, code)
	require.Contains(t, out, "0 otherwise")

	data, err := os.ReadFile(recordedLog)
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed.jsonl")
	require.NoError(t, os.WriteFile(changed, bytes.Replace(data, []byte(`"weight":1`), []byte(`"weight":3`), 1), 0o600))
	code, out, _ = replay(changed, "--store", filepath.Join(filepath.Dir(recordedLog), "store"))
	require.Equal(t, exitNo, code)
	require.Regexp(t, `weight: 3\d* -> 1`, out)
	code, out, _ = replay(changed, "--store", filepath.Join(filepath.Dir(recordedLog), "store"), "-o", "json")
	require.Equal(t, exitNo, code)
	require.Contains(t, out, `"method": "EvaluateShares"`)

	code, _, errOut := replay(changed)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "nothing could be decided again")
}
