//go:build cluster

package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/test/kubescheduler"
)

const (
	nodePath    = "/api/v1/nodes"
	volumePath  = "/api/v1/persistentvolumes"
	classPath   = "/apis/storage.k8s.io/v1/storageclasses"
	spacePath   = "/api/v1/namespaces/"
	equalPath   = "/apis/scheduling.k8s.io/v1/priorityclasses/" + kubescheduler.PriorityClass
	allClaims   = "/api/v1/persistentvolumeclaims"
	allPods     = "/api/v1/pods"
	allGroups   = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
	defaultPath = queuePath + "/default"
)

// prepare makes what all random clusters share: Volcano's kinds, a queue, a priority class whose pods do not preempt, and namespaces.
func (s *apiServer) prepare(t *testing.T) {
	t.Helper()
	s.define(t)
	s.Send(t, http.MethodPost, queuePath, map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"weight": 1},
	})
	s.Send(t, http.MethodPatch, defaultPath+"/status", map[string]any{"status": map[string]any{"state": "Open"}})
	s.Send(t, http.MethodPost, "/apis/scheduling.k8s.io/v1/priorityclasses", map[string]any{
		"metadata": map[string]any{"name": kubescheduler.PriorityClass}, "value": 1, "preemptionPolicy": corev1.PreemptNever,
	})
	for _, n := range kubescheduler.Generate(0).Namespaces {
		s.Send(t, http.MethodPost, "/api/v1/namespaces", n)
	}
}

// make makes the objects of a random cluster, all at the same time where they do not need each other. A pod with a node needs the node, from
// which the API server copies labels.
func (s *apiServer) make(t *testing.T, o *kubescheduler.Objects) {
	t.Helper()
	var first, second, third, fourth []request
	for _, n := range o.Namespaces {
		first = append(first, request{http.MethodPut, spacePath + n.Name, n})
	}
	for _, n := range o.Nodes {
		first = append(first, request{http.MethodPost, nodePath, n})
	}
	for _, c := range o.Classes {
		first = append(first, request{http.MethodPost, classPath, c})
	}
	for _, v := range o.Volumes {
		first = append(first, request{http.MethodPost, volumePath, v})
		second = append(second, request{http.MethodPatch, volumePath + "/" + v.Name + "/status", statusOf(v.Status)})
	}
	for _, c := range o.Claims {
		path := spacePath + c.Namespace + "/persistentvolumeclaims"
		first = append(first, request{http.MethodPost, path, c})
		second = append(second, request{http.MethodPatch, path + "/" + c.Name + "/status", statusOf(c.Status)})
	}
	for namespace, names := range o.Groups {
		for _, name := range names {
			first = append(first, request{http.MethodPost, podGroups + "/" + namespace + "/podgroups", map[string]any{
				"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"name": name},
				"spec": map[string]any{"minMember": 1, "queue": "default"},
			}})
		}
	}
	for _, p := range o.Placed {
		path, sent := spacePath+p.Namespace+"/pods", p.DeepCopy()
		sent.DeletionTimestamp = nil
		second = append(second, request{http.MethodPost, path, sent})
		third = append(third, request{http.MethodPatch, path + "/" + p.Name + "/status", map[string]any{
			"status": map[string]any{"phase": p.Status.Phase},
		}})
		if p.DeletionTimestamp != nil {
			fourth = append(fourth, request{http.MethodDelete, path + "/" + p.Name, map[string]any{"gracePeriodSeconds": 3600}})
		}
	}
	for _, p := range o.Waiting {
		second = append(second, request{http.MethodPost, spacePath + p.Namespace + "/pods", p})
	}
	for _, step := range [][]request{first, second, third, fourth} {
		s.sendAll(t, step)
	}
}

func statusOf(status any) map[string]any { return map[string]any{"status": status} }

// request is one request to the API server.
type request struct {
	method, path string
	body         any
}

func (s *apiServer) sendAll(t *testing.T, list []request) {
	t.Helper()
	all(t, len(list), func(i int) error {
		_, err := s.must(list[i].method, list[i].path, list[i].body)
		return err
	})
}

// clear deletes the objects of a random cluster except its namespaces.
func (s *apiServer) clear(t *testing.T) {
	t.Helper()
	now := map[string]any{"gracePeriodSeconds": 0}
	list := []request{{http.MethodDelete, nodePath, now}, {http.MethodDelete, volumePath, now}, {http.MethodDelete, classPath, now}}
	for _, n := range kubescheduler.Generate(0).Namespaces {
		list = append(list, request{http.MethodDelete, spacePath + n.Name + "/pods", now},
			request{http.MethodDelete, spacePath + n.Name + "/persistentvolumeclaims", now},
			request{http.MethodDelete, podGroups + "/" + n.Name + "/podgroups", now})
	}
	s.sendAll(t, list)
}

// objects lists the objects of a random cluster, without what differs from run to run.
func (s *apiServer) objects(t *testing.T) json.RawMessage {
	t.Helper()
	items := []any{s.object(t, equalPath), s.object(t, defaultPath)}
	for _, n := range kubescheduler.Generate(0).Namespaces {
		items = append(items, s.object(t, spacePath+n.Name))
	}
	for _, path := range []string{nodePath, classPath, volumePath, allClaims, allGroups, allPods} {
		items = append(items, s.list(t, path)...)
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	require.NoError(t, err)
	return data
}

func (s *apiServer) object(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := s.must(http.MethodGet, path, nil)
	require.NoError(t, err)
	var object map[string]any
	require.NoError(t, json.Unmarshal(data, &object))
	kubescheduler.Stable(object)
	return object
}

// list lists the objects of a kind, in order of namespace and name.
func (s *apiServer) list(t *testing.T, path string) []any {
	t.Helper()
	data, err := s.must(http.MethodGet, path, nil)
	require.NoError(t, err)
	var list struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Items      []map[string]any `json:"items"`
	}
	require.NoError(t, json.Unmarshal(data, &list))
	slices.SortFunc(list.Items, func(a, b map[string]any) int { return strings.Compare(key(a), key(b)) })
	items := make([]any, 0, len(list.Items))
	for _, object := range list.Items {
		object["kind"], object["apiVersion"] = strings.TrimSuffix(list.Kind, "List"), list.APIVersion
		kubescheduler.Stable(object)
		items = append(items, object)
	}
	return items
}

func key(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(metadata["namespace"], "/", metadata["name"])
}
