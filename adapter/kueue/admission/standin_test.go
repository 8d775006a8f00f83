//go:build cluster

package admission_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/test/apiserver"
)

// standIn plays Kueue's manager where its program is not there: it reserves quota in the order of creation while there is some of the
// cohort's 12 CPUs, admits what all checks are ready for, and takes back the quota of what is to be retried.
type standIn struct {
	*realKueue

	mutex sync.Mutex
	// requeue is when a Workload may have quota again, starts how often it was admitted.
	requeue map[string]time.Time
	starts  map[string]int
}

func (s *standIn) run(ctx context.Context) {
	for ctx.Err() == nil {
		list := s.list(ctx)
		slices.SortFunc(list, func(a, b *workload) int {
			return strings.Compare(a.Metadata.Created+a.Metadata.Name, b.Metadata.Created+b.Metadata.Name)
		})
		used := 0
		for _, w := range list {
			if w.is("QuotaReserved") && !w.is("Finished") {
				used += w.Spec.PodSets[0].Count
			}
		}
		for _, w := range list {
			used += s.step(ctx, w, 12-used)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// step moves a Workload on, and returns how much more quota is used.
func (s *standIn) step(ctx context.Context, w *workload, free int) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pods := w.Spec.PodSets[0].Count
	key := w.Metadata.Namespace + "/" + w.Metadata.Name
	switch {
	case w.is("Finished"):
	case !w.is("QuotaReserved"):
		if pods <= free && time.Now().After(s.requeue[key]) && s.patch(ctx, w, s.reserved(w, pods)) {
			return pods
		}
	case w.Status.Checks[0].State == "Retry":
		after := time.Duration(w.Status.Checks[0].After) * time.Second
		if s.patch(ctx, w, map[string]any{"conditions": []any{}, "admission": nil, "admissionChecks": []any{}}) {
			s.requeue[key] = time.Now().Add(after)
			return -pods
		}
	case w.Status.Checks[0].State == "Ready" && !w.is("Admitted"):
		if s.patch(ctx, w, map[string]any{"conditions": []any{conditionOf("QuotaReserved"), conditionOf("Admitted")}}) {
			s.starts[w.Metadata.Name]++
		}
	}
	return 0
}

func conditionOf(kind string) map[string]any {
	return map[string]any{
		"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
}

func (s *standIn) reserved(w *workload, pods int) map[string]any {
	check := map[string]any{
		"name": "apportion", "state": "Pending", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	return map[string]any{
		"conditions": []any{conditionOf("QuotaReserved")}, "admissionChecks": []any{check},
		"admission": map[string]any{"clusterQueue": w.Metadata.Namespace, "podSetAssignments": []any{map[string]any{
			"name": "main", "count": pods, "flavors": map[string]any{"cpu": "default"}, "resourceUsage": map[string]any{"cpu": pods},
		}}},
	}
}

// patch changes the status of a Workload that has not changed since it was read.
func (s *standIn) patch(ctx context.Context, w *workload, status map[string]any) bool {
	code, _, err := s.Try(ctx, http.MethodPatch, workloadPath(w.Metadata.Namespace)+"/"+w.Metadata.Name+"/status", map[string]any{
		"metadata": map[string]any{"resourceVersion": w.Metadata.ResourceVersion}, "status": status,
	})
	return err == nil && code == http.StatusOK
}

func workloadPath(namespace string) string {
	return apiserver.KueueGroup + version + "/namespaces/" + namespace + "/workloads"
}

// startStandIn makes a stand-in of Kueue.
func (k *realKueue) startStandIn() {
	k.t.Helper()
	k.t.Log("KUEUE is not set: a stand-in plays Kueue's manager")
	k.standIn = &standIn{realKueue: k, requeue: map[string]time.Time{}, starts: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	running := sync.WaitGroup{}
	running.Go(func() { k.standIn.run(ctx) })
	k.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// submit makes a Workload, as Kueue does for a Job.
func (s *standIn) submit(name, queue string, pods int) {
	s.t.Helper()
	s.Send(s.t, http.MethodPost, workloadPath(queue), map[string]any{
		"apiVersion": "kueue.x-k8s.io/" + version, "kind": "Workload", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"queueName": "main", "podSets": []any{map[string]any{
				"name": "main", "count": pods, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
					"name": "c", "image": "i", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
				}}}},
			}},
		},
	})
}

// finish ends a Workload.
func (s *standIn) finish(name, queue string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_, data, err := s.Try(s.t.Context(), http.MethodGet, workloadPath(queue)+"/"+name, nil)
		w := &workload{}
		//nolint:musttag // Its fields have tags.
		return err == nil && json.Unmarshal(data, w) == nil && s.patch(s.t.Context(), w, map[string]any{"conditions": []any{
			conditionOf("QuotaReserved"), conditionOf("Admitted"), conditionOf("Finished"),
		}})
	}, time.Minute, 50*time.Millisecond)
}

func (s *standIn) counts() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return maps.Clone(s.starts)
}
