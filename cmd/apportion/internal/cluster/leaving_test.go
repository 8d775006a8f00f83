package cluster_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// hangingPlugin returns a kubeconfig whose credential plugin never ends, and a function that waits until it runs.
func hangingPlugin(t *testing.T) (file string, running func(<-chan error)) {
	t.Helper()
	// Users of a kubeconfig are used with TLS only.
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	folder := t.TempDir()
	begun, wanted := filepath.Join(folder, "pid"), filepath.Join(folder, "wanted")
	require.NoError(t, os.WriteFile(wanted, nil, 0o600))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	file = kubeconfig(t, map[string]any{"server": s.URL, "certificate-authority-data": authority}, map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never",
		"args": []string{"-c", fmt.Sprintf("test -e %q && echo $$ > %q && exec sleep 600", wanted, begun)},
	}})
	pid := func() int {
		data, _ := os.ReadFile(begun)
		n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		return n
	}
	t.Cleanup(func() {
		// client-go runs the plugin once more for each request that waits for it.
		_ = os.Remove(wanted)
		// 0 would be the group of this process.
		if n := pid(); n > 0 {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	})
	return file, func(ended <-chan error) {
		for end := time.Now().Add(time.Minute); pid() == 0; time.Sleep(time.Millisecond) {
			select {
			case err := <-ended:
				require.FailNow(t, "it ended before the plugin ran", "%v", err)
			default:
				require.True(t, time.Now().Before(end), "the plugin does not run")
			}
		}
	}
}

func TestACredentialPluginThatHangsDelaysNoStop(t *testing.T) {
	server := servicetest.Start(t, service.Options{}).Server
	for name, begin := range map[string]func(t *testing.T, ctx context.Context, file string) error{
		"of a command": func(t *testing.T, ctx context.Context, file string) error {
			t.Helper()
			_, err := flagsOf(t, file).Read(ctx)
			return err
		},
		"of a server that follows": func(t *testing.T, ctx context.Context, file string) error {
			t.Helper()
			f, err := cluster.NewFollower(server, cluster.FollowOptions{
				Name: "cluster", Kubeconfig: file, Interval: time.Second, Logger: slog.New(slog.DiscardHandler),
			})
			if err == nil {
				f.Run(ctx)
				err = ctx.Err()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, running := hangingPlugin(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- begin(t, ctx, file) }()
			running(ended)
			cancel()
			select {
			case err := <-ended:
				require.ErrorContains(t, err, context.Canceled.Error())
			case <-time.After(time.Minute):
				require.Fail(t, "it waits for the plugin")
			}
		})
	}
}
