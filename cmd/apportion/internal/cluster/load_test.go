//go:build cluster

package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/apportion/apportion/adapter/test/apiserver"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// number is a whole number in the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// all does something for each number below n, several at a time.
func all(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	work := errgroup.Group{}
	work.SetLimit(16)
	for i := range n {
		work.Go(func() error { return do(i) })
	}
	require.NoError(t, work.Wait())
}

func (s *apiServer) must(method, path string, body any) ([]byte, error) {
	code, data, err := s.Try(context.Background(), method, path, body)
	if err == nil && code >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %d: %s", method, path, code, data)
	}
	return data, err
}

// populate writes 10 queues, 500 nodes, and pods in jobs of ten.
func (s *apiServer) populate(t *testing.T, pods int) {
	t.Helper()
	s.define(t)
	s.Send(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "load"}})
	all(t, 10, func(i int) error {
		_, err := s.must(http.MethodPost, queuePath, map[string]any{
			"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": fmt.Sprintf("q%d", i)},
			"spec": map[string]any{"weight": i + 1}, "status": map[string]any{"state": "Open"},
		})
		return err
	})
	all(t, 500, func(i int) error {
		_, err := s.must(http.MethodPost, "/api/v1/nodes", map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("n%d", i), "labels": map[string]any{"zone": fmt.Sprint(i % 3)}},
			"status":   map[string]any{"allocatable": map[string]any{"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"}},
		})
		return err
	})
	all(t, pods/10, func(i int) error {
		_, err := s.must(http.MethodPost, podGroups+"/load/podgroups", map[string]any{
			"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"name": fmt.Sprintf("j%d", i)},
			"spec": map[string]any{"minMember": 10, "queue": fmt.Sprintf("q%d", i%10)},
		})
		return err
	})
	began := time.Now()
	all(t, pods, func(i int) error {
		asked := map[string]any{"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
		_, err := s.must(http.MethodPost, "/api/v1/namespaces/load/pods", map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("p%d", i), "annotations": map[string]any{"scheduling.k8s.io/group-name": fmt.Sprintf("j%d", i/10)}},
			"spec": map[string]any{
				"schedulerName": "volcano", "nodeName": fmt.Sprintf("n%d", i%500),
				"containers": []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"requests": asked, "limits": asked}}},
			},
		})
		return err
	})
	t.Logf("%d pods written in %v", pods, time.Since(began).Round(time.Second))
}

// patchPod changes the phase of a pod, and returns the version of the object.
func (s *apiServer) patchPod(i, round int) (uint64, error) {
	phase := []string{"Running", "Pending"}[round%2]
	data, err := s.must(http.MethodPatch, fmt.Sprintf("/api/v1/namespaces/load/pods/p%d/status", i), map[string]any{
		"status": map[string]any{"phase": phase},
	})
	if err != nil {
		return 0, err
	}
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return 0, err
	}
	return strconv.ParseUint(object.Metadata.ResourceVersion, 10, 64)
}

// TestLoadOfARealAPIServer measures the delay and the processor time of a server that follows FOLLOW_PODS pods, of which FOLLOW_RATE change
// each second. The server's command line begins with FOLLOW_RUN, such as a program that gives it priority.
func TestLoadOfARealAPIServer(t *testing.T) {
	pods, rate := number(t, "FOLLOW_PODS", 0), number(t, "FOLLOW_RATE", 500)
	if pods == 0 {
		t.Skip("FOLLOW_PODS says how many")
	}
	s := startServer(t)
	s.populate(t, pods)
	program := filepath.Join(t.TempDir(), "apportion")
	built, err := exec.Command("go", "build", "-o", program, "github.com/apportion/apportion/cmd/apportion").CombinedOutput()
	require.NoError(t, err, "%s", built)
	address, admin := "127.0.0.1:"+apiserver.Port(t), "127.0.0.1:"+apiserver.Port(t)
	line := append(strings.Fields(os.Getenv("FOLLOW_RUN")), program, "serve", "--follow", "--follow-kubeconfig", s.Kubeconfig(t),
		"--listen", address, "--admin-listen", admin)
	server := exec.Command(line[0], line[1:]...)
	server.Stderr, server.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	require.NoError(t, server.Start())
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	ask := apportionv1.NewSnapshotServiceClient(conn)
	version := func() uint64 {
		list, err := ask.ListSnapshots(t.Context(), &apportionv1.ListSnapshotsRequest{})
		if err != nil || len(list.GetSnapshots()) == 0 {
			return 0
		}
		for _, kind := range list.GetSnapshots()[0].GetKinds() {
			if kind.GetResource() == "pods" && kind.GetRead() && int(kind.GetCount()) == pods {
				n, _ := strconv.ParseUint(kind.GetResourceVersion(), 10, 64)
				return n
			}
		}
		return 0
	}
	require.Eventually(t, func() bool { return version() > 0 }, 2*time.Minute, 20*time.Millisecond)
	t.Logf("the first version after %v", time.Since(began).Round(10*time.Millisecond))
	pid := server.Process.Pid
	if os.Getenv("FOLLOW_RUN") != "" {
		pid = childOf(t, program)
	}
	before, start := processorTime(t, pid), time.Now()
	lags := s.change(t, pods, rate, 45*time.Second, version)
	elapsed, used := time.Since(start), processorTime(t, pid)-before
	require.NotEmpty(t, lags)
	slices.Sort(lags)
	t.Logf("lag p50 %v, p99 %v, most %v of %d; processor %.3f; %s", lags[len(lags)/2], lags[len(lags)*99/100], lags[len(lags)-1], len(lags),
		used.Seconds()/elapsed.Seconds(), memoryOf(t, pid))
	response, err := http.Get("http://" + admin + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apportion_follow") && !strings.Contains(line, "events_total") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// change changes so many pods a second, and returns how long single changes took from the API server's answer to a version that has them.
func (s *apiServer) change(t *testing.T, pods, rate int, lasts time.Duration, version func() uint64) []time.Duration {
	t.Helper()
	type write struct {
		version uint64
		at      time.Time
	}
	var newest atomic.Pointer[write]
	var done atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var writing sync.WaitGroup
	const workers = 16
	start := time.Now()
	for w := range workers {
		writing.Go(func() {
			for i := w; ctx.Err() == nil; i += workers {
				time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				version, err := s.patchPod(i%pods, i/pods) //nolint:contextcheck // A call that has begun is waited for.
				if err == nil {
					newest.Store(&write{version, time.Now()})
					done.Add(1)
				}
			}
		})
	}
	var lags []time.Duration
	for ctx.Err() == nil {
		w := newest.Load()
		if w == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for version() < w.version && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		if ctx.Err() == nil {
			lags = append(lags, time.Since(w.at).Round(time.Millisecond))
		}
		time.Sleep(37 * time.Millisecond)
	}
	writing.Wait()
	t.Logf("%d changes in %v: %.0f a second", done.Load(), lasts, float64(done.Load())/lasts.Seconds())
	return lags
}

// childOf returns the process that runs a program.
func childOf(t *testing.T, program string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	for _, name := range found {
		if to, err := os.Readlink(name); err == nil && to == program {
			pid, err := strconv.Atoi(strings.Split(name, "/")[2])
			require.NoError(t, err)
			return pid
		}
	}
	require.Fail(t, "no process runs the program")
	return 0
}

// processorTime returns what a process has used so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	const ticks = 100 // A second, on every Linux.
	user, err := strconv.Atoi(fields[11])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	return time.Duration(user+system) * time.Second / ticks
}

// memoryOf returns the most memory that a process has had.
func memoryOf(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "VmHWM") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	return ""
}
