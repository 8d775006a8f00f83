//go:build cluster

package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/test/apiserver"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

const account = "system:serviceaccount:default:apportion"

// kueueStory is a real API server with Kueue's kinds in one version, and what is asked about it as the service account of the chart.
type kueueStory struct {
	*apiServer

	t                   *testing.T
	version, kubeconfig string
	program             string
}

func (k *kueueStory) object(kind, plural, namespace, name string, spec map[string]any) {
	k.t.Helper()
	k.SendKueue(k.t, k.version, kind, plural, namespace, name, spec, nil)
}

// workload makes a Workload of one pod that asks for CPUs. Kueue's part is played by the test: status.
func (k *kueueStory) workload(name, queue, cpu string, owner map[string]any, status map[string]any) {
	k.t.Helper()
	path := apiserver.KueueGroup + k.version + "/namespaces/team/workloads"
	metadata := map[string]any{"name": name}
	if owner != nil {
		metadata["ownerReferences"] = []any{owner}
	}
	k.Send(k.t, http.MethodPost, path, map[string]any{
		"apiVersion": "kueue.x-k8s.io/" + k.version, "kind": "Workload", "metadata": metadata, "spec": map[string]any{
			"queueName": queue, "podSets": []any{map[string]any{
				"name": "main", "count": 1, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
					"name": "c", "image": "i", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}},
				}}}},
			}},
		},
	})
	if status != nil {
		k.Send(k.t, http.MethodPatch, path+"/"+name+"/status", map[string]any{"status": status})
	}
}

// admitted is the status of a Workload with quota.
func admitted(queue, cpu string) map[string]any {
	return map[string]any{
		"conditions": []any{map[string]any{
			"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
		"admission": map[string]any{"clusterQueue": queue, "podSetAssignments": []any{map[string]any{
			"name": "main", "count": 1, "flavors": map[string]any{"cpu": "default"}, "resourceUsage": map[string]any{"cpu": cpu},
		}}},
	}
}

// chartRole makes what the chart grants the service account of a server that follows Kueue.
func (k *kueueStory) chartRole() {
	k.t.Helper()
	file := filepath.Join("..", "..", "..", "..", "deploy", "chart", "templates", "rbac.yaml")
	text, err := os.ReadFile(file)
	require.NoError(k.t, err)
	rendered := bytes.Buffer{}
	made, err := template.New("rbac").Funcs(template.FuncMap{
		"dig": func(...any) string { return "kueue" }, "include": func(string, any) string { return "apportion" },
		"nindent": func(int, string) string { return " {}" },
	}).Parse(string(text))
	require.NoError(k.t, err)
	require.NoError(k.t, made.Execute(&rendered, map[string]any{
		"Values": map[string]any{
			"follow": map[string]any{"enabled": true}, "audit": map[string]any{"enabled": true}, "config": "",
			"ledger": map[string]any{"enabled": true},
		},
		"Release": map[string]any{"Namespace": "default"},
	}))
	k.Apply(k.t, rendered.Bytes())
}

// ask runs the program as kubectl's plugin, as the service account, and returns what it says.
func (k *kueueStory) ask(arguments ...string) string {
	k.t.Helper()
	said, err := exec.Command(k.program, append(arguments, "--kubeconfig", k.kubeconfig)...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() > 2) { //nolint:errorlint // Output returns it as it is.
		require.NoError(k.t, err, "%v: %s", arguments, said)
	}
	require.NotContains(k.t, string(said), "may not be read", "%v", arguments)
	return strings.Join(strings.Fields(string(said)), " ")
}

// same waits until what is followed is what the lists say, and returns the Workloads.
func (k *kueueStory) same(r *servicetest.Replica) map[string]*apportionv1.Job {
	k.t.Helper()
	got, err := k.flags(k.t).Read(k.t.Context())
	require.NoError(k.t, err)
	require.Empty(k.t, got.Unread)
	var sources []objects.Source
	for _, s := range got.Sources {
		sources = append(sources, objects.Source{Name: s.Name, Data: s.Data})
	}
	read, err := kueue.Read(sources, time.Now())
	require.NoError(k.t, err)
	var last *apportionv1.Snapshot
	require.Eventually(k.t, func() bool {
		answer, err := r.Named(k.t.Context(), "cluster")
		if err != nil || !answer.View.GetComplete() {
			return false
		}
		last = answer.Snapshot
		read.Snapshot.AsOf = last.GetAsOf()
		return proto.Equal(read.Snapshot, last)
	}, 90*time.Second, 20*time.Millisecond, "wanted %v\ngot    %v", read.Snapshot, last)
	jobs := map[string]*apportionv1.Job{}
	for _, j := range last.GetJobs() {
		jobs[j.GetName()] = j
	}
	return jobs
}

func tellKueue(t *testing.T, version string) *kueueStory {
	t.Helper()
	k := &kueueStory{apiServer: startServer(t), t: t, version: version, program: filepath.Join(t.TempDir(), "kubectl-apportion")}
	built, err := exec.Command("go", "build", "-o", k.program, "github.com/apportion/apportion/cmd/apportion").CombinedOutput()
	require.NoError(t, err, "%s", built)
	k.kubeconfig = k.KubeconfigAs(t, account, "team")
	k.DefineKueue(t, version)
	k.chartRole()
	k.Send(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "team"}})
	cohort := map[string]string{"v1beta1": "cohort", "v1beta2": "cohortName"}[version]
	k.object("Topology", "topologies", "", "racks", map[string]any{"levels": []any{map[string]any{"nodeLabel": "rack"}}})
	k.object("ResourceFlavor", "resourceflavors", "", "default", map[string]any{})
	parent := map[string]string{"v1beta1": "parent", "v1beta2": "parentName"}[version]
	k.object("Cohort", "cohorts", "", "all", map[string]any{parent: "root"})
	k.Send(t, http.MethodPost, apiserver.KueueGroup+version+"/workloadpriorityclasses", map[string]any{
		"apiVersion": "kueue.x-k8s.io/" + version, "kind": "WorkloadPriorityClass", "metadata": map[string]any{"name": "high"},
		"value": 100,
	})
	for name, quota := range map[string]string{"a": "4", "b": "2"} {
		k.object("ClusterQueue", "clusterqueues", "", name, map[string]any{
			cohort: "all", "namespaceSelector": map[string]any{},
			"preemption": map[string]any{"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
			"resourceGroups": []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": []any{map[string]any{
				"name": "default", "resources": []any{map[string]any{"name": "cpu", "nominalQuota": quota}},
			}}}},
		})
		k.object("LocalQueue", "localqueues", "team", name, map[string]any{"clusterQueue": name})
	}
	return k
}

