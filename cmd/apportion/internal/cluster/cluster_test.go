package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
)

// status writes an error as an API server does.
func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason, message, code)
}

// server answers lists by path; a list has as many pages as there are texts of items.
func server(t *testing.T, lists map[string][]string, other http.HandlerFunc) *cluster.Flags {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages, ok := lists[r.URL.Path]
		if !ok {
			other(w, r)
			return
		}
		page, next := 0, ""
		if _, err := fmt.Sscan(r.URL.Query().Get("continue"), &page); err != nil {
			page = 0
		}
		if r.URL.Query().Get("limit") == "" {
			pages = []string{strings.Join(pages, ",")}
		} else if page+1 < len(pages) {
			next = fmt.Sprint(page + 1)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, "Node", next, pages[page])
	}))
	t.Cleanup(s.Close)
	return flags(t, s.URL)
}

func flags(t *testing.T, address string) *cluster.Flags {
	t.Helper()
	return flagsOf(t, kubeconfig(t, map[string]any{"server": address}, map[string]any{}))
}

// kubeconfig writes a file that names an API server and a user.
func kubeconfig(t *testing.T, server, user map[string]any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "k", "cluster": server}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "k", "namespace": "team", "user": "u"}}},
		"users":    []any{map[string]any{"name": "u", "user": user}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, config, 0o600))
	return file
}

func flagsOf(t *testing.T, file string) *cluster.Flags {
	t.Helper()
	f := &cluster.Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(set)
	require.NoError(t, set.Parse([]string{"--cluster", "--kubeconfig", file}))
	require.True(t, f.Named())
	return f
}

const (
	queues    = "/apis/scheduling.volcano.sh/v1beta1/queues"
	podgroups = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
	priority  = "/apis/scheduling.k8s.io/v1/priorityclasses"
)

func item(kind, version, name string) string {
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":%q,"namespace":"team"}}`, kind, version, name)
}

