//go:build cluster

package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/apportion/apportion/adapter/test/apiserver"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// proxy stands between a follower and the API server, and can be closed.
type proxy struct {
	to       string
	listener net.Listener

	mutex  sync.Mutex
	closed bool
	open   map[net.Conn]bool
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{to: strings.TrimPrefix(to, "https://"), listener: l, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close(); p.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mutex.Lock()
	closed := p.closed
	p.open[c] = true
	p.mutex.Unlock()
	if closed {
		return
	}
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, c)
		_ = to.Close()
	}()
	_, _ = io.Copy(c, to)
}

// set closes the proxy, and what goes through it, or opens it.
func (p *proxy) set(closed bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = closed
	if closed {
		for c := range p.open {
			_ = c.Close()
		}
		p.open = map[net.Conn]bool{}
	}
}

// followed is a service that follows an API server.
type followed struct {
	*servicetest.Replica

	t        *testing.T
	server   *apiServer
	proxy    *proxy
	follower *cluster.Follower
}

func follow(t *testing.T, s *apiServer) *followed {
	t.Helper()
	f := &followed{Replica: servicetest.Start(t, service.Options{}), t: t, server: s, proxy: startProxy(t, s.Address)}
	file := s.Kubeconfig(t)
	config, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	config.Clusters["k"].Server = "https://" + f.proxy.listener.Addr().String()
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	f.follower, err = cluster.NewFollower(f.Server, cluster.FollowOptions{
		Name: "cluster", Kubeconfig: file, Interval: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.follower.Collectors()...)
	_, err = registry.Gather()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.follower.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return f
}

// snapshot returns the followed snapshot, nil if there is none yet.
func (f *followed) snapshot() (*apportionv1.Snapshot, *apportionv1.SnapshotView) {
	got, err := f.Named(f.t.Context(), "cluster")
	if err != nil {
		return nil, nil
	}
	return got.Snapshot, got.View
}

// same requires that what is followed becomes what the lists of the API server say now, and that its answers are those about the lists.
func (f *followed) same() {
	f.t.Helper()
	got, err := f.server.flags(f.t).Read(f.t.Context())
	require.NoError(f.t, err)
	read, err := volcano.ReadManifests(got.Sources)
	require.NoError(f.t, err)
	began := time.Now()
	for {
		snapshot, view := f.snapshot()
		read.Snapshot.AsOf = snapshot.GetAsOf()
		if view.GetComplete() && proto.Equal(read.Snapshot, snapshot) {
			break
		}
		require.Less(f.t, time.Since(began), 90*time.Second, "%v\nwanted %v\ngot    %v", view, read.Snapshot, snapshot)
		time.Sleep(20 * time.Millisecond)
	}
	f.t.Logf("the same after %v", time.Since(began).Round(time.Millisecond))
	policy, ok := client.Preset("proportion")
	require.True(f.t, ok)
	ask := func(in *apportionv1.Input) *apportionv1.ExplainResponse {
		in.Rule = &apportionv1.Input_Policy{Policy: policy}
		answer, err := f.Explain(f.t.Context(), &apportionv1.ExplainRequest{Input: in})
		require.NoError(f.t, err)
		return answer
	}
	named := ask(&apportionv1.Input{Source: &apportionv1.Input_SnapshotName{SnapshotName: "cluster"}})
	inline := ask(&apportionv1.Input{Source: &apportionv1.Input_Snapshot{Snapshot: read.Snapshot}})
	require.True(f.t, proto.Equal(inline.GetExplain(), named.GetExplain()))
	require.Less(f.t, time.Duration(named.GetBasis().GetView().GetAge()), 30*time.Second)
}

// old waits until what is followed is known to be older than some time, and requires that it is still answered from.
func (f *followed) old(age time.Duration) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		snapshot, view := f.snapshot()
		return snapshot != nil && !view.GetComplete() && time.Duration(view.GetAge()) > age
	}, 2*time.Minute, 100*time.Millisecond)
}

// compact makes etcd forget all versions but the newest.
func (s *apiServer) compact(t *testing.T) {
	t.Helper()
	post := func(path string, body any) []byte {
		data, err := json.Marshal(body)
		require.NoError(t, err)
		response, err := http.Post(s.Etcd+path, "application/json", bytes.NewReader(data))
		require.NoError(t, err)
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s", got)
		return got
	}
	var read struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	require.NoError(t, json.Unmarshal(post("/v3/kv/range", map[string]string{"key": "AA=="}), &read))
	post("/v3/kv/compaction", map[string]any{"revision": read.Header.Revision, "physical": true})
}

const queuePath = "/apis/scheduling.volcano.sh/v1beta1/queues"

