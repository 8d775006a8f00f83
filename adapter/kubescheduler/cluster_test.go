//go:build cluster

package kubescheduler_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"

	"github.com/apportion/apportion/adapter/test/apiserver"
)

// realCluster is a real API server with etcd and, when started, a real scheduler. Its nodes are objects, and a stand-in for their kubelets
// marks bound pods as running.
type realCluster struct {
	*apiserver.Server
	t         *testing.T
	scheduler *exec.Cmd
	config    *rest.Config
	clients   kubernetes.Interface
}

func program(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	require.NotEmpty(t, name, "make test-schedulers builds it")
	return name
}

func (c *realCluster) output(name string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(c.t.Context(), name, arguments...).CombinedOutput()
	return string(out), err
}

// accountToken returns a token of a service account of kube-system.
func (c *realCluster) accountToken(name string) string {
	c.t.Helper()
	request, err := c.clients.CoreV1().ServiceAccounts("kube-system").CreateToken(c.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	return request.Status.Token
}

func startCluster(t *testing.T) *realCluster {
	t.Helper()
	server := apiserver.Start(t, "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha1=true")
	c := &realCluster{Server: server, t: t, config: &rest.Config{
		Host: server.Address, BearerToken: apiserver.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS: 5000, Burst: 5000, Timeout: 20 * time.Second,
	}}
	var err error
	c.clients, err = kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	return c
}

// apply creates the objects of a file of manifests.
func (c *realCluster) apply(file string) {
	c.t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(c.t, err)
	groups, err := restmapper.GetAPIGroupResources(c.clients.Discovery())
	require.NoError(c.t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	clients, err := dynamic.NewForConfig(c.config)
	require.NoError(c.t, err)
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(c.t, err)
		object := &unstructured.Unstructured{}
		require.NoError(c.t, yaml.Unmarshal(document, &object.Object))
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(c.t, err, "%s", document)
		var resource dynamic.ResourceInterface = clients.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = clients.Resource(mapping.Resource).Namespace(cmp.Or(object.GetNamespace(), "default"))
		}
		_, err = resource.Create(c.t.Context(), object, metav1.CreateOptions{})
		require.NoError(c.t, err, "%s", document)
	}
}

// said returns what the scheduler wrote to its log.
func (c *realCluster) said() string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.Directory, filepath.Base(program(c.t, "PLUGIN_KUBE_SCHEDULER"))+".log"))
	require.NoError(c.t, err)
	return string(data)
}

// schedule starts the scheduler with the plugin's arguments, without the plugin for nil.
func (c *realCluster) schedule(arguments map[string]any) {
	c.t.Helper()
	profile := map[string]any{"schedulerName": "default-scheduler"}
	if arguments != nil {
		only := func() map[string]any { return map[string]any{"enabled": []any{map[string]any{"name": "Apportion"}}} }
		sorted := only()
		sorted["disabled"] = []any{map[string]any{"name": "*"}}
		profile["plugins"] = map[string]any{"multiPoint": only(), "postFilter": only(), "queueSort": sorted}
		profile["pluginConfig"] = []any{map[string]any{"name": "Apportion", "args": arguments}}
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": c.Kubeconfig(c.t), "qps": 5000, "burst": 5000},
		"leaderElection":   map[string]any{"leaderElect": false}, "profiles": []any{profile},
	})
	require.NoError(c.t, err)
	file := filepath.Join(c.Directory, "scheduler.json")
	require.NoError(c.t, os.WriteFile(file, config, 0o600))
	c.scheduler = apiserver.Begin(c.t, c.Directory, program(c.t, "PLUGIN_KUBE_SCHEDULER"), "--config="+file, "--secure-port=0")
}

// queues writes the file of queues, by name and weight.
func (c *realCluster) queues(weights map[string]int) string {
	text := ""
	for name, weight := range weights {
		text += fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {weight: %d, reclaimable: true}\n---\n", name, weight)
	}
	file := filepath.Join(c.Directory, "queues.yaml")
	require.NoError(c.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// nodes makes nodes of 8 cores.
func (c *realCluster) nodes(count int) {
	c.t.Helper()
	list := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	workqueue.ParallelizeUntil(c.t.Context(), 16, count, func(i int) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}, Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
		_, err := c.clients.CoreV1().Nodes().Create(c.t.Context(), n, metav1.CreateOptions{})
		if err == nil {
			_, err = c.clients.CoreV1().Nodes().UpdateStatus(c.t.Context(), n, metav1.UpdateOptions{})
		}
		if err != nil {
			c.t.Error(err)
		}
	})
}

// podOf returns a pod of a queue, "" for none, that requests CPUs.
func podOf(name, queue, cpu string, labels ...string) *corev1.Pod {
	grace := int64(0)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
			Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
	}
	if queue != "" {
		p.Labels["apportion.dev/queue"] = queue
	}
	for i := 0; i+1 < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	return p
}

func (c *realCluster) create(pods ...*corev1.Pod) {
	c.t.Helper()
	workqueue.ParallelizeUntil(c.t.Context(), 16, len(pods), func(i int) {
		if _, err := c.clients.CoreV1().Pods("default").Create(c.t.Context(), pods[i], metav1.CreateOptions{}); err != nil {
			c.t.Error(err)
		}
	})
}

// kubelet marks bound pods as running and ready until the test ends.
func (c *realCluster) kubelet() {
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	factory := informers.NewSharedInformerFactory(c.clients, 0)
	run := func(object any) {
		p, ok := object.(*corev1.Pod)
		if !ok || p.Spec.NodeName == "" || p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
			return
		}
		go func() {
			q := p.DeepCopy()
			q.Status.Phase = corev1.PodRunning
			q.Status.Conditions = append(q.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			_, _ = c.clients.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, q, metav1.UpdateOptions{})
		}()
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: run, UpdateFunc: func(_, object any) { run(object) },
	})
	require.NoError(c.t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

// pods lists the pods; nil while the API server does not answer.
func (c *realCluster) pods() []corev1.Pod {
	list, err := c.clients.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// bound counts the bound pods by a label.
func (c *realCluster) bound(label string) map[string]int {
	count := map[string]int{}
	pods := c.pods()
	for i := range pods {
		if p := &pods[i]; p.Spec.NodeName != "" {
			count[p.Labels[label]]++
		}
	}
	return count
}
