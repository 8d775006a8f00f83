package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// look starts `apportion ui` and returns its address. It ends with the test.
func look(t *testing.T, flags ...string) string {
	t.Helper()
	read, write := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	root := newRoot(cli.Streams{In: strings.NewReader(""), Out: write, Err: io.Discard})
	root.SetArgs(append([]string{"ui", "--no-open"}, flags...))
	done := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		_ = write.CloseWithError(err)
		done <- err
	}()
	line := make([]byte, 100)
	n, err := read.Read(line)
	require.NoError(t, err)
	t.Cleanup(func() {
		end()
		require.NoError(t, <-done)
	})
	return strings.TrimSuffix(strings.TrimSpace(string(line[:n])), "/ui/")
}

func send(t *testing.T, method, address, host string, body []byte) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if host != "" {
		r.Host = host
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, data
}

func TestThePageAsksAboutTheClusterThatItIsGiven(t *testing.T) {
	address := look(t, "-f", "../../examples/clusters/research", "--policy", "fair")
	status, data := send(t, http.MethodGet, address+"/ui/source.json", "", nil)
	require.Equal(t, http.StatusOK, status)
	var source struct {
		Policies []struct {
			Name   string          `json:"name"`
			Policy json.RawMessage `json:"policy"`
		} `json:"policies"`
		Cluster struct {
			Title  string `json:"title"`
			Digest string `json:"digest"`
		} `json:"cluster"`
	}
	require.NoError(t, json.Unmarshal(data, &source))
	require.Equal(t, "research", source.Cluster.Title)
	require.Equal(t, "fair", source.Policies[0].Name, "the policy of the flag comes first")
	question, err := json.Marshal(map[string]any{
		"input": map[string]any{"snapshotDigest": source.Cluster.Digest, "policy": source.Policies[0].Policy},
		"steps": []any{map[string]any{"shares": map[string]any{}}},
	})
	require.NoError(t, err)
	status, data = send(t, http.MethodPost, address+"/apportion.v1.DecisionService/Simulate", "", question)
	require.Equal(t, http.StatusOK, status, string(data))
	require.Contains(t, string(data), `"plugin":"fair"`)
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	address := look(t, "-f", "../../examples/clusters/research")
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	for host, want := range map[string]int{
		"localhost:" + port: http.StatusOK, "[::1]:" + port: http.StatusOK, "127.0.0.1:" + port: http.StatusOK,
		"example.org:" + port: http.StatusMisdirectedRequest, "localhost.example.org:" + port: http.StatusMisdirectedRequest,
	} {
		status, _ := send(t, http.MethodGet, address+"/ui/snapshot.json", host, nil)
		require.Equal(t, want, status, host)
	}
}

func TestThePageIsServedOnLoopbackAlone(t *testing.T) {
	root := newRoot(cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	root.SetArgs([]string{"ui", "--no-open", "--listen", "0.0.0.0:0", "-f", "../../examples/clusters/research"})
	require.ErrorContains(t, root.ExecuteContext(t.Context()), "not a loopback address")
}

func TestThePageGetsTheCommandsThatMakeARemedy(t *testing.T) {
	address := look(t, "-f", "../../examples/clusters/research") + "/ui/patches"
	for body, want := range map[string]string{
		`{}`:                            `[]`,
		`{"answers": [{"shares": {}}]}`: `[]`,
		`{"answers": [{"remedies": {"job": 4294967295, "remedies": [{"edits": [{"kind": "EDIT_KIND_ALLOWED_NODE", "to": {"index": 4294967295}}]}]}}]}`: `[null]`,
		`{"answers": [{"remedies": {"remedies": [{"edits": [{"kind": "EDIT_KIND_ALLOWED_NODE", "to": {"index": 4294967295}}]}]}}]}`:                    `[null]`,
		`{"answers": [{"remedies": {"remedies": [{"edits": [{"kind": "EDIT_KIND_UNCORDON", "node": {"name": "n"}}], "unknown": true}]}}]}`: `[[{
			"yaml": "apiVersion: v1\nkind: Node\nmetadata:\n  name: \"n\"\nspec:\n  unschedulable: false\n",
			"kubectl": ["kubectl", "patch", "nodes", "n", "--type=merge", "--patch={\"spec\":{\"unschedulable\":false}}"]}]]`,
	} {
		status, data := send(t, http.MethodPost, address, "", []byte(body))
		require.Equal(t, http.StatusOK, status, body)
		require.JSONEq(t, want, string(data), body)
	}
	for _, of := range []struct {
		method, body string
		status       int
	}{
		{http.MethodGet, "", http.StatusMethodNotAllowed},
		{http.MethodPost, "[", http.StatusBadRequest},
		{http.MethodPost, strings.Repeat(" ", 1<<20+1), http.StatusRequestEntityTooLarge},
	} {
		status, _ := send(t, of.method, address, "", []byte(of.body))
		require.Equal(t, of.status, status)
	}
}
