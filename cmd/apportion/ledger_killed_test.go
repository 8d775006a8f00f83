package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
)

// podServer is an API server with a node, a queue, and pods that come and go.
type podServer struct {
	mutex  sync.Mutex
	pods   map[string]string
	events []string
	// changed is closed by the next event.
	changed chan struct{}
}

const podsPath, groupsPath = "/api/v1/pods", "/apis/scheduling.volcano.sh/v1beta1/podgroups"

// set adds or deletes a pod, by the type of the event.
func (s *podServer) set(t *testing.T, event string, pod map[string]any) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	metadata, _ := pod["metadata"].(map[string]any)
	metadata["resourceVersion"] = strconv.Itoa(len(s.events) + 2)
	text, err := json.Marshal(pod)
	require.NoError(t, err)
	name := fmt.Sprint(metadata["name"])
	if s.pods[name] = string(text); event == "DELETED" {
		delete(s.pods, name)
	}
	s.events = append(s.events, fmt.Sprintf(`{"type": %q, "object": %s}`, event, text))
	close(s.changed)
	s.changed = make(chan struct{})
}

// touch adds or deletes a pod that uses nothing.
func (s *podServer) touch(t *testing.T) {
	t.Helper()
	s.mutex.Lock()
	event := "ADDED"
	if _, there := s.pods["waits"]; there {
		event = "DELETED"
	}
	s.mutex.Unlock()
	s.set(t, event, map[string]any{
		"metadata": map[string]any{
			"name": "waits", "namespace": "a", "uid": "waits", "annotations": map[string]any{"scheduling.k8s.io/group-name": "j"},
		},
		"spec":   map[string]any{"schedulerName": "volcano", "containers": []any{map[string]any{"name": "c"}}},
		"status": map[string]any{"phase": "Pending"},
	})
}

// ServeHTTP answers lists and watches.
func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	items := map[string]string{
		podsPath:        "",
		groupsPath:      `{"metadata": {"name": "j", "namespace": "a", "resourceVersion": "1"}, "spec": {"queue": "q"}, "status": {"phase": "Running"}}`,
		"/api/v1/nodes": `{"metadata": {"name": "n", "resourceVersion": "1"}, "status": {"allocatable": {"cpu": "640", "memory": "1Ti", "pods": "200"}}}`,
		"/apis/scheduling.volcano.sh/v1beta1/queues": `{"metadata": {"name": "q", "resourceVersion": "1"}, "spec": {"weight": 1}}`,
	}
	list, known := items[r.URL.Path]
	switch query := r.URL.Query(); {
	case !known:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
	case query.Get("watch") == "true":
		s.watch(w, r)
	default:
		s.list(w, r.URL.Path, list)
	}
}

