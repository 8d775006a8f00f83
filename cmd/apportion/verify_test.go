package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	for _, policy := range []string{"proportion", "capacity", "capacity-hierarchical", "drf-hierarchical", "fair"} {
		for _, input := range inputs {
			code, out, errOut := verifying(t, append(input, "--policy", policy)...)
			require.Equal(t, exitYes, code, "%v %s: %s%s", input, policy, out, errOut)
		}
	}
}

func TestAnswersThatAreErrorsProveNothing(t *testing.T) {
	kept := t.TempDir()
	code, _, errOut := verifying(t, "-f", "../../examples/clusters/research", "--policy", "fair", "--keep", kept)
	require.Equal(t, exitYes, code, errOut)
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
	require.Equal(t, exitNo, code, errOut)
	require.Contains(t, out, "not checked: 4 of 4 answers are errors")
	require.NotContains(t, out, "true:")
}

func TestAnAnswerIsVerifiedAndAChangedNumberIsNamed(t *testing.T) {
	kept := t.TempDir()
	const cluster = "../../examples/clusters/research"
	code, out, errOut := verifying(t, "-f", cluster, "--policy", "fair", "--keep", kept)
	require.Equal(t, exitYes, code, errOut)
	require.Contains(t, out, "fields were checked and follow from the request")
	require.Contains(t, out, "not checked:")

	request, response := filepath.Join(kept, "request.json"), filepath.Join(kept, "response.json")
	code, _, errOut = verifying(t, request, response)
	require.Equal(t, exitYes, code, errOut)

	data, err := os.ReadFile(response)
	require.NoError(t, err)
	changed := filepath.Join(kept, "changed.json")
	require.NoError(t, os.WriteFile(changed, bytes.Replace(data, []byte(`"share": "27"`), []byte(`"share": "28"`), 1), 0o600))
	code, out, _ = verifying(t, request, changed)
	require.Equal(t, exitNo, code)
	require.Contains(t, out, "sum of shares is 81, not 80")

	for _, policy := range []string{"proportion", "capacity", "capacity-hierarchical"} {
		code, out, errOut = verifying(t, "-f", cluster, "--policy", policy)
		require.Equal(t, exitYes, code, errOut)
		require.Contains(t, out, "answers[0].shares.standings[*]", "what was not checked is listed")
	}
	code, out, errOut = verifying(t, request, changed, "-o", "json")
	require.Equal(t, exitNo, code, errOut)
	require.Contains(t, out, `"valid": false`)
	require.Contains(t, out, `"field": "basis.engine_version"`)
	code, _, errOut = verifying(t, request)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "name a request and its response, or neither")
}