// change changes one object of each kind.
func (f *followed) change(round string) {
	s, t := f.server, f.t
	t.Helper()
	s.Send(t, http.MethodPost, queuePath, map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": "q-" + round},
		"spec": map[string]any{"weight": 3, "capability": map[string]any{"cpu": "12"}},
	})
	s.Send(t, http.MethodPatch, queuePath+"/q-"+round+"/status", map[string]any{"status": map[string]any{"state": "Open"}})
	s.Send(t, http.MethodPost, podGroups+"/language/podgroups", map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"name": "job-" + round},
		"spec": map[string]any{"minMember": 2, "queue": "q-" + round},
	})
	for _, pod := range []string{"a", "b"} {
		asked := map[string]any{"cpu": "2", "example.org/" + round: "1"}
		s.Send(t, http.MethodPost, "/api/v1/namespaces/language/pods", map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": pod + "-" + round, "annotations": map[string]any{"scheduling.k8s.io/group-name": "job-" + round}},
			"spec": map[string]any{"schedulerName": "volcano", "containers": []any{map[string]any{
				"name": "c", "image": "i", "resources": map[string]any{"requests": asked, "limits": asked},
			}}},
		})
	}
	s.Send(t, http.MethodPatch, "/api/v1/namespaces/language/pods/a-"+round+"/status", map[string]any{"status": map[string]any{"phase": "Failed"}})
	s.Send(t, http.MethodPost, "/api/v1/nodes", map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n-" + round, "labels": map[string]any{"zone": round}},
	})
	s.Send(t, http.MethodPatch, "/api/v1/nodes/n-"+round+"/status", map[string]any{
		"status": map[string]any{"allocatable": map[string]any{"cpu": "8", "memory": "16Gi"}},
	})
}

// undo deletes what change made.
func (f *followed) undo(round string) {
	f.t.Helper()
	for _, path := range []string{
		"/api/v1/namespaces/language/pods/a-" + round + "?gracePeriodSeconds=0", podGroups + "/language/podgroups/job-" + round,
		queuePath + "/q-" + round, "/api/v1/nodes/n-" + round,
	} {
		f.server.Send(f.t, http.MethodDelete, path, nil)
	}
}

func TestARealAPIServerIsFollowed(t *testing.T) {
	s := startServer(t)
	f := follow(t, s)
	require.Eventually(t, f.follower.Ready, time.Minute, 50*time.Millisecond, "the API server has said that there is no Volcano")
	_, err := f.Named(t.Context(), "cluster")
	require.ErrorContains(t, err, "is Volcano installed?")

	s.define(t)
	s.fill(t)
	t.Log("kinds that come later")
	f.same()
	f.change("one")
	f.same()
	f.undo("one")
	f.same()

	t.Run("the API server is killed", func(t *testing.T) {
		apiserver.Kill(t, s.Process)
		f.old(5 * time.Second)
		s.BeginServer(t)
		f.change("two")
		f.same()
	})
	t.Run("etcd is killed", func(t *testing.T) {
		apiserver.Kill(t, s.EtcdProcess)
		time.Sleep(5 * time.Second)
		_, view := f.snapshot()
		t.Logf("the API server without etcd: complete %v, age %v", view.GetComplete(), time.Duration(view.GetAge()))
		s.BeginEtcd()
		require.Eventually(t, func() bool {
			code, _, err := s.Try(t.Context(), http.MethodGet, "/readyz", nil)
			return err == nil && code == http.StatusOK
		}, 2*time.Minute, 200*time.Millisecond)
		f.change("three")
		f.same()
	})
	t.Run("the API server and etcd are killed", func(t *testing.T) {
		apiserver.Kill(t, s.Process)
		apiserver.Kill(t, s.EtcdProcess)
		f.old(5 * time.Second)
		s.BeginEtcd()
		s.BeginServer(t)
		f.change("four")
		f.undo("two")
		f.same()
	})
	t.Run("what was missed has expired", func(t *testing.T) {
		f.proxy.set(true)
		f.old(time.Second)
		f.change("five")
		f.undo("four")
		s.compact(t)
		apiserver.Kill(t, s.Process)
		s.BeginServer(t) // Its cache of changes begins anew, after what was missed.
		f.proxy.set(false)
		f.same()
	})
	t.Run("a kind is taken away and comes back", func(t *testing.T) {
		const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"
		s.Send(t, http.MethodDelete, definition, nil)
		require.Eventually(t, func() bool {
			_, view := f.snapshot()
			return !view.GetComplete()
		}, 90*time.Second, 100*time.Millisecond)
		s.defineKind(t, "podgroups", "PodGroup", "Namespaced")
		s.Send(t, http.MethodPost, podGroups+"/language/podgroups", map[string]any{
			"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"name": "again"},
			"spec": map[string]any{"minMember": 1},
		})
		f.same()
	})
}
