//go:build cluster

package kubescheduler_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"
)

const token = "administrator"

// realCluster is a real API server with etcd and, when started, a real scheduler. Its nodes are objects, and a stand-in for their kubelets
// marks bound pods as running.
type realCluster struct {
	t                       *testing.T
	directory, address      string
	etcd, server, scheduler *exec.Cmd
	serverArguments         []string
	config                  *rest.Config
	clients                 kubernetes.Interface
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

func program(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	require.NotEmpty(t, name, "make test-schedulers builds it")
	return name
}

func (c *realCluster) begin(name string, arguments ...string) *exec.Cmd {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.directory, filepath.Base(name)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	process := exec.Command(name, arguments...)
	process.Stdout, process.Stderr, process.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(c.t, process.Start())
	c.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		_ = log.Close()
		if c.t.Failed() && os.Getenv("KEEP_LOGS") != "" {
			data, _ := os.ReadFile(log.Name())
			_ = os.WriteFile(filepath.Join(os.Getenv("KEEP_LOGS"), c.t.Name()+"-"+filepath.Base(name)+".log"), data, 0o600)
		}
	})
	return process
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

func (c *realCluster) kill(process *exec.Cmd) {
	c.t.Helper()
	require.NoError(c.t, process.Process.Kill())
	_ = process.Wait()
}

func startCluster(t *testing.T) *realCluster {
	t.Helper()
	c := &realCluster{t: t, directory: t.TempDir()}
	etcd, peer, secure := freePort(t), freePort(t), freePort(t)
	c.etcd = c.begin("etcd", "--data-dir", filepath.Join(c.directory, "etcd"), "--listen-client-urls", "http://127.0.0.1:"+etcd,
		"--advertise-client-urls", "http://127.0.0.1:"+etcd, "--listen-peer-urls", "http://127.0.0.1:"+peer, "--unsafe-no-fsync")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keyFile, tokens := filepath.Join(c.directory, "key.pem"), filepath.Join(c.directory, "tokens")
	encoded := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	require.NoError(t, os.WriteFile(keyFile, encoded, 0o600))
	require.NoError(t, os.WriteFile(tokens, []byte(token+",admin,1,system:masters\n"), 0o600))
	c.address = "https://127.0.0.1:" + secure
	c.serverArguments = []string{
		"--etcd-servers=http://127.0.0.1:" + etcd, "--service-account-issuer=https://x", "--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile, "--cert-dir=" + filepath.Join(c.directory, "certs"), "--secure-port=" + secure,
		"--bind-address=127.0.0.1", "--token-auth-file=" + tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
		"--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha1=true",
		// Without controllers no service account is made, and no node loses the taint of a new one.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
	}
	c.config = &rest.Config{
		Host: c.address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 5000, Burst: 5000, Timeout: 20 * time.Second,
	}
	c.clients, err = kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	c.beginServer()
	return c
}

func (c *realCluster) beginServer() {
	c.t.Helper()
	c.server = c.begin(program(c.t, "KUBE_APISERVER"), c.serverArguments...)
	require.Eventually(c.t, func() bool {
		_, err := c.clients.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(c.t.Context())
		return err == nil
	}, 2*time.Minute, 100*time.Millisecond)
}

// kubeconfig writes the file by which a program reaches the API server as the user of a token.
func (c *realCluster) kubeconfig(token string) string {
	config := api.NewConfig()
	config.Clusters["k"] = &api.Cluster{Server: c.address, InsecureSkipTLSVerify: true}
	config.AuthInfos["u"] = &api.AuthInfo{Token: token}
	config.Contexts["c"] = &api.Context{Cluster: "k", AuthInfo: "u"}
	config.CurrentContext = "c"
	file := filepath.Join(c.directory, "kubeconfig")
	require.NoError(c.t, clientcmd.WriteToFile(*config, file))
	return file
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
	data, err := os.ReadFile(filepath.Join(c.directory, filepath.Base(program(c.t, "PLUGIN_KUBE_SCHEDULER"))+".log"))
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
		"clientConnection": map[string]any{"kubeconfig": c.kubeconfig(token), "qps": 5000, "burst": 5000},
		"leaderElection":   map[string]any{"leaderElect": false}, "profiles": []any{profile},
	})
	require.NoError(c.t, err)
	file := filepath.Join(c.directory, "scheduler.json")
	require.NoError(c.t, os.WriteFile(file, config, 0o600))
	c.scheduler = c.begin(program(c.t, "PLUGIN_KUBE_SCHEDULER"), "--config="+file, "--secure-port=0")
}

// queues writes the file of queues, by name and weight.
func (c *realCluster) queues(weights map[string]int) string {
	text := ""
	for name, weight := range weights {
		text += fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {weight: %d, reclaimable: true}\n---\n", name, weight)
	}
	file := filepath.Join(c.directory, "queues.yaml")
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
