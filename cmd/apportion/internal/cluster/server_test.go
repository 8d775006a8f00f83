//go:build cluster

package cluster_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/test/apiserver"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
)

// apiServer is a real API server with the objects of these tests.
type apiServer struct{ *apiserver.Server }

func startServer(t *testing.T) *apiServer {
	t.Helper()
	return &apiServer{apiserver.Start(t)}
}

func (s *apiServer) flags(t *testing.T, arguments ...string) *cluster.Flags {
	t.Helper()
	f := &cluster.Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(set)
	require.NoError(t, set.Parse(append([]string{"--cluster", "--kubeconfig", s.Kubeconfig(t)}, arguments...)))
	return f
}

// define makes the kinds of Volcano, with any fields.
func (s *apiServer) define(t *testing.T) {
	t.Helper()
	s.defineKind(t, "queues", "Queue", "Cluster")
	s.defineKind(t, "podgroups", "PodGroup", "Namespaced")
}

func (s *apiServer) defineKind(t *testing.T, plural, kind, scope string) {
	t.Helper()
	s.Send(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".scheduling.volcano.sh"},
		"spec": map[string]any{
			"group": "scheduling.volcano.sh", "scope": scope, "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1beta1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	})
	require.Eventually(t, func() bool {
		code, _, err := s.Try(t.Context(), http.MethodGet, "/apis/scheduling.volcano.sh/v1beta1/"+plural, nil)
		return err == nil && code == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
}

// fill writes the objects of the sample cluster, and their status.
func (s *apiServer) fill(t *testing.T) {
	t.Helper()
	directory := filepath.Join("..", "..", "..", "..", "examples", "clusters", "research")
	namespaces := map[string]bool{"default": true, "kube-system": true}
	for _, list := range []struct{ file, path, plural string }{
		{"priorityclasses.yaml", "/apis/scheduling.k8s.io/v1", "priorityclasses"},
		{"queues.yaml", "/apis/scheduling.volcano.sh/v1beta1", "queues"},
		{"podgroups.yaml", "/apis/scheduling.volcano.sh/v1beta1", "podgroups"},
		{"nodes.yaml", "/api/v1", "nodes"},
		{"pods.yaml", "/api/v1", "pods"},
	} {
		data, err := os.ReadFile(filepath.Join(directory, list.file))
		require.NoError(t, err)
		var read struct{ Items []map[string]any }
		require.NoError(t, yaml.Unmarshal(data, &read))
		for _, object := range read.Items {
			metadata, ok := object["metadata"].(map[string]any)
			require.True(t, ok)
			for _, key := range []string{"resourceVersion", "uid", "creationTimestamp", "ownerReferences"} {
				delete(metadata, key)
			}
			if strings.HasPrefix(fmt.Sprint(metadata["name"]), "system-") && list.plural == "priorityclasses" {
				continue // The API server makes these by itself.
			}
			path := list.path
			if namespace, ok := metadata["namespace"].(string); ok {
				if !namespaces[namespace] {
					namespaces[namespace] = true
					s.Send(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace}})
				}
				path += "/namespaces/" + namespace
			}
			s.Send(t, http.MethodPost, path+"/"+list.plural, object)
			if status := object["status"]; status != nil {
				s.Send(t, http.MethodPatch, path+"/"+list.plural+"/"+fmt.Sprint(metadata["name"])+"/status", map[string]any{"status": status})
			}
		}
	}
}

func TestARealAPIServerIsReadInPagesAsInOnePiece(t *testing.T) {
	s := startServer(t)
	_, err := s.flags(t).Read(t.Context())
	require.ErrorContains(t, err, "is Volcano installed?")
	s.define(t)
	s.fill(t)

	read := func(arguments ...string) *volcano.Cluster {
		got, err := s.flags(t, arguments...).Read(t.Context())
		require.NoError(t, err)
		require.Empty(t, got.Unread)
		c, err := volcano.ReadManifests(got.Sources)
		require.NoError(t, err)
		return c
	}
	whole := read("--chunk-size", "0")
	require.Len(t, whole.Snapshot.GetNodes(), 16)
	require.True(t, proto.Equal(whole.Snapshot, read("--chunk-size", "7").Snapshot))
	require.True(t, proto.Equal(whole.Snapshot, read().Snapshot))

	t.Run("the program says why a job waits", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "kubectl-apportion")
		built, err := exec.Command("go", "build", "-o", program, "github.com/apportion/apportion/cmd/apportion").CombinedOutput()
		require.NoError(t, err, "%s", built)
		said, err := exec.Command(program, "explain", "pretrain-7b", "-n", "language", "--kubeconfig", s.Kubeconfig(t)).Output()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 2, exit.ExitCode(), "%s", exit.Stderr)
		require.Contains(t, string(said), "language/pretrain-7b waits")
	})

	t.Run("a user who may read one namespace", func(t *testing.T) {
		rule := func(groups, kinds []string) map[string]any {
			return map[string]any{"apiGroups": groups, "resources": kinds, "verbs": []string{"list"}}
		}
		subjects := []any{map[string]any{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}}
		const group = "/apis/rbac.authorization.k8s.io/v1"
		s.Send(t, http.MethodPost, group+"/clusterroles", map[string]any{
			"metadata": map[string]any{"name": "queues"}, "rules": []any{rule([]string{"scheduling.volcano.sh"}, []string{"queues"})},
		})
		s.Send(t, http.MethodPost, group+"/clusterrolebindings", map[string]any{
			"metadata": map[string]any{"name": "queues"}, "subjects": subjects,
			"roleRef": map[string]any{"kind": "ClusterRole", "name": "queues", "apiGroup": "rbac.authorization.k8s.io"},
		})
		s.Send(t, http.MethodPost, group+"/namespaces/language/roles", map[string]any{
			"metadata": map[string]any{"name": "jobs"}, "rules": []any{rule([]string{"", "scheduling.volcano.sh"}, []string{"pods", "podgroups"})},
		})
		s.Send(t, http.MethodPost, group+"/namespaces/language/rolebindings", map[string]any{
			"metadata": map[string]any{"name": "jobs"}, "subjects": subjects,
			"roleRef": map[string]any{"kind": "Role", "name": "jobs", "apiGroup": "rbac.authorization.k8s.io"},
		})
		got, err := s.flags(t, "--as", "ann").Read(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Unread, 8, "four lists, and what is not judged without namespaces, budgets, quotas and volumes: %v", got.Unread)
	})

	t.Run("an API server that comes back", func(t *testing.T) {
		apiserver.Kill(t, s.Process)
		_, err := s.flags(t).Read(t.Context())
		require.ErrorContains(t, err, "connection refused")
		s.BeginServer(t)
		require.True(t, proto.Equal(whole.Snapshot, read().Snapshot))
	})

	t.Run("an API server and etcd that come back under --watch", func(t *testing.T) {
		said := s.watch(t, "explain", "pretrain-7b", "-n", "language", "--watch", "--interval", "1s")
		said.until("language/pretrain-7b waits")
		apiserver.Kill(t, s.Process)
		apiserver.Kill(t, s.EtcdProcess)
		said.until("connection refused")
		s.BeginEtcd()
		s.BeginServer(t)
		require.True(t, proto.Equal(whole.Snapshot, read().Snapshot))
		s.Send(t, http.MethodPatch, podGroups+"/language/podgroups/pretrain-7b", map[string]any{"spec": map[string]any{"minMember": 1}})
		said.until("language/pretrain-7b")
	})
}

const podGroups = "/apis/scheduling.volcano.sh/v1beta1/namespaces"

// output is the output of a program.
type output struct {
	t     *testing.T
	lines chan string
}

// until reads until a line has a text.
func (o output) until(text string) {
	o.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		select {
		case line, ok := <-o.lines:
			require.True(o.t, ok, "the program ended")
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			require.Fail(o.t, "nothing of it was printed", text)
		}
	}
}

// watch runs the program on the server until the test ends.
func (s *apiServer) watch(t *testing.T, arguments ...string) output {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubectl-apportion")
	built, err := exec.Command("go", "build", "-o", program, "github.com/apportion/apportion/cmd/apportion").CombinedOutput()
	require.NoError(t, err, "%s", built)
	c := exec.Command(program, append(arguments, "--kubeconfig", s.Kubeconfig(t))...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	from, to := io.Pipe()
	c.Stdout, c.Stderr = to, to
	require.NoError(t, c.Start())
	o := output{t, make(chan string, 10_000)}
	go func() {
		defer close(o.lines)
		for lines := bufio.NewScanner(from); lines.Scan(); {
			o.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = to.Close()
		_ = c.Wait()
	})
	return o
}
