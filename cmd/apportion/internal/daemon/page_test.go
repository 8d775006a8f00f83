package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
	"github.com/apportion/apportion/config"
)

// TestThePageIsForEverybodyAndItsCallsForIdentities serves the page with and without its setting.
func TestThePageIsForEverybodyAndItsCallsForIdentities(t *testing.T) {
	for setting, want := range map[string]int{"true": http.StatusOK, "false": http.StatusNotFound} {
		t.Run("http.ui "+setting, func(t *testing.T) {
			directory := t.TempDir()
			file := filepath.Join(directory, "apportion.yaml")
			const token = "a-secret-of-thirty-two-characters"
			sum := sha256.Sum256([]byte(token))
			require.NoError(t, os.WriteFile(file, []byte(`
listen: ["unix:`+directory+`/grpc"]
http: {listen: "unix:`+directory+`/http", ui: `+setting+`}
policies: {cluster: "preset:proportion"}
identities: [{name: viewer, tokens: ["sha256:`+hex.EncodeToString(sum[:])+`"]}]
drain: {delay: 0s}
`), 0o600))
			sources := config.Sources{File: file}
			settings, err := config.Read(sources)
			require.NoError(t, err)
			d, err := daemon.Open(t.Context(), settings, daemon.Options{Sources: sources, Output: io.Discard})
			require.NoError(t, err)
			require.NoError(t, d.Listen(t.Context()))
			ctx, end := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() { served <- d.Serve(ctx) }()
			client := &http.Client{Transport: &http.Transport{DialContext: dialer(directory + "/http"), DisableKeepAlives: true}}
			send := func(method, path, body string, headers ...string) (int, string) {
				r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
				require.NoError(t, err)
				r.Header.Set("Content-Type", "application/json")
				for i := 0; i+1 < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				response, err := client.Do(r)
				require.NoError(t, err)
				defer response.Body.Close()
				data, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				return response.StatusCode, string(data)
			}
			for _, path := range []string{"/ui/", "/ui/main.js", "/ui/source.json"} {
				code, body := send(http.MethodGet, path, "")
				require.Equal(t, want, code, path)
				if path == "/ui/source.json" {
					require.NotContains(t, body, `"cluster"`, "the page names nothing of this server")
				}
			}
			const call, question = "/apportion.v1.ApportionService/EvaluateShares", `{"input":{"snapshot":{},"policyName":"cluster"}}`
			code, _ := send(http.MethodPost, call, question)
			require.Equal(t, http.StatusUnauthorized, code)
			code, body := send(http.MethodPost, call, question, "Authorization", "Bearer "+token)
			require.Equal(t, http.StatusOK, code, body)
			end()
			require.NoError(t, <-served)
		})
	}
}
