//go:build cluster

package admission_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/kueue/admission"
	"github.com/apportion/apportion/adapter/test/apiserver"
)

const version = "v1beta2"

// realKueue is a real API server with Kueue's own manager.
type realKueue struct {
	*apiserver.Server

	t       *testing.T
	program string
	// standIn plays Kueue's manager if there is none.
	standIn *standIn
	// admission is the process of the controller.
	admission *exec.Cmd
}

// workload is a Workload as far as the test reads it.
type workload struct {
	Metadata struct {
		Name, Namespace, ResourceVersion string
		Created                          string                  `json:"creationTimestamp"`
		Owners                           []struct{ Name string } `json:"ownerReferences"`
	}
	Spec   struct{ PodSets []struct{ Count int } }
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
		Checks []struct {
			Name    string `json:"name"`
			State   string `json:"state"`
			Message string `json:"message"`
			After   int    `json:"requeueAfterSeconds"`
		} `json:"admissionChecks"`
	} `json:"status"`
}

func (w *workload) is(condition string) bool {
	for _, c := range w.Status.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// startKueue starts the API server and Kueue's manager, without its webhooks: the test makes Jobs as these would.
func startKueue(t *testing.T) *realKueue {
	t.Helper()
	k := &realKueue{Server: apiserver.Start(t), t: t, program: filepath.Join(t.TempDir(), "apportion-kueue-admission")}
	const source = "github.com/apportion/apportion/cmd/apportion-kueue-admission"
	built, err := exec.Command("go", "build", "-o", k.program, source).CombinedOutput()
	require.NoError(t, err, "%s", built)
	k.DefineKueue(t, version)
	if manager := os.Getenv("KUEUE"); manager != "" {
		k.startManager(manager)
	} else {
		k.startStandIn()
	}
	rights, err := os.ReadFile(filepath.Join("manifests", "rbac.yaml"))
	require.NoError(t, err)
	k.Apply(t, rights)
	k.SendKueue(t, version, "ResourceFlavor", "resourceflavors", "", "default", map[string]any{}, nil)
	k.SendKueue(t, version, "AdmissionCheck", "admissionchecks", "", "apportion", map[string]any{
		"controllerName": admission.ControllerName,
	}, nil)
	for _, name := range []string{"a", "b", "c"} {
		k.Send(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
		k.SendKueue(t, version, "ClusterQueue", "clusterqueues", "", name, map[string]any{
			"cohortName": "all", "namespaceSelector": map[string]any{}, "admissionChecksStrategy": map[string]any{
				"admissionChecks": []any{map[string]any{"name": "apportion"}},
			},
			"resourceGroups": []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": []any{map[string]any{
				"name": "default", "resources": []any{map[string]any{"name": "cpu", "nominalQuota": "4"}},
			}}}},
		}, nil)
		k.SendKueue(t, version, "LocalQueue", "localqueues", name, "main", map[string]any{"clusterQueue": name}, nil)
	}
	return k
}

// startManager starts Kueue's manager, and does what a kubelet does for its pod: the certificates of the Secret, which it makes, become
// files.
func (k *realKueue) startManager(manager string) {
	k.t.Helper()
	k.Send(k.t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "kueue-system"}})
	const secret = "/api/v1/namespaces/kueue-system/secrets"
	k.Send(k.t, http.MethodPost, secret, map[string]any{"metadata": map[string]any{"name": "kueue-webhook-server-cert"}})
	certificates := filepath.Join(k.Directory, "webhook")
	require.NoError(k.t, os.Mkdir(certificates, 0o700))
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": "kueue-system",
		"health": map[string]any{"healthProbeBindAddress": "127.0.0.1:0"}, "metrics": map[string]any{"bindAddress": "127.0.0.1:0"},
		"webhook":        map[string]any{"port": number(k.t, apiserver.Port(k.t)), "host": "127.0.0.1", "certDir": certificates},
		"leaderElection": map[string]any{"leaderElect": false}, "integrations": map[string]any{"frameworks": []any{"batch/job"}},
	})
	require.NoError(k.t, err)
	file := filepath.Join(k.Directory, "kueue.yaml")
	require.NoError(k.t, os.WriteFile(file, config, 0o600))
	k.t.Setenv("KUBECONFIG", k.Kubeconfig(k.t))
	// The gate serves an API that needs an account in the cluster.
	apiserver.Begin(k.t, k.Directory, manager, "--config="+file, "--feature-gates=VisibilityOnDemand=false")
	// What a kubelet does for Kueue's pod: the certificates of the Secret, which Kueue makes, become files.
	require.Eventually(k.t, func() bool {
		_, data, err := k.Try(k.t.Context(), http.MethodGet, secret+"/kueue-webhook-server-cert", nil)
		var made struct {
			Data map[string]string `json:"data"`
		}
		if err != nil || json.Unmarshal(data, &made) != nil || made.Data["tls.crt"] == "" {
			return false
		}
		for name, text := range made.Data {
			decoded, err := base64.StdEncoding.DecodeString(text)
			require.NoError(k.t, err)
			require.NoError(k.t, os.WriteFile(filepath.Join(certificates, name), decoded, 0o600))
		}
		return true
	}, 2*time.Minute, 200*time.Millisecond, "Kueue makes its certificates")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n := 0
	_, err := fmt.Sscan(text, &n)
	require.NoError(t, err)
	return n
}

