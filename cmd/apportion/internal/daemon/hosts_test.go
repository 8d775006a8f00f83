package daemon_test

import (
	"context"
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
