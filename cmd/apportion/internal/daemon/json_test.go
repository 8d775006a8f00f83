package daemon_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
	"github.com/apportion/apportion/config"
	"github.com/apportion/apportion/service/decisionlog"
)

// TestJSONKnowsCallersByTheCertificatesOfGRPC shows a certificate over HTTP, and finds its identity in the decision log.
func TestJSONKnowsCallersByTheCertificatesOfGRPC(t *testing.T) {
	directory := t.TempDir()
	roots := certify(t, directory)
	file := filepath.Join(directory, "apportion.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
listen: ["unix:`+directory+`/grpc"]
http: {listen: "unix:`+directory+`/http"}
tls: {certificate: tls.crt, key: tls.key, client_ca: tls.crt, client_certificate: optional}
policies: {cluster: "preset:proportion"}
identities: [{name: scheduler, dns: [localhost], methods: [Simulate]}]
decision_log: {sink: file, file: decisions.jsonl, store: store, drop: block}
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

	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	require.NoError(t, err)
	post := func(method string, shown ...tls.Certificate) int {
		client := &http.Client{Transport: &http.Transport{
			DialContext: dialer(directory + "/http"), DisableKeepAlives: true, ForceAttemptHTTP2: len(shown) > 0,
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13, Certificates: shown},
		}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost/apportion.v1.ApportionService/"+method,
			strings.NewReader(`{"input":{"snapshot":{},"policyName":"cluster"}}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, post("Simulate"))
	require.Equal(t, http.StatusOK, post("Simulate", pair))
	require.Equal(t, http.StatusForbidden, post("CheckEnqueue", pair))
	end()
	require.NoError(t, <-served)

	log, err := os.Open(filepath.Join(directory, "decisions.jsonl"))
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	entries := 0
	require.NoError(t, decisionlog.NewReplayer(filepath.Join(directory, "store")).Replay(log, func(o decisionlog.Outcome) error {
		entries++
		require.Equal(t, "scheduler", o.Entry.Identity)
		require.Empty(t, o.Skipped)
		require.Empty(t, o.Differences)
		return nil
	}))
	require.Equal(t, 1, entries, "what was refused by its headers was not decided, and what was decided is written when the server has ended")
}
