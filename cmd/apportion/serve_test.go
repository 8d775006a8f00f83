package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// lockedBuffer is written by a server while a test reads it.
type lockedBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// find waits for a pattern in what was written.
func (b *lockedBuffer) find(t *testing.T, pattern string) string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	var found []string
	require.Eventually(t, func() bool {
		found = expression.FindStringSubmatch(b.String())
		return found != nil
	}, 10*time.Second, 5*time.Millisecond, "no %s in what the server says:\n%s", pattern, b)
	return found[1]
}

func TestServeAnswersUntilItIsToldToStop(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	require.NoError(t, os.WriteFile(conf, []byte("tiers:\n- plugins:\n  - name: proportion\nactions: enqueue, allocate, backfill, preempt, reclaim\n"), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &lockedBuffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-delay", "0s", "--policies", "house=" + conf},
			strings.NewReader(""), io.Discard, log)
	}()
	address := log.find(t, `msg=serving address=(\S+)`)
	admin := log.find(t, `msg="serving metrics" address=(\S+)`)

	var out, problems bytes.Buffer
	cluster := filepath.Join("testdata", "cluster.yaml")
	code := run(t.Context(), []string{"shares", "-f", cluster, "--server", address, "--policy-name", "house", "--ascii"}, nil, &out, &problems)
	require.Equal(t, cli.ExitYes, code, problems.String())
	require.Contains(t, out.String(), "queue order: ml, web")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, string(metrics), "apportion_")

	stop()
	require.Equal(t, cli.ExitYes, <-ended)
	require.Contains(t, log.String(), "stopped")
}

func TestServeRefusesToStartOnABadPolicy(t *testing.T) {
	for _, test := range []struct{ name, flag, content, says string }{
		{"not a pair", "house", "", "flag --policies: NAME=VALUE is expected"},
		{"no such file", "house=nowhere.conf", "", "nowhere.conf"},
		{"a fault in the file", "", "tiers: [{plugins: [{overcommit: {factor: NaN}}]}]", "is not a finite number"},
		{"an unknown key", "", "tears: []", `policy.yaml:1: unknown field "tears"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			flag := test.flag
			if flag == "" {
				file := filepath.Join(t.TempDir(), "policy.yaml")
				require.NoError(t, os.WriteFile(file, []byte(test.content), 0o600))
				flag = "house=" + file
			}
			var problems bytes.Buffer
			require.Equal(t, cli.ExitUsage, run(t.Context(), []string{"serve", "--policies", flag}, nil, io.Discard, &problems))
			require.Contains(t, problems.String(), test.says)
		})
	}
}
