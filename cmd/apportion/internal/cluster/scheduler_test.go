//go:build cluster

package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/test/apiserver"
	"github.com/apportion/apportion/adapter/test/kubescheduler"
)

// recorder is an extender of Kubernetes' scheduler. It records the nodes that passed the scheduler's own filters, and rejects all of them,
// so that no waiting pod is bound.
type recorder struct {
	*httptest.Server

	mutex sync.Mutex
	// passed are the nodes by pod; faults are requests that are not a question about a pod.
	passed map[string][]string
	faults []string
}

func startRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{passed: map[string][]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.filter))
	t.Cleanup(r.Close)
	return r
}

// filter answers the scheduler's question which nodes a pod may use.
func (r *recorder) filter(w http.ResponseWriter, request *http.Request) {
	var asked struct {
		Pod       *corev1.Pod `json:"Pod"`
		NodeNames []string    `json:"NodeNames"`
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.Pod == nil || asked.NodeNames == nil {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v", request.URL.Path, err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	slices.Sort(asked.NodeNames)
	r.passed[asked.Pod.Namespace+"/"+asked.Pod.Name] = asked.NodeNames
	failed := map[string]string{}
	for _, name := range asked.NodeNames {
		failed[name] = kubescheduler.Passed
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"NodeNames": []string{}, "FailedNodes": failed}); err != nil {
		r.faults = append(r.faults, err.Error())
	}
}

// nodes are the nodes that passed for a pod; none if the scheduler did not ask.
func (r *recorder) nodes(pod string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string{}, r.passed[pod]...)
}

// startScheduler starts Kubernetes' scheduler, whose program KUBE_SCHEDULER names, until the test ends. It begins with the state of the
// API server at this moment.
func (s *apiServer) startScheduler(t *testing.T, extender string) {
	t.Helper()
	program := os.Getenv("KUBE_SCHEDULER")
	require.NotEmpty(t, program, "make test-cluster builds it")
	directory := t.TempDir()
	config, err := json.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": s.Kubeconfig(t), "qps": 1000, "burst": 1000},
		"leaderElection":   map[string]any{"leaderElect": false},
		// All nodes are looked at, and no pod waits for a try because of another one.
		"percentageOfNodesToScore": 100,
		"profiles": []any{map[string]any{
			"schedulerName": kubescheduler.Scheduler,
			// Without these, a message ends with its reasons.
			"plugins": map[string]any{"postFilter": map[string]any{"disabled": []any{map[string]any{"name": "*"}}}},
		}},
		"extenders": []any{map[string]any{
			"urlPrefix": extender, "filterVerb": "filter", "nodeCacheCapable": true, "httpTimeout": "1m", "weight": 1,
		}},
	})
	require.NoError(t, err)
	file := filepath.Join(directory, "scheduler.json")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	apiserver.Begin(t, directory, program, "--config="+file, "--secure-port=0")
}

// answers returns the scheduler's answers about the waiting pods of a cluster.
func (s *apiServer) answers(t *testing.T, o *kubescheduler.Objects) []kubescheduler.Answer {
	t.Helper()
	r := startRecorder(t)
	s.startScheduler(t, r.URL)
	var messages map[string]string
	require.Eventually(t, func() bool {
		messages = s.messages(t)
		return len(messages) >= len(o.Waiting)
	}, time.Minute, 100*time.Millisecond)
	require.Empty(t, r.faults)
	list := make([]kubescheduler.Answer, 0, len(o.Waiting))
	for _, p := range o.Waiting {
		key := p.Namespace + "/" + p.Name
		a := kubescheduler.Answer{Namespace: p.Namespace, Name: p.Name, Feasible: r.nodes(key)}
		require.NoError(t, a.Explain(messages[key]), key)
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b kubescheduler.Answer) int { return strings.Compare(a.Pod(), b.Pod()) })
	return list
}

// messages are the scheduler's messages about pods that it could not place.
func (s *apiServer) messages(t *testing.T) map[string]string {
	t.Helper()
	data, err := s.must(http.MethodGet, "/api/v1/pods", nil)
	require.NoError(t, err)
	var list corev1.PodList
	require.NoError(t, json.Unmarshal(data, &list))
	messages := map[string]string{}
	for i := range list.Items {
		p := &list.Items[i]
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				messages[p.Namespace+"/"+p.Name] = c.Message
			}
		}
	}
	return messages
}
