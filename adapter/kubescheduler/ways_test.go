//go:build cluster

package kubescheduler_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"

	"github.com/apportion/apportion/adapter/test/apiserver"
	"github.com/apportion/apportion/internal/test/certtest"
)

// podGroupDefinition is the definition of PodGroup as scheduler-plugins serves it, with the fields that a gang depends on.
const podGroupDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}
spec:
  group: scheduling.x-k8s.io
  names: {kind: PodGroup, listKind: PodGroupList, plural: podgroups, singular: podgroup, shortNames: [pg, pgs]}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {minMember: {type: integer, format: int32, minimum: 1}, scheduleTimeoutSeconds: {type: integer, format: int32}}},
      status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

func (c *realCluster) write(name, text string) string {
	c.t.Helper()
	file := filepath.Join(c.Directory, name)
	require.NoError(c.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// comes waits until so many pods of each queue are bound. If they never are, it tells how things stand.
func (c *realCluster) comes(want map[string]int, why ...any) {
	c.t.Helper()
	got := map[string]int{}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = c.bound("apportion.dev/queue"); maps.Equal(want, got) {
			return
		}
	}
	pods := c.pods()
	for i := range pods {
		p := &pods[i]
		c.t.Log(p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Status.NominatedNodeName, p.Status.Conditions)
	}
	require.Equal(c.t, want, got, why...)
}

// rests requires that so many pods of each queue are bound and no more for a while.
func (c *realCluster) rests(want map[string]int, why string) {
	c.t.Helper()
	c.comes(want, why)
	time.Sleep(3 * time.Second)
	require.Equal(c.t, want, c.bound("apportion.dev/queue"), why)
}

func TestRealSchedulerStartsThePodsOfAPodGroup(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(2)
	c.apply(c.write("definition.yaml", podGroupDefinition))
	clients, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	groups := clients.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}).Namespace("default")
	require.Eventually(t, func() bool {
		_, err := groups.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	c.schedule(map[string]any{"queues": c.queues(map[string]int{"a": 1})})

	for i := range 3 {
		c.create(podOf(fmt.Sprintf("g-%d", i), "a", "1", gangLabel, "g"))
	}
	c.rests(map[string]int{}, "a gang without a PodGroup waits")
	c.saysOf("g-0", "gang default/g is not defined: there is no Workload or PodGroup of this name")

	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "g"},
		"spec": map[string]any{"minMember": int64(4)},
	}}
	group, err = groups.Create(t.Context(), group, metav1.CreateOptions{})
	require.NoError(t, err)
	c.rests(map[string]int{}, "three of four do not start")
	partly := c.watchGangs(map[string]int{"g": 4})
	c.create(podOf("g-3", "a", "1", gangLabel, "g"))
	c.comes(map[string]int{"a": 4})

	for i := range 2 {
		c.create(podOf(fmt.Sprintf("h-%d", i), "a", "1", gangLabel, "h"))
	}
	group.SetName("h")
	group.SetResourceVersion("")
	require.NoError(t, unstructured.SetNestedField(group.Object, int64(3), "spec", "minMember"))
	group, err = groups.Create(t.Context(), group, metav1.CreateOptions{})
	require.NoError(t, err)
	c.rests(map[string]int{"a": 4}, "two of three do not start")
	require.NoError(t, unstructured.SetNestedField(group.Object, int64(2), "spec", "minMember"))
	_, err = groups.Update(t.Context(), group, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.comes(map[string]int{"a": 6}, "the minimum was lowered")
	require.Empty(t, partly())
}

// saysOf waits until a pod's condition PodScheduled has a text.
func (c *realCluster) saysOf(name, text string) {
	c.t.Helper()
	said := ""
	for end := time.Now().Add(30 * time.Second); !strings.Contains(said, text) && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		p, err := c.clients.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				said = condition.Message
			}
		}
	}
	require.Contains(c.t, said, text, name)
	c.t.Log(name, said)
}

func TestRealSchedulerEvictsWithinDisruptionBudgets(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(2)
	var pods []*corev1.Pod
	for i := range 16 {
		pods = append(pods, podOf(fmt.Sprintf("a-%d", i), "a", "1", "kept", fmt.Sprint(i%2 == 0)))
	}
	budgets := c.clients.PolicyV1().PodDisruptionBudgets("default")
	least := intstr.FromInt32(8)
	budget, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kept": "true"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	// No controller computes the status of a budget here.
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: 8, DesiredHealthy: 8, ExpectedPods: 8}
	_, err = budgets.UpdateStatus(t.Context(), budget, metav1.UpdateOptions{})
	require.NoError(t, err)

	c.schedule(map[string]any{"queues": c.queues(map[string]int{"a": 1, "b": 1})})
	c.create(pods...)
	c.comes(map[string]int{"a": 16})
	partly := c.watchGangs(map[string]int{"claim": 8})
	c.create(gang("claim", "b", "1", 8)...)
	c.rests(map[string]int{"a": 8, "b": 8}, "no more pods are evicted than needed")
	require.Empty(t, partly())
	require.Equal(t, 8, c.bound("kept")["true"], "the pods of the budget run")
}

