package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// kueueObjects are the items of the lists of a cluster, by resource: a queue of 4 CPUs, one workload that holds 3, one that waits for 2.
func kueueObjects(version string) map[string][]string {
	object := func(kind, namespace, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion": "kueue.x-k8s.io/%s", "kind": %q, "metadata": {"name": %q, "namespace": %q, "uid": "u-%s",
			"resourceVersion": "1", "managedFields": [{"manager": "kubectl"}]}%s}`, version, kind, name, namespace, name, rest)
	}
	workload := func(name, cpu, status string) string {
		return object("Workload", "team", name, fmt.Sprintf(`, "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 1,
			"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": %q}}}]}}}]}, "status": %s`, cpu, status))
	}
	admitted := `{"conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
		"admission": {"clusterQueue": "a", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "3"}}]}}`
	return map[string][]string{
		"resourceflavors": {object("ResourceFlavor", "", "default", "")},
		"clusterqueues": {object("ClusterQueue", "", "a", `, "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"],
			"flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": 4}]}]}]}`)},
		"localqueues": {object("LocalQueue", "team", "main", `, "spec": {"clusterQueue": "a"}`)},
		"workloads":   {workload("running", "3", admitted), workload("waiting", "2", "{}")},
	}
}

// kueueServer is an API server with Kueue's kinds in some versions, and perhaps Volcano's. watches receives what to send on a watch.
func kueueServer(t *testing.T, versions []string, volcano bool, watches map[string]chan string) *httptest.Server {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		data, err := json.Marshal(v)
		if err != nil {
			data = []byte("{}")
		}
		_, _ = w.Write(data)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var groups, resources []any
		served := []any{}
		for _, v := range versions {
			served = append(served, map[string]any{"groupVersion": "kueue.x-k8s.io/" + v, "version": v})
		}
		if len(versions) > 0 {
			groups = append(groups, map[string]any{"name": "kueue.x-k8s.io", "versions": served})
		}
		if volcano {
			groups = append(groups, map[string]any{"name": "scheduling.volcano.sh"})
		}
		path, name := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/"), "/"), filepath.Base(r.URL.Path)
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			status(w, http.StatusUnprocessableEntity, "Invalid", "lists are not sent as a watch")
		case query.Get("watch") != "" && !slices.Contains([]string{"cohorts", "admissionchecks"}, name):
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			for {
				select {
				case event := <-watches[name]:
					fmt.Fprintln(w, event)
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return
				}
			}
		case r.URL.Path == "/apis":
			answer(w, map[string]any{"groups": groups})
		case path[0] == "kueue.x-k8s.io" && len(path) == 2:
			for resource := range kueueObjects("") {
				resources = append(resources, map[string]any{"name": resource})
			}
			answer(w, map[string]any{"resources": resources})
		case path[0] == "kueue.x-k8s.io" && slices.Contains(versions, path[1]):
			items, known := kueueObjects(path[1])[name]
			if !known {
				status(w, http.StatusNotFound, "NotFound", "no "+name)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [%s]}`, strings.Join(items, ","))
		case volcano && path[0] == "scheduling.volcano.sh", path[0] == "" || strings.HasPrefix(r.URL.Path, "/api/"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`)
		case volcano && path[0] == "scheduling.k8s.io":
			fmt.Fprint(w, `{"kind": "PriorityClassList", "apiVersion": "v1", "items": []}`)
		default:
			status(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAClusterWithKueueIsReadInTheVersionThatItHas(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		volcano  bool
	}{
		"the newest":              {[]string{"v1beta1", "v1beta2"}, false},
		"an older one":            {[]string{"v1alpha1", "v1beta1"}, false},
		"beside Volcano's kinds":  {[]string{"v1beta2"}, true},
		"only Volcano is present": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := flags(t, kueueServer(t, c.versions, c.volcano, nil).URL).Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.volcano, read.Volcano)
			require.Equal(t, len(c.versions) > 0, read.Kueue)
			var sources []objects.Source
			for _, s := range read.Sources {
				require.NotContains(t, string(s.Data), "managedFields")
				sources = append(sources, objects.Source{Name: s.Name, Data: s.Data})
			}
			got, err := kueue.Read(sources, time.Now())
			require.NoError(t, err)
			if read.Kueue {
				require.Len(t, got.Snapshot.GetJobs(), 2)
				require.Len(t, got.Snapshot.GetQueues(), 1)
			}
		})
	}
}

// waitingOf asks a server that follows a cluster what waits, and why.
func waitingOf(t *testing.T, r *servicetest.Replica) map[string]string {
	t.Helper()
	said := map[string]string{}
	policy, _ := client.Preset("kueue")
	answer, err := r.Explain(t.Context(), &apportionv1.ExplainRequest{
		Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, Rule: &apportionv1.Input_Policy{Policy: policy},
		},
		Explain: &apportionv1.ExplainStep{},
	})
	if err != nil {
		return said
	}
	for _, job := range answer.GetExplain().GetJobs() {
		said[job.GetName()] = job.GetText()
	}
	for _, kind := range answer.GetBasis().GetView().GetKinds() {
		said[kind.GetResource()] = fmt.Sprint(kind.GetCount())
	}
	return said
}

func TestAServerFollowsAClusterWithKueue(t *testing.T) {
	watches := map[string]chan string{"workloads": make(chan string)}
	api := kueueServer(t, []string{"v1beta1"}, false, watches)
	r := servicetest.Start(t, service.Options{})
	follower, err := cluster.NewFollower(r.Server, cluster.FollowOptions{
		Name: "cluster", Kubeconfig: kubeconfig(t, map[string]any{"server": api.URL}, map[string]any{}), Interval: 10 * time.Millisecond,
		Kueue: true, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); follower.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool {
		return strings.Contains(waitingOf(t, r)["team/waiting"], "waits for quota in use: main: flavor default: 2 cpu, and 1 cpu can be used now")
	}, 20*time.Second, 20*time.Millisecond)
	require.True(t, follower.Ready())
	watches["workloads"] <- `{"type": "DELETED", "object": ` + kueueObjects("v1beta1")["workloads"][0] + `}`
	require.Eventually(t, func() bool {
		return strings.Contains(waitingOf(t, r)["team/waiting"], "fits: 1 pod of main with 2 cpu in flavor default")
	}, 20*time.Second, 20*time.Millisecond)
	said := waitingOf(t, r)
	for kind, count := range map[string]string{"clusterqueues": "1", "cohorts": "0", "namespaces": "0", "workloads": "1"} {
		require.Equal(t, count, said[kind], kind)
	}
}