func node(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"status":{"allocatable":{"cpu":"2"}}}`, name)
}

// judging are the lists, here empty, that constraints of pods are judged by.
var judging = map[string][]string{
	"/api/v1/namespaces": {""}, "/api/v1/persistentvolumes": {""}, "/api/v1/persistentvolumeclaims": {""},
	"/apis/storage.k8s.io/v1/storageclasses": {""}, "/apis/storage.k8s.io/v1/csidrivers": {""},
	"/apis/storage.k8s.io/v1/csinodes": {""}, "/apis/storage.k8s.io/v1/csistoragecapacities": {""},
	"/apis/policy/v1/poddisruptionbudgets": {""}, "/api/v1/resourcequotas": {""},
}

func TestVolumesAndNamespacesOfALiveClusterAreJudged(t *testing.T) {
	const group = `"annotations":{"scheduling.k8s.io/group-name":"g"}`
	pod := func(name, spec string) string {
		return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"team",` + group + `},"spec":{"schedulerName":"volcano",` + spec + `}}`
	}
	f := server(t, map[string][]string{
		queues: {item("Queue", "scheduling.volcano.sh/v1beta1", "default")},
		podgroups: {
			`{"kind":"PodGroup","apiVersion":"scheduling.volcano.sh/v1beta1","metadata":{"name":"g","namespace":"team"},"spec":{"queue":"default"}}`,
		},
		"/api/v1/nodes": {node("a"), node("b")},
		"/api/v1/pods": {
			pod("p", `"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]`),
			pod("q", `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`+
				`{"topologyKey":"zone","labelSelector":{},"namespaceSelector":{"matchLabels":{"tier":"gold"}}}]}}`),
		},
		priority: {""},
		"/api/v1/namespaces": {
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"team","labels":{"tier":"gold"}}}`,
		},
		"/api/v1/persistentvolumeclaims": {
			`{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"other","namespace":"team"},"spec":{}}`,
		},
	}, http.NotFound)
	read, err := f.Read(t.Context())
	require.NoError(t, err)
	require.Empty(t, read.Unread)
	got, err := volcano.ReadManifests(read.Sources)
	require.NoError(t, err)
	require.Empty(t, got.Warnings)
	for _, g := range got.Snapshot.GetJobs()[0].GetGroups() {
		require.Empty(t, g.GetUnjudgedConstraints())
		for _, task := range g.GetTasks() {
			require.Empty(t, task.GetDetail().GetUnjudgedConstraints(), task.GetName())
		}
	}
	require.Equal(t, `the claim "data" does not exist`, got.Snapshot.GetNodeSets()[0].GetName())
	require.Len(t, got.Snapshot.GetPods().GetClasses(), 2)
}

func TestAllPagesOfAllListsAreRead(t *testing.T) {
	f := server(t, map[string][]string{
		queues:          {item("Queue", "scheduling.volcano.sh/v1beta1", "q")},
		podgroups:       {""},
		"/api/v1/nodes": {node("a"), node("b"), node("c")},
		"/api/v1/pods":  {""},
		priority:        {""},
	}, http.NotFound)
	read, err := f.Read(t.Context())
	require.NoError(t, err)
	require.Empty(t, read.Unread)
	got, err := volcano.ReadManifests(read.Sources)
	require.NoError(t, err)
	require.Len(t, got.Snapshot.GetNodes(), 3)
	require.Len(t, got.Snapshot.GetQueues(), 1)
}

func TestWhatMayNotBeReadIsNamed(t *testing.T) {
	f := server(t, map[string][]string{
		queues:                         {item("Queue", "scheduling.volcano.sh/v1beta1", "q")},
		podgroups:                      {""},
		"/api/v1/namespaces/team/pods": {""},
	}, func(w http.ResponseWriter, r *http.Request) {
		status(w, http.StatusForbidden, "Forbidden", "user u may not list "+r.URL.Path)
	})
	read, err := f.Read(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"only the pods of namespace team may be read: others are left out of all sums",
		"nodes may not be read and are left out: user u may not list /api/v1/nodes",
		"priorityclasses may not be read and are left out: user u may not list " + priority,
		"namespaces may not be read, so some affinities to pods in namespaces selected by labels are not judged",
		"csidrivers, csinodes, csistoragecapacities, persistentvolumeclaims and 2 more may not be read, so some volumes of pods are not judged",
		"poddisruptionbudgets may not be read, so some disruption budgets of pods are not judged",
		"resourcequotas may not be read, so some quotas of namespaces are not judged",
	}, read.Unread)
}

func TestAClusterWithoutVolcanoIsAFault(t *testing.T) {
	core := map[string][]string{"/api/v1/nodes": {""}, "/api/v1/pods": {""}, priority: {""}}
	f := server(t, core, func(w http.ResponseWriter, _ *http.Request) {
		status(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	})
	_, err := f.Read(t.Context())
	require.ErrorContains(t, err, "is Volcano installed?")
}

func TestAListWhoseRestHasExpiredIsReadAgain(t *testing.T) {
	var expired atomic.Bool
	lists := map[string][]string{queues: {""}, podgroups: {""}, "/api/v1/pods": {""}, priority: {""}}
	maps.Copy(lists, judging)
	f := server(t, lists, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("continue") != "":
			expired.Store(true)
			status(w, http.StatusGone, "Expired", "the continue parameter is too old")
		case r.URL.Query().Get("limit") != "":
			fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"1"},"items":[%s]}`, node("a"))
		default:
			fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[%s,%s]}`, node("a"), node("b"))
		}
	})
	read, err := f.Read(t.Context())
	require.NoError(t, err)
	require.True(t, expired.Load())
	got, err := volcano.ReadManifests(read.Sources)
	require.NoError(t, err)
	require.Len(t, got.Snapshot.GetNodes(), 2)
}

func TestAServerThatDoesNotAnswerIsAFault(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := flags(t, s.URL).Read(t.Context())
	require.ErrorIs(t, err, cluster.ErrUnavailable)
	require.ErrorContains(t, err, "the API server cannot be reached: dial tcp")
	require.NotContains(t, err.Error(), s.URL)
}

func TestAServerThatFailsIsUnavailable(t *testing.T) {
	list := server(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "etcd is away")
	})
	_, err := list.Read(t.Context())
	require.ErrorIs(t, err, cluster.ErrUnavailable)
	require.ErrorContains(t, err, "etcd is away")
}

func TestTheDeploymentOfTheSchedulerSaysTheRelease(t *testing.T) {
	const configMap = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
	const deployment = "/apis/apps/v1/namespaces/volcano-system/deployments/volcano-scheduler"
	lists := map[string][]string{queues: {""}, podgroups: {""}, "/api/v1/pods": {""}, "/api/v1/nodes": {""}, priority: {""}}
	maps.Copy(lists, judging)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		fault  string
	}{
		"present": {answer: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"Deployment","metadata":{"name":"volcano-scheduler","namespace":"volcano-system"},`+
				`"spec":{"template":{"spec":{"containers":[{"image":"volcanosh/vc-scheduler:v1.16.0"}]}}}}`)
		}, want: "v1.16.0"},
		"absent": {answer: http.NotFound},
		"forbidden": {answer: func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusForbidden, "Forbidden", "user u may not")
		}},
		"a failure": {answer: func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusBadRequest, "BadRequest", "no")
		}, fault: "deployments: no"},
	} {
		t.Run(name, func(t *testing.T) {
			f := server(t, lists, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case configMap:
					fmt.Fprint(w, `{"kind":"ConfigMap","metadata":{"name":"volcano-scheduler-configmap","namespace":"volcano-system"},`+
						`"data":{"volcano-scheduler.conf":"tiers: []"}}`)
				case deployment:
					c.answer(w, r)
				default:
					http.NotFound(w, r)
				}
			})
			f.Configuration = true
			read, err := f.Read(t.Context())
			if c.fault != "" {
				require.EqualError(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			require.Empty(t, read.Unread)
			held, err := schedulerconf.InCluster(read.Sources)
			require.NoError(t, err)
			require.Equal(t, c.want, held.Source.Release)
		})
	}
}