// admits starts the controller.
func (k *realKueue) admits(settings string) {
	k.t.Helper()
	file := filepath.Join(k.Directory, "admission.yaml")
	require.NoError(k.t, os.WriteFile(file, []byte(settings), 0o600))
	k.admission = apiserver.Begin(k.t, k.Directory, k.program, "--config="+file,
		"--kubeconfig="+k.KubeconfigAs(k.t, "system:serviceaccount:apportion-system:apportion-kueue-admission", "default"))
}

const jobs = "/apis/batch/v1/namespaces/"

// job makes a Job of a CPU for each pod, as Kueue's webhook would leave it: suspended.
func (k *realKueue) job(name, queue string, pods int) {
	k.t.Helper()
	if k.standIn != nil {
		k.standIn.submit(name, queue, pods)
		return
	}
	k.Send(k.t, http.MethodPost, jobs+queue+"/jobs", map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"kueue.x-k8s.io/queue-name": "main"}},
		"spec": map[string]any{
			"suspend": true, "parallelism": pods, "completions": pods, "template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never", "containers": []any{map[string]any{
					"name": "c", "image": "i", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
				}},
			}},
		},
	})
}

// finish ends a Job.
func (k *realKueue) finish(name, queue string) {
	k.t.Helper()
	if k.standIn != nil {
		k.standIn.finish(name, queue)
		return
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": "Done", "message": "", "lastTransitionTime": now}
	}
	_, data, err := k.Try(k.t.Context(), http.MethodGet, jobs+queue+"/jobs/"+name, nil)
	require.NoError(k.t, err)
	var j struct {
		Spec struct {
			Completions int `json:"completions"`
		} `json:"spec"`
	}
	require.NoError(k.t, json.Unmarshal(data, &j))
	k.Send(k.t, http.MethodPatch, jobs+queue+"/jobs/"+name+"/status", map[string]any{"status": map[string]any{
		"startTime": now, "completionTime": now, "succeeded": j.Spec.Completions, "ready": 0,
		"conditions": []any{condition("SuccessCriteriaMet"), condition("Complete")},
	}})
}

func (k *realKueue) list(ctx context.Context) []*workload {
	_, data, err := k.Try(ctx, http.MethodGet, apiserver.KueueGroup+version+"/workloads", nil)
	var list struct {
		Items []*workload `json:"items"`
	}
	if err != nil || json.Unmarshal(data, &list) != nil { //nolint:musttag // Its fields have tags.
		return nil
	}
	return list.Items
}

// workloads returns the Workloads that are not finished, by the names of their Jobs.
func (k *realKueue) workloads() map[string]*workload {
	found := map[string]*workload{}
	for _, w := range k.list(k.t.Context()) {
		name := w.Metadata.Name
		if len(w.Metadata.Owners) > 0 {
			name = w.Metadata.Owners[0].Name
		}
		if !w.is("Finished") {
			found[name] = w
		}
	}
	return found
}

// admitted counts the admitted Workloads of each namespace.
func (k *realKueue) admitted() map[string]int {
	count := map[string]int{}
	for _, w := range k.workloads() {
		if w.is("Admitted") {
			count[w.Metadata.Namespace]++
		}
	}
	return count
}

func (k *realKueue) until(want map[string]int, why string) {
	k.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for got := k.admitted(); fmt.Sprint(got) != fmt.Sprint(want); got = k.admitted() {
		if time.Now().After(deadline) {
			for name, w := range k.workloads() {
				k.t.Logf("%s %+v", name, w.Status)
			}
			data, err := os.ReadFile(filepath.Join(k.Directory, "apportion-kueue-admission.log"))
			k.t.Logf("%s %v", data, err)
			require.Equal(k.t, want, got, why)
		}
		time.Sleep(100 * time.Millisecond)
	}
	k.t.Log(why, want)
}