func TestRealSchedulerSchedulesWithoutDecisionsWhenItIsOpen(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(2)
	address := "127.0.0.1:" + apiserver.Port(t)
	c.schedule(map[string]any{
		"queues": c.queues(map[string]int{"a": 1, "b": 1}), "server": address, "plaintext": true, "fallback": "open", "deadline": "2s", "permitTimeout": "3s",
	})
	partly := c.watchGangs(map[string]int{"whole": 4, "wide": 12})
	c.create(gang("whole", "a", "1", 4)...)
	c.create(podOf("one", "b", "2"))
	c.comes(map[string]int{"a": 4, "b": 1}, "no service was ever reached")
	c.create(gang("wide", "b", "1", 12)...)
	c.rests(map[string]int{"a": 4, "b": 1}, "twelve do not fit, and no part of them starts")

	c.serve(address)
	c.create(gang("next", "b", "1", 2)...)
	c.comes(map[string]int{"a": 4, "b": 3}, "decisions are made again")
	require.Empty(t, partly())
	c.saysOf("wide-0", "default/wide waits")
}

func TestRealSchedulerAsksAServiceOverTLSWithAToken(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(1)
	authority := certtest.New(t)
	certificate, key, ca := certtest.Files(t, c.Directory, authority.Issue(t), authority)
	token, hash := c.token()
	address := "localhost:" + apiserver.Port(t)
	apiserver.Begin(t, c.Directory, program(t, "APPORTION"), "serve", "--config", c.write("apportion.yaml", fmt.Sprintf(`
listen: [%q]
policies: {cluster: "preset:fair"}
tls: {certificate: %q, key: %q}
identities: [{name: scheduler, tokens: [%q]}]
`, address, certificate, key, hash)))
	arguments := map[string]any{
		"queues": c.queues(map[string]int{"a": 1}), "server": address, "policyName": "cluster", "ca": ca,
		"tokenFile": c.write("token", "wrong"), "fallback": "closed", "deadline": "5s",
	}
	c.schedule(arguments)
	c.create(podOf("one", "a", "1"))
	c.saysOf("one", "Apportion does not answer")
	require.Empty(t, c.bound("apportion.dev/queue"))
	c.write("token", token)
	c.comes(map[string]int{"a": 1}, "the token was replaced")
}

// token returns a token and the hash by which a service knows it.
func (c *realCluster) token() (token, hash string) {
	c.t.Helper()
	out, err := c.output(program(c.t, "APPORTION"), "config", "token")
	require.NoError(c.t, err, out)
	for line := range strings.Lines(out) {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "token"):
			token = fields[1]
		case strings.HasPrefix(line, "hash"):
			hash = fields[1]
		}
	}
	return token, hash
}

// TestRealSchedulerRunsByItsManifests applies every manifest, and runs the scheduler with the configuration of the manifests as the service
// account that they make. A ConfigMap is mounted as the kubelet does: a link to a directory, which is replaced when the ConfigMap changes.
func TestRealSchedulerRunsByItsManifests(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(1)
	c.apply("manifests/rbac.yaml")
	for _, name := range []string{"apportion-scheduler", "apportion-queues"} {
		_, err := c.clients.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c.apply("manifests/deployment.yaml")

	queues, err := os.ReadFile("manifests/queues.yaml")
	require.NoError(t, err)
	mounted := filepath.Join(c.Directory, "apportion")
	mount := func(name, text string) {
		t.Helper()
		data := filepath.Join(mounted, name)
		require.NoError(t, os.MkdirAll(data, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(data, "queues.yaml"), []byte(text), 0o600))
		require.NoError(t, os.Symlink(name, filepath.Join(mounted, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(mounted, "..tmp"), filepath.Join(mounted, "..data")))
	}
	mount("..1", string(queues))
	require.NoError(t, os.Symlink("..data/queues.yaml", filepath.Join(mounted, "queues.yaml")))
	configuration, err := os.ReadFile("manifests/configuration.yaml")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(configuration), "/etc/apportion", mounted)
	require.NotEqual(t, string(configuration), text)
	text += "clientConnection: {kubeconfig: " + c.KubeconfigOf(t, c.accountToken("apportion-scheduler")) + "}\n"
	c.scheduler = apiserver.Begin(t, c.Directory, program(t, "PLUGIN_KUBE_SCHEDULER"), "--config="+c.write("configuration.yaml", text), "--secure-port=0")

	c.apply("manifests/gang.yaml")
	c.comes(map[string]int{"research": 2})
	late := podOf("late", "late", "1")
	fill := podOf("fill", "research", "6")
	late.Spec.SchedulerName, fill.Spec.SchedulerName = "apportion-scheduler", "apportion-scheduler"
	c.create(late, fill)
	c.comes(map[string]int{"research": 3})
	c.saysOf("late", `queue "late" does not exist; there are product, research`)

	mount("..2", string(queues)+"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: late}\nspec: {weight: 3, reclaimable: true}\n")
	c.comes(map[string]int{"research": 2, "late": 1}, "the queue came with the ConfigMap, and reclaimed its room")
	require.NotContains(t, c.said(), "forbidden", "the account may do what the scheduler does")
}
