package daemon_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
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
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost/apportion.v1.DecisionService/"+method,
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

// dialer connects to a socket, whatever address is asked for.
func dialer(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}

// serveAll runs a server with all its listeners, as Unix sockets in the directory that is returned.
func serveAll(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	file := filepath.Join(directory, "apportion.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
listen: ["unix:`+directory+`/grpc"]
http: {listen: "unix:`+directory+`/http", ui: true}
admin: {listen: "unix:`+directory+`/admin"}
extender: {listen: "unix:`+directory+`/extender", schedulers: {/volcano: cluster}}
connection: {hosts: [apportion.example.org]}
policies: {cluster: "preset:proportion"}
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
	t.Cleanup(func() {
		end()
		require.NoError(t, <-served)
	})
	return directory
}

// TestPagesOfOtherSitesReachNoListener asks each HTTP listener of a server without identities under several names.
func TestPagesOfOtherSitesReachNoListener(t *testing.T) {
	directory := serveAll(t)
	for listener, path := range map[string]string{"http": "/ui/", "admin": "/metrics", "extender": "/volcano/predicate"} {
		client := &http.Client{Transport: &http.Transport{DialContext: dialer(directory + "/" + listener), DisableKeepAlives: true}}
		for host, refused := range map[string]bool{
			"localhost:7171": false, "127.0.0.1": false, "apportion.example.org": false, "apportion.batch.svc:80": false,
			"pages.example.org": true, "127.0.0.1.example.org:7171": true,
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+path, strings.NewReader(""))
			require.NoError(t, err)
			response, err := client.Do(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, refused, response.StatusCode == http.StatusMisdirectedRequest, "%s, %s", listener, host)
		}
	}
}

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
			const call, question = "/apportion.v1.DecisionService/EvaluateShares", `{"input":{"snapshot":{},"policyName":"cluster"}}`
			code, _ := send(http.MethodPost, call, question)
			require.Equal(t, http.StatusUnauthorized, code)
			code, body := send(http.MethodPost, call, question, "Authorization", "Bearer "+token)
			require.Equal(t, http.StatusOK, code, body)
			end()
			require.NoError(t, <-served)
		})
	}
}