// follows returns a server that follows the cluster as the service account.
func (k *kueueStory) follows() *servicetest.Replica {
	k.t.Helper()
	r := servicetest.Start(k.t, service.Options{})
	follower, err := cluster.NewFollower(r.Server, cluster.FollowOptions{
		Name: "cluster", Kueue: true, Kubeconfig: k.kubeconfig, Interval: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	require.NoError(k.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	running := sync.WaitGroup{}
	running.Go(func() { follower.Run(ctx) })
	k.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

func TestARealAPIServerWithKueueIsReadAndFollowedInEachVersion(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			k := tellKueue(t, version)
			r := k.follows()
			require.Empty(t, k.same(r), "no Workloads")

			job := map[string]any{"name": "train", "namespace": "team"}
			k.Send(t, http.MethodPost, "/apis/batch/v1/namespaces/team/jobs", map[string]any{
				"apiVersion": "batch/v1", "kind": "Job", "metadata": job,
				"spec": map[string]any{"suspend": true, "template": map[string]any{"spec": map[string]any{
					"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "i"}},
				}}},
			})
			_, data, err := k.Try(t.Context(), http.MethodGet, "/apis/batch/v1/namespaces/team/jobs/train", nil)
			require.NoError(t, err)
			var made struct {
				Metadata struct {
					UID string `json:"uid"`
				} `json:"metadata"`
			}
			require.NoError(t, json.Unmarshal(data, &made))
			k.workload("running", "a", "3", nil, admitted("a", "3"))
			k.workload("job-train-1", "a", "4", map[string]any{
				"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": made.Metadata.UID, "controller": true,
			}, nil)
			require.Len(t, k.same(r), 2)

			why := "team/job-train-1 waits for quota in use: main: flavor default: 4 cpu, and 3 cpu can be used now"
			require.Contains(t, k.ask("explain", "workload/job-train-1"), why)
			require.Contains(t, k.ask("explain", "job/train"), why)
			require.Contains(t, k.ask("pending"), "1 job waits")
			require.Contains(t, k.ask("shares"), "a all 0.0% default cpu 4 3 3 6")
			require.Contains(t, k.ask("explain", "job/train", "--remedies"), "kubectl patch clusterqueues.kueue.x-k8s.io")
			require.Contains(t, k.ask("whatif", "--set", "clusterqueue/b.nominal.cpu=4"), "job-train-1")
			require.Contains(t, k.ask("audit"), "checked: 2 queues, 2 jobs")

			t.Log("while it is followed, Workloads come, are admitted, and go")
			k.workload("later", "b", "1", nil, nil)
			require.Contains(t, k.same(r), "later")
			later := apiserver.KueueGroup + version + "/namespaces/team/workloads/later"
			k.Send(t, http.MethodPatch, later+"/status", map[string]any{"status": admitted("b", "1")})
			require.True(t, k.same(r)["later"].GetKueue().GetAdmitted())
			k.Send(t, http.MethodDelete, later, nil)
			require.NotContains(t, k.same(r), "later")

			t.Log("the API server is killed and comes back")
			apiserver.Kill(t, k.Process)
			k.BeginServer(t)
			k.workload("after", "b", "1", nil, nil)
			require.Contains(t, k.same(r), "after")

			if version == "v1beta1" {
				return
			}
			t.Log("Volcano is installed, too")
			k.define(t)
			require.Contains(t, k.ask("explain", "job/train"), why)
			require.Contains(t, k.ask("pending", "--policy", "kueue"), "2 jobs wait")
			k.Send(t, http.MethodPost, queuePath, map[string]any{
				"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": "default"},
				"spec": map[string]any{"weight": 1},
			})
			require.Contains(t, k.ask("explain", "job/train"), why)
			require.Contains(t, k.ask("pending"), "workloads")
		})
	}
}
