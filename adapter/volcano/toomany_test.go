package volcano_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/raced"
)

// apart returns an anti-affinity to the pods of an app, wherever they are, by a topology.
func apart(app, topology string, everywhere bool) any {
	term := map[string]any{"topologyKey": topology, "labelSelector": map[string]any{"matchLabels": map[string]any{"app": app}}}
	if everywhere {
		term["namespaceSelector"] = map[string]any{}
	}
	return map[string]any{"podAntiAffinity": map[string]any{required: []any{term}}}
}

// distinct is apart with a selector that no other one has, and that selects the same pods.
func distinct(app string, i int, everywhere bool) any {
	term := map[string]any{"topologyKey": "host", "labelSelector": map[string]any{
		"matchLabels": map[string]any{"app": app}, "matchExpressions": []any{map[string]any{"key": fmt.Sprint("k", i), "operator": "DoesNotExist"}},
	}}
	if everywhere {
		term["namespaceSelector"] = map[string]any{}
	}
	return map[string]any{"podAntiAffinity": map[string]any{required: []any{term}}}
}

// putPods puts n jobs of a namespace with a pod each, which has labels and more fields.
func putPods(t fataler, o *volcano.Objects, namespace string, n int, fields func(i int) map[string]any) {
	t.Helper()
	for i := range n {
		o.Put(readObject(t, o, kindOf["podgroups.yaml"], object(`{"metadata": {"name": "j%d", "namespace": %q}, "spec": {"queue": "q"}}`, i, namespace)))
		pod := object(`{"metadata": {"name": "p%d", "namespace": %q, "uid": "%s-%d",
			"annotations": {"scheduling.k8s.io/group-name": "j%d"}}, "spec": {"schedulerName": "volcano"}}`, i, namespace, namespace, i, i)
		for field, value := range fields(i) {
			pod = with(t, pod, field, value)
		}
		o.Put(readObject(t, o, kindOf["pods.yaml"], pod))
	}
}

// unjudgedOf counts the waiting tasks of each namespace that name a constraint as not judged.
func unjudgedOf(s *apportionv1.Snapshot) map[string]int {
	out := map[string]int{}
	for _, j := range s.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				if len(g.GetUnjudgedConstraints())+len(task.GetDetail().GetUnjudgedConstraints()) > 0 {
					out[j.GetNamespace()]++
				}
			}
		}
	}
	return out
}

// requireAsked fails unless a server takes the snapshot and answers about its pods.
func requireAsked(t fataler, s *apportionv1.Snapshot) {
	t.Helper()
	requireAccepted(t, s, limits())
	m, err := decode.Compile(s)
	require.NoError(t, err)
	_, err = engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
}

func TestRulesOfATenantBeyondTheBoundsLeaveThoseOfOthersJudged(t *testing.T) {
	raced.Skip(t)
	labelled := func(app string, affinity any) map[string]any {
		return map[string]any{"metadata.labels": map[string]any{"app": app}, "spec.affinity": affinity}
	}
	for name, evil := range map[string]func(i int) map[string]any{
		"rules on its own pods":    func(i int) map[string]any { return labelled("web", distinct("web", i, false)) },
		"rules on pods of others":  func(i int) map[string]any { return labelled("x", distinct("web", i, true)) },
		"rules on the rules' pods": func(i int) map[string]any { return labelled("web", distinct("web", i, true)) },
	} {
		t.Run(name, func(t *testing.T) {
			o := placesWith(t, 3)
			putPods(t, o, "fine", 3, func(int) map[string]any { return labelled("db", apart("web", "host", true)) })
			putPods(t, o, "good", 3, func(int) map[string]any { return labelled("web", apart("web", "host", false)) })
			s := ofObjects(t, o)
			require.Len(t, s.GetPods().GetClasses(), 2, "pods with equal rules share a class")
			requireAsked(t, s)

			putPods(t, o, "evil", 2200, evil)
			c, err := o.Cluster()
			require.NoError(t, err)
			requireAsked(t, c.Snapshot)
			unjudged := unjudgedOf(c.Snapshot)
			require.Zero(t, unjudged["fine"])
			require.Zero(t, unjudged["good"])
			require.Positive(t, unjudged["evil"])
			require.Less(t, unjudged["evil"], 2000, "some of its rules are judged")
			require.Contains(t, c.Warnings[len(c.Warnings)-1].GetMessage(), `namespace "evil" has`)
		})
	}
}

func TestClaimsOfATenantBeyondTheBoundsLeaveThoseOfOthersJudged(t *testing.T) {
	raced.Skip(t)
	o := placesWith(t, 100)
	group, storageGroup := objects.Kind{Name: "PersistentVolumeClaim", Version: "v1"}, objects.Kind{Name: "PersistentVolume", Version: "v1"}
	claim := func(namespace string, i int) map[string]any {
		o.Put(readObject(t, o, storageGroup, object(`{"metadata": {"name": "%s-%d"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
			{"matchExpressions": [{"key": "host", "operator": "NotIn", "values": ["n%d", "%s"]}]}]}}}, "status": {"phase": "Bound"}}`,
			namespace, i, i, namespace)))
		o.Put(readObject(t, o, group, object(`{"metadata": {"name": "c%d", "namespace": %q, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
			"spec": {"volumeName": "%s-%d"}, "status": {"phase": "Bound"}}`, i, namespace, namespace, i)))
		return map[string]any{"spec.volumes": []any{map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": fmt.Sprint("c", i)}}}}
	}
	putPods(t, o, "good", 50, func(i int) map[string]any { return claim("good", i) })
	putPods(t, o, "evil", 6000, func(i int) map[string]any { return claim("evil", i) })
	s := ofObjects(t, o)
	requireAsked(t, s)
	unjudged := unjudgedOf(s)
	require.Zero(t, unjudged["good"])
	require.Positive(t, unjudged["evil"])
}