func (s *podServer) list(w http.ResponseWriter, path, list string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if path == podsPath {
		list = strings.Join(slices.Collect(maps.Values(s.pods)), ",")
	}
	_, _ = fmt.Fprintf(w, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "%d"}, "items": [%s]}`, len(s.events)+1, list)
}

func (s *podServer) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for flush := http.NewResponseController(w); ; {
		s.mutex.Lock()
		events, changed := s.events[from-1:], s.changed
		s.mutex.Unlock()
		for _, text := range events {
			if r.URL.Path == podsPath {
				_, _ = fmt.Fprintln(w, text)
			}
			from++
		}
		if flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// counting is a server that keeps a ledger, as a process.
type counting struct {
	*replica.Replica

	ledger string
	client *client.Client
}

// startCounting starts a server that follows an API server with a ledger.
func startCounting(t *testing.T, api string) *counting {
	t.Helper()
	binary, err := exec.LookPath("apportion")
	require.NoError(t, err, "testscript puts it there")
	directory := t.TempDir()
	kubeconfig := filepath.Join(directory, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, api), 0o600))
	c := &counting{ledger: filepath.Join(directory, "ledger")}
	c.Replica, err = replica.New(t.Context(), binary, "--follow-enabled", "--follow-kubeconfig", kubeconfig, "--follow-interval", "10ms",
		"--ledger-file", c.ledger, "--ledger-interval", "10ms", "--drain-delay", "0s")
	require.NoError(t, err)
	c.client, err = client.Dial(c.Address, client.WithPlaintext())
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Kill()
		require.NoError(t, c.client.Close())
	})
	c.begin(t)
	return c
}

func (c *counting) begin(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Start(context.WithoutCancel(t.Context())))
	require.Eventually(t, func() bool { return c.Ready(t.Context()) == nil }, 5*time.Minute, 10*time.Millisecond)
}

// usage is what the server says was used until a time.
func (c *counting) usage(ctx context.Context, until time.Time) (*apportionv1alpha1.GetUsageResponse, error) {
	return c.client.Usage(ctx, &apportionv1alpha1.GetUsageRequest{
		Name: "cluster", EndTime: new(until.UnixNano()), Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_TOTAL, Owners: true,
	})
}

// says waits until the server says that all queues used so much of cpu until a time.
func (c *counting) says(t *testing.T, until time.Time, want int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, err := c.usage(t.Context(), until)
		if err != nil || len(answer.GetIntervals()) == 0 {
			return false
		}
		for _, q := range answer.GetIntervals()[0].GetQueues() {
			if q.GetQueue() == "root" && q.Owner == nil {
				return q.GetUsed().GetQuantumSeconds()[0] == want
			}
		}
		return false
	}, 5*time.Minute, 10*time.Millisecond)
}

// stores waits until the server says that it stored a version of the cluster that is newer than a time. The age that it says may be too old
// by the time of the call, so that touch makes newer versions.
func (c *counting) stores(t *testing.T, since time.Time, touch func()) {
	t.Helper()
	require.Eventually(t, func() bool {
		before := time.Now()
		age, err := c.Metric(t.Context(), "apportion_ledger_age_seconds")
		if err == nil && age >= 0 && before.Add(-time.Duration(age*float64(time.Second))).After(since) {
			return true
		}
		touch()
		return false
	}, 5*time.Minute, 50*time.Millisecond)
}

// stored is what the file of the ledger says that all queues used of cpu until a time.
func (c *counting) stored(t *testing.T, until time.Time) (used int64) {
	t.Helper()
	f, err := file.Read(c.ledger, ledger.Options{})
	require.NoError(t, err)
	f.View(func(l *ledger.Ledger) {
		if v := l.Spent(0, l.EpochOf(until.Unix()))[ledger.Line{Queue: "root"}]; v != nil {
			used = v[0]
		}
	})
	require.NoError(t, f.Close())
	return used
}

// TestAKillOfTheServerLosesNothingOfItsLedger kills the process of a server at any moment while pods come and go: after it said that it has
// stored them, and some end while it is away; or before, and they still run. After each start it says what it said before, and in the end the
// same as a server that was never killed.
func TestAKillOfTheServerLosesNothingOfItsLedger(t *testing.T) {
	if testing.Short() && !raced.On {
		t.Skip("runs processes")
	}
	api := &podServer{pods: map[string]string{}, changed: make(chan struct{})}
	listening := httptest.NewServer(api)
	t.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
	})
	// Pods began before the epoch that runs, so that a moment more or less of it changes no total.
	until := time.Now().UTC().Truncate(6 * time.Hour)
	steady, killed := startCounting(t, listening.URL), startCounting(t, listening.URL)
	want, rounds := int64(0), 8
	if raced.On {
		rounds = 2
	}
	for i := range rounds {
		seconds := int64(i+1) * 3600
		name, began := "p"+strconv.Itoa(i), time.Unix(until.Unix()-seconds, 0).UTC().Format(time.RFC3339)
		pod := map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "a", "uid": name, "annotations": map[string]any{
				"scheduling.k8s.io/group-name": "j", "apportion.dev/owner": "o" + strconv.Itoa(i%3),
			}},
			"spec": map[string]any{"schedulerName": "volcano", "nodeName": "n", "containers": []any{map[string]any{
				"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": strconv.Itoa(i + 1)}},
			}}},
			"status": map[string]any{"phase": "Running", "conditions": []any{
				map[string]any{"type": "PodScheduled", "status": "True", "lastTransitionTime": began},
			}},
		}
		added := time.Now()
		api.set(t, "ADDED", pod)
		want += int64(i+1) * 1000 * seconds
		steady.says(t, until, want)
		killed.says(t, until, want)
		acknowledged := i%2 == 0
		if acknowledged {
			killed.stores(t, added, func() { api.touch(t) })
			api.set(t, "DELETED", pod)
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		killed.Kill()
		if acknowledged {
			require.Equal(t, want, killed.stored(t, until), "what was stored is in the file")
		}
		killed.begin(t)
		killed.says(t, until, want)
	}
	left, err := steady.usage(t.Context(), until)
	require.NoError(t, err)
	right, err := killed.usage(t.Context(), until)
	require.NoError(t, err)
	require.Len(t, left.GetIntervals(), 1)
	require.Equal(t, left.GetIntervals()[0].String(), right.GetIntervals()[0].String())
}
