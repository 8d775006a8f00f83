package volcano_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// putOwn puts n jobs of a namespace with a pod each, which has a field more.
func putOwn(t fataler, o *volcano.Objects, namespace string, n int, field string, value func(i int) any) {
	t.Helper()
	for i := range n {
		o.Put(readObject(t, o, kindOf["podgroups.yaml"], object(`{"metadata": {"name": "j%d", "namespace": %q,
			"creationTimestamp": "2026-01-01T00:00:%02dZ"}, "spec": {"queue": "q"}}`, i, namespace, i%60)))
		pod := object(`{"metadata": {"name": "p%d", "namespace": %q, "uid": "%s-%d",
			"annotations": {"scheduling.k8s.io/group-name": "j%d"}}, "spec": {"schedulerName": "volcano"}}`, i, namespace, namespace, i, i)
		o.Put(readObject(t, o, kindOf["pods.yaml"], with(t, pod, field, value(i))))
	}
}

// jobsOf returns how many jobs each namespace has.
func jobsOf(s *apportionv1.Snapshot) map[string]int {
	jobs := map[string]int{}
	for _, j := range s.GetJobs() {
		jobs[j.GetNamespace()]++
	}
	return jobs
}

func placesWith(t fataler, nodes int) *volcano.Objects {
	t.Helper()
	o := volcano.NewObjects(volcano.WithLimits(limits()))
	o.Put(readObject(t, o, kindOf["queues.yaml"], object(`{"metadata": {"name": "q"}}`)))
	for i := range nodes {
		o.Put(readObject(t, o, kindOf["nodes.yaml"], object(`{"metadata": {"name": "n%d", "labels": {"host": "n%d"}}}`, i, i)))
	}
	return o
}

// affinity returns a required node affinity of one term.
func affinity(expressions ...any) any {
	return map[string]any{"nodeAffinity": map[string]any{required: map[string]any{"nodeSelectorTerms": []any{
		map[string]any{"matchExpressions": expressions},
	}}}}
}

func TestLargePodsOfATenantLeaveTheMemoryOfOthers(t *testing.T) {
	o := placesWith(t, 1)
	putOwn(t, o, "good", 20, "metadata.annotations.volcano~sh/task-spec", func(int) any { return "worker" })
	putOwn(t, o, "evil", 200, "metadata.annotations.volcano~sh/task-spec", func(i int) any { return fmt.Sprint(i, strings.Repeat("r", 4000)) })
	c, err := o.Cluster(volcano.WithMemory(200 << 10))
	require.NoError(t, err)
	jobs := jobsOf(c.Snapshot)
	require.Equal(t, 20, jobs["good"])
	require.Positive(t, jobs["evil"])
	require.Len(t, c.Faulty, 200-jobs["evil"])
	require.Contains(t, c.Faulty[0].String(), "with it the snapshot would have more than 204800 bytes in memory")
	c, err = o.Cluster()
	require.NoError(t, err)
	require.Empty(t, c.Faulty)
}

func TestAmountsOfATenantBeyondWhatFairDividesLeaveThoseOfOthers(t *testing.T) {
	o := placesWith(t, 1)
	containers := func(memory string) any {
		return []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"memory": memory}}}}
	}
	putOwn(t, o, "good", 20, "spec.containers", func(int) any { return containers("64Gi") })
	putOwn(t, o, "one", 1, "spec.containers", func(int) any { return containers("7Ei") })
	putOwn(t, o, "many", 300, "spec.containers", func(int) any { return containers("1Pi") })
	c, err := o.Cluster()
	require.NoError(t, err)
	require.Equal(t, map[string]int{"good": 20, "many": 255}, jobsOf(c.Snapshot))
	require.Len(t, c.Faulty, 46)
	require.Contains(t, c.Faulty[0].String(), "with it the snapshot would have more than 274877906944 Mi of a resource")
	policy, _ := client.Preset("fair")
	_, err = client.InProcess().Shares(t.Context(), client.Input{Snapshot: c.Snapshot, Policy: policy}, client.SharesQuestion{})
	require.NoError(t, err)
}

func TestNodesOfManyRulesOfATenantAreCountedInMemory(t *testing.T) {
	o := placesWith(t, 400)
	putOwn(t, o, "good", 5, "spec.nodeSelector", func(i int) any { return map[string]any{"host": fmt.Sprint("n", i)} })
	putOwn(t, o, "evil", 100, "spec.affinity", func(i int) any {
		return affinity(map[string]any{"key": "host", "operator": "NotIn", "values": []any{fmt.Sprint("n", i)}})
	})
	c, err := o.Cluster(volcano.WithMemory(200 << 10))
	require.NoError(t, err)
	jobs := jobsOf(c.Snapshot)
	require.Equal(t, 5, jobs["good"])
	require.Positive(t, jobs["evil"])
	require.Less(t, jobs["evil"], 50)
}

// Looking for the nodes of a few pods with very many conditions would take minutes, after each change of a node again.
func TestConditionsOfPlacementOfATenantAreBounded(t *testing.T) {
	raced.Skip(t)
	const nodes = 8000
	o := placesWith(t, nodes)
	putOwn(t, o, "good", 20, "spec.nodeSelector", func(i int) any { return map[string]any{"host": fmt.Sprint("n", i)} })
	putOwn(t, o, "evil", 200, "spec.affinity", func(i int) any {
		expressions := []any{map[string]any{"key": fmt.Sprint("evil", i), "operator": "Exists"}}
		for k := range 99 {
			expressions = append(expressions, map[string]any{"key": fmt.Sprint("k", k), "operator": "DoesNotExist"})
		}
		return affinity(expressions...)
	})
	c, err := o.Cluster(volcano.WithAsOf(time.Unix(1, 0)))
	require.NoError(t, err)
	jobs := jobsOf(c.Snapshot)
	require.Equal(t, map[string]int{"good": 20, "evil": 159}, jobs)
	require.Contains(t, c.Faulty[0].String(), "with it the snapshot would have more than 2097 conditions of placement")
}

func TestATermOfVeryManyExpressionsIsLeftOut(t *testing.T) {
	o := placesWith(t, 1)
	putOwn(t, o, "good", 1, "spec.nodeSelector", func(int) any { return map[string]any{"host": "n0"} })
	putOwn(t, o, "evil", 1, "spec.affinity", func(int) any {
		return affinity(slices.Repeat([]any{map[string]any{"key": "k", "operator": "Exists"}}, 40_000)...)
	})
	c, err := o.Cluster()
	require.NoError(t, err)
	require.Len(t, c.Faulty, 1)
	require.Contains(t, c.Faulty[0].String(), "a term of the node affinity has 40000 expressions, and at most 1000 are read")
	require.Equal(t, 1, jobsOf(c.Snapshot)["good"])
}

// The texts of rules are cut, so that many have the same one.
func TestManyRulesOfOneTextAreNumbered(t *testing.T) {
	o := placesWith(t, 300)
	putOwn(t, o, "evil", 300, "spec.affinity", func(i int) any {
		return affinity(map[string]any{"key": "host", "operator": "NotIn", "values": []any{strings.Repeat("x", 63), fmt.Sprint("n", i)}},
			map[string]any{"key": strings.Repeat("y", 63), "operator": "NotIn", "values": []any{strings.Repeat("z", 63)}})
	})
	s := ofObjects(t, o)
	names := map[string]bool{}
	for _, set := range s.GetNodeSets() {
		names[set.GetName()] = true
	}
	require.Len(t, names, 300)
	requireAccepted(t, s, limits())
}
