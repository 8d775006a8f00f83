package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	origin = "policy: ConfigMap volcano-system/volcano-scheduler-configmap in "
	// drfOnly decides no shares of queues, unlike the default configuration.
	drfOnly = "tiers:\n- plugins:\n  - name: drf\nactions: enqueue, allocate, backfill, preempt, reclaim\n"
	noTiers = "tiers: 3\n"
)

// withConfigMap returns a dump of the sample cluster that also contains a ConfigMap of the scheduler with a configuration; empty: none.
func withConfigMap(t *testing.T, conf string) string {
	t.Helper()
	const research = "../../examples/clusters/research"
	directory := filepath.Join(t.TempDir(), "dump")
	require.NoError(t, os.CopyFS(directory, os.DirFS(research)))
	if conf != "" {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap, namespace: volcano-system}\ndata:\n" +
			"  volcano-scheduler.conf: |\n    " + strings.ReplaceAll(conf, "\n", "\n    ") + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(directory, "scheduler.yaml"), []byte(text), 0o600))
	}
	return directory
}

func TestThePolicyIsThatOfTheConfigMapInTheDump(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "drf.conf")
	require.NoError(t, os.WriteFile(conf, []byte(drfOnly), 0o600))
	byFile, _, err := runLine(t, "shares", "-o", "json", "-f", withConfigMap(t, ""), "--policy", conf)
	require.NoError(t, err)
	byDefault, told, err := runLine(t, "shares", "-o", "json", "-f", withConfigMap(t, ""))
	require.NoError(t, err)
	require.Contains(t, told, "policy: the file that Volcano's installers ship\n")
	require.NotEqual(t, byDefault, byFile)

	dump := withConfigMap(t, drfOnly)
	for _, command := range []string{"shares", "pending", "audit", "get"} {
		args := []string{command, "-f", dump}
		if command == "get" {
			args = append(args, "queues")
		}
		_, told, _ := runLine(t, args...) // An audit of the sample finds something.
		require.Equal(t, 1, strings.Count(told, origin+filepath.Join(dump, "scheduler.yaml")+"\n"), told)
		require.NotContains(t, told, "objects of kind")
	}
	got, _, err := runLine(t, "shares", "-o", "json", "-f", dump)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(byFile, conf, "ConfigMap volcano-system/volcano-scheduler-configmap", 1), got)

	got, told, err = runLine(t, "shares", "-o", "json", "-f", dump, "--policy", "volcano")
	require.NoError(t, err)
	require.NotContains(t, told, "policy: ")
	source := ",\n    \"policySource\": \"the file that Volcano's installers ship\""
	require.Equal(t, strings.Replace(byDefault, source, "", 1), got, "--policy wins")
}

func TestTheReleaseIsThatOfTheSchedulersDeploymentInTheDump(t *testing.T) {
	dump := withConfigMap(t, drfOnly)
	digest := func(told string) string {
		t.Helper()
		out, said, err := runLine(t, "shares", "-o", "json", "-f", dump)
		require.NoError(t, err)
		require.Contains(t, said, origin+filepath.Join(dump, "scheduler.yaml")+told+"\n")
		require.NotContains(t, said, "objects of kind")
		return out
	}
	unknown := digest("")
	deploy := func(tag string) {
		t.Helper()
		text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: volcano-scheduler, namespace: volcano-system}\n" +
			"spec: {template: {spec: {containers: [{image: 'volcanosh/vc-scheduler:" + tag + "'}]}}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(dump, "deployment.yaml"), []byte(text), 0o600))
	}
	deploy("v1.15.1")
	require.Equal(t, unknown, digest(", of Volcano v1.15.1"), "1.15 is the default")
	deploy("v1.16.0")
	require.NotEqual(t, unknown, digest(", of Volcano v1.16.0"), "another policy")
}

func TestABrokenConfigMapIsAnErrorUnlessAPolicyIsNamed(t *testing.T) {
	dump := withConfigMap(t, noTiers)
	_, _, err := runLine(t, "shares", "-f", dump)
	require.ErrorContains(t, err, "ConfigMap volcano-system/volcano-scheduler-configmap, whose policy is used unless --policy names another: "+
		filepath.Join(dump, "scheduler.yaml")+":6: ")
	_, _, err = runLine(t, "shares", "-f", dump, "--policy", "proportion")
	require.NoError(t, err)
}

func TestManifestsOfKueueAreDecidedByTheirPresetBesideAConfigMap(t *testing.T) {
	dump := withConfigMap(t, noTiers)
	queue := filepath.Join(t.TempDir(), "queue.yaml")
	require.NoError(t, os.WriteFile(queue, []byte("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: q}\n"), 0o600))
	_, told, err := runLine(t, "get", "queues", "-f", queue, "-f", filepath.Join(dump, "scheduler.yaml"))
	require.NoError(t, err)
	require.NotContains(t, told, "policy: ")
}

func TestASubmittedJobIsDecidedByTheConfigMap(t *testing.T) {
	dump := withConfigMap(t, drfOnly)
	job := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(job, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: language}\n"+
		"spec:\n  schedulerName: volcano\n  containers: [{name: c, resources: {requests: {cpu: 1}}}]\n"), 0o600))
	_, told, _ := runLine(t, "whatif", "--job", job, "-f", dump) // The queue may have no room.
	require.Contains(t, told, origin)
}

func TestThePolicyOfALiveClusterIsThatOfItsConfigMap(t *testing.T) {
	const configMap = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
	var forbidden bool
	gets := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != configMap:
			item := ""
			if strings.HasSuffix(r.URL.Path, "/queues") {
				item = `{"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": "q"}, "spec": {"weight": 1}}`
			}
			fmt.Fprintf(w, `{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [%s]}`, item)
		case forbidden:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "not for u", "code": 403}`)
		default:
			gets++
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "volcano-scheduler-configmap", `+
				`"namespace": "volcano-system"}, "data": {"volcano-scheduler.conf": %q}}`, drfOnly)
		}
	}))
	t.Cleanup(s.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"clusters: [{name: k, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {}}]\n", s.URL), 0o600))
	ask := func(more ...string) string {
		_, told, err := runLine(t, append([]string{"get", "queues", "--cluster", "--kubeconfig", kubeconfig}, more...)...)
		require.NoError(t, err)
		return told
	}
	require.Contains(t, ask(), origin+"the cluster\n")
	require.Equal(t, 1, gets)
	require.NotContains(t, ask("--policy", "proportion"), "policy: ")
	require.Equal(t, 1, gets, "the ConfigMap is not read if a policy is named")
	forbidden = true
	told := ask()
	require.NotContains(t, told, origin)
	require.Contains(t, told, "the configuration of Volcano's scheduler may not be read")
	require.NotContains(t, ask("--policy", "proportion"), "may not be read")
}
