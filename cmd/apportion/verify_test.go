package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

func verifying(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"verify"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestTrueAnswersAboutTheSampleClustersAreVerified(t *testing.T) {
	files, err := filepath.Glob("../../testdata/field/*.yaml")
	require.NoError(t, err)
	inputs := [][]string{{"-f", "../../examples/clusters/research"}}
	for _, file := range files {
		// This file lists the answers of other schedulers.
		if filepath.Base(file) != "peers.yaml" {
			inputs = append(inputs, []string{"--snapshot", file})
		}
	}
	for _, input := range inputs {
		code, out, errOut := verifying(t, append(input, "--policy", "fair")...)
		require.Equal(t, cli.ExitYes, code, "%v: %s%s", input, out, errOut)
	}
}

// TestWhatIsNotCheckedIsNoPass asks about policies, and with files about answers, of which nothing is checked.
func TestWhatIsNotCheckedIsNoPass(t *testing.T) {
	const cluster = "../../examples/clusters/research"
	for _, policy := range []string{"proportion", "capacity", "capacity-hierarchical", "drf-hierarchical"} {
		code, out, errOut := verifying(t, "-f", cluster, "--policy", policy)
		require.Equal(t, cli.ExitUsage, code, policy)
		require.Empty(t, out)
		require.Contains(t, errOut, "nothing of this answer is checked: only what plugin fair promises is")
	}
	kept := t.TempDir()
	code, _, errOut := verifying(t, "-f", cluster, "--policy", "fair", "--keep", kept)
	require.Equal(t, cli.ExitYes, code, errOut)
	request, response := filepath.Join(kept, "request.json"), filepath.Join(kept, "response.json")
	without := func(file, list string) {
		var message map[string]any
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &message))
		entries, ok := message[list].([]any)
		require.True(t, ok)
		message[list] = entries[1:]
		data, err = json.Marshal(message)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o600))
	}
	without(request, "steps")
	without(response, "answers")
	code, out, errOut := verifying(t, request, response)
	require.Equal(t, cli.ExitUsage, code, "plans without the shares that they rest on")
	require.Empty(t, out)
	require.Contains(t, errOut, "nothing of this answer is checked: the question must be for all fields of the shares")
}

func TestAnswersThatAreErrorsProveNothing(t *testing.T) {
	kept := t.TempDir()
	code, _, errOut := verifying(t, "-f", "../../examples/clusters/research", "--policy", "fair", "--keep", kept)
	require.Equal(t, cli.ExitYes, code, errOut)
	request, response := filepath.Join(kept, "request.json"), filepath.Join(kept, "response.json")
	var answers map[string]any
	data, err := os.ReadFile(response)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &answers))
	list, ok := answers["answers"].([]any)
	require.True(t, ok)
	for i := range list {
		list[i] = map[string]any{"error": map[string]any{"code": 3}}
	}
	data, err = json.Marshal(answers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(response, data, 0o600))
	code, out, errOut := verifying(t, request, response)
	require.Equal(t, cli.ExitUsage, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "nothing of this answer is checked: 5 of 5 answers are errors")
}

func TestAnAnswerIsVerifiedAndAChangedNumberIsNamed(t *testing.T) {
	kept := t.TempDir()
	const cluster = "../../examples/clusters/research"
	code, out, errOut := verifying(t, "-f", cluster, "--policy", "fair", "--keep", kept)
	require.Equal(t, cli.ExitYes, code, errOut)
	require.Contains(t, out, "numbers were checked and follow from the request")
	require.Contains(t, out, "checked: what queues hold, ask for and may have, and each division\n  answers[0].shares\n")
	require.Contains(t, out, "not checked: ")

	request, response := filepath.Join(kept, "request.json"), filepath.Join(kept, "response.json")
	code, _, errOut = verifying(t, request, response)
	require.Equal(t, cli.ExitYes, code, errOut)

	data, err := os.ReadFile(response)
	require.NoError(t, err)
	changed := filepath.Join(kept, "changed.json")
	require.NoError(t, os.WriteFile(changed, bytes.Replace(data, []byte(`"share": "27"`), []byte(`"share": "28"`), 1), 0o600))
	code, out, _ = verifying(t, request, changed)
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, out, "sum of shares is 81, not 80")

	code, out, errOut = verifying(t, request, changed, "-o", "json")
	require.Equal(t, cli.ExitNo, code, errOut)
	require.Contains(t, out, `"valid": false`)
	require.Contains(t, out, `"field": "basis.engine_version"`)
	code, _, errOut = verifying(t, request)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errOut, "name a request and its response, or neither")
}