// notes returns the texts of the controller's Events in a namespace.
func (k *realKueue) notes(namespace string) string {
	k.t.Helper()
	_, data, err := k.Try(k.t.Context(), http.MethodGet, "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", nil)
	require.NoError(k.t, err)
	var list struct {
		Items []struct {
			Note       string `json:"note"`
			Controller string `json:"reportingController"`
		} `json:"items"`
	}
	require.NoError(k.t, json.Unmarshal(data, &list))
	all := ""
	for _, e := range list.Items {
		if e.Controller == admission.ControllerName {
			all += e.Note + "\n"
		}
	}
	return all
}

// starts counts how often each Job was started, from Kueue's Events.
func (k *realKueue) starts() map[string]int {
	k.t.Helper()
	if k.standIn != nil {
		return k.standIn.counts()
	}
	_, data, err := k.Try(k.t.Context(), http.MethodGet, "/apis/events.k8s.io/v1/events", nil)
	require.NoError(k.t, err)
	var list struct {
		Items []struct {
			Reason    string `json:"reason"`
			Regarding struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"regarding"`
			Series *struct {
				Count int `json:"count"`
			} `json:"series"`
		} `json:"items"`
	}
	require.NoError(k.t, json.Unmarshal(data, &list))
	starts := map[string]int{}
	for _, e := range list.Items {
		if e.Regarding.Kind == "Job" && e.Reason == "Started" {
			starts[e.Regarding.Name]++
			if e.Series != nil {
				starts[e.Regarding.Name] += e.Series.Count - 1
			}
		}
	}
	return starts
}

func TestARealAPIServerWithKueueAdmitsWhatFairAdmits(t *testing.T) {
	k := startKueue(t)
	k.admits("retryAfter: 3s\nevict: all\n")
	t.Log("a may use what is free: its Workloads are loans beyond 4")
	for i := range 6 {
		k.job(fmt.Sprint("a", i), "a", 2)
	}
	k.until(map[string]int{"a": 6}, "a borrows all")

	t.Log("b and c ask for their own: what a has borrowed leaves by its checks")
	k.job("b0", "b", 4)
	k.job("c0", "c", 4)
	k.until(map[string]int{"a": 2, "b": 1, "c": 1}, "each has its share")
	require.Regexp(t, `leaves for [bc]/\S+: The 4 tasks that [bc]/\S+ needs can be placed`, k.notes("a"))
	before := k.starts()

	t.Log("the controller is killed, and nothing changes; another one goes on")
	apiserver.Kill(t, k.admission)
	k.finish("b0", "b")
	k.job("b1", "b", 2)
	time.Sleep(3 * time.Second)
	require.Equal(t, map[string]int{"a": 2, "c": 1}, k.admitted(), "checks wait")
	k.admits("retryAfter: 3s\nevict: all\n")
	k.until(map[string]int{"a": 3, "b": 1, "c": 1}, "b has 2 of its 4, a borrows the others")

	t.Log("the API server is killed and comes back")
	apiserver.Kill(t, k.Process)
	time.Sleep(2 * time.Second)
	k.BeginServer(t)
	k.finish("c0", "c")
	k.until(map[string]int{"a": 5, "b": 1}, "a borrows what c left")

	after := k.starts()
	for name, n := range after {
		if before[name] > 0 && k.workloads()[name] != nil && strings.HasPrefix(name, "c") {
			require.Equal(t, before[name], n, "%s was started again", name)
		}
	}
	require.Equal(t, 1, after["b1"], "%v", after)
	require.Equal(t, 1, after["c0"], "%v", after)
}

func TestARealAPIServerWithKueueKeepsWorkloadsWaitingWhileApportionIsAway(t *testing.T) {
	k := startKueue(t)
	k.admits("server: 127.0.0.1:1\nplaintext: true\ndeadline: 1s\nfallback: closed\n")
	k.job("a0", "a", 2)
	require.Eventually(t, func() bool {
		w := k.workloads()["a0"]
		return w != nil && len(w.Status.Checks) == 1 && strings.Contains(w.Status.Checks[0].Message, "Apportion does not answer")
	}, time.Minute, 100*time.Millisecond)
	require.Empty(t, k.admitted())
	apiserver.Kill(t, k.admission)
	k.admits("server: 127.0.0.1:1\nplaintext: true\ndeadline: 1s\nfallback: open\n")
	k.until(map[string]int{"a": 1}, "it fails open")
}