func TestTheConfigMapOfTheSchedulerIsReadIfItIsAskedFor(t *testing.T) {
	const configMap = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
	lists := map[string][]string{queues: {""}, podgroups: {""}, "/api/v1/pods": {""}, "/api/v1/nodes": {""}, priority: {""}}
	maps.Copy(lists, judging)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		asked  bool
		// held is the name of the ConfigMap, unread the note and fault the error.
		held, unread, fault string
	}{
		"present": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, `{"kind":"ConfigMap","metadata":{"name":"volcano-scheduler-configmap","namespace":"volcano-system"},`+
					`"data":{"volcano-scheduler.conf":"tiers: []"}}`)
			},
			asked: true, held: "ConfigMap volcano-system/volcano-scheduler-configmap",
		},
		"not asked for": {answer: func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusInternalServerError, "Internal", "asked")
		}},
		"absent": {answer: http.NotFound, asked: true},
		"forbidden": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				status(w, http.StatusForbidden, "Forbidden", "user u may not get "+r.URL.Path)
			},
			asked: true, unread: "the configuration of Volcano's scheduler may not be read, and its default is used (--policy names another): " +
				"user u may not get " + configMap,
		},
		"a failure": {
			answer: func(w http.ResponseWriter, _ *http.Request) { status(w, http.StatusBadRequest, "BadRequest", "no") },
			asked:  true, fault: "configmaps: no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := server(t, lists, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != configMap {
					http.NotFound(w, r)
					return
				}
				c.answer(w, r)
			})
			f.Configuration = c.asked
			read, err := f.Read(t.Context())
			if c.fault != "" {
				require.EqualError(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			if c.unread != "" {
				require.Equal(t, []string{c.unread}, read.Unread)
			} else {
				require.Empty(t, read.Unread)
			}
			held, err := schedulerconf.InCluster(read.Sources)
			require.NoError(t, err)
			if c.held == "" {
				require.Nil(t, held)
				return
			}
			require.Equal(t, c.held, held.Object)
			require.Equal(t, "the cluster", held.File)
		})
	}
}
