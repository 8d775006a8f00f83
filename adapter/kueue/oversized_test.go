package kueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	policy "github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// chain is a chain of cohorts of which the last one has a parent.
func chain(n int, parent string) []string {
	out := make([]string, n)
	for i := range out {
		above := fmt.Sprintf("c%04d", i+1)
		if i == n-1 {
			above = parent
		}
		out[i] = fmt.Sprintf(`{"metadata": {"name": "c%04d"}, "spec": {"parent": %q}}`, i, above)
	}
	return out
}

// wide is a ClusterQueue, or a Cohort, with as many flavor-resources as the product of two numbers.
func wide(name, cohort, prefix string, resources, flavors int) string {
	covered, quotas := make([]string, resources), make([]string, resources)
	for i := range covered {
		covered[i] = fmt.Sprintf(`"%s%d"`, prefix, i)
		quotas[i] = fmt.Sprintf(`{"name": %s, "nominalQuota": 1}`, covered[i])
	}
	list := make([]string, flavors)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name": "f%d", "resources": [%s]}`, i, strings.Join(quotas, ","))
	}
	return fmt.Sprintf(`{"metadata": {"name": %q}, "spec": {"cohort": %q, "parent": %q, "resourceGroups": [{"coveredResources": [%s], "flavors": [%s]}]}}`,
		name, cohort, cohort, strings.Join(covered, ","), strings.Join(list, ","))
}

// TestObjectsThatAreTooMuchTogetherAreLeftOut has cohorts and queues that the policy judges alone, but not together with others.
func TestObjectsThatAreTooMuchTogetherAreLeftOut(t *testing.T) {
	const cohorts, queues = "Cohort", "ClusterQueue"
	type dump map[string][]string
	many := func(n int, object func(i int) string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = object(i)
		}
		return out
	}
	small := func(i int) string { return wide(fmt.Sprintf("small%03d", i), "shared", "x", 2, 1) }
	for name, c := range map[string]struct {
		dump dump
		left []string
		says string
	}{
		"1,100 cohorts above a queue": {
			dump{cohorts: chain(1100, ""), queues: {`{"metadata": {"name": "deep"}, "spec": {"cohort": "c0000"}}`}},
			append(many(76, func(i int) string { return fmt.Sprintf("c%04d", i) }), "deep"), "of cohorts, at most 1024 are judged",
		},
		"as many levels as there may be": {
			dump{cohorts: chain(1023, ""), queues: {`{"metadata": {"name": "deep"}, "spec": {"cohort": "c0000"}}`}}, nil, "",
		},
		"a circle of 1,100 cohorts": {
			dump{cohorts: chain(1100, "c0000"), queues: {`{"metadata": {"name": "deep"}, "spec": {"cohort": "c0500"}}`}}, nil, "",
		},
		"one queue with many flavor-resources among others of its cohort": {
			dump{queues: append(many(200, small), wide("wide", "shared", "x", 60, 100))},
			[]string{"wide"},
			"it names 6000 of 1212001 accounts of flavor-resources of all queues and cohorts, at most 1048576 are judged",
		},
		"a cohort with many flavor-resources": {
			dump{queues: many(200, small), cohorts: {wide("shared", "", "x", 60, 100)}}, []string{"shared"}, "it names 6000 of 1206001 accounts",
		},
		"queues and workloads that name more resources than a snapshot has": {
			dump{
				queues:     {wide("first", "", "a", 30, 1), wide("second", "", "b", 31, 1), wide("third", "", "c", 32, 1)},
				"Workload": {strings.Replace(naming("large", 3), "main", "other", 1), naming("odd", 1), naming("small", 0)},
			},
			[]string{"third", "large"},
			"with it there would be more than 64 resources",
		},
		"a workload that uses many flavor-resources": {
			dump{queues: many(200, small), "Workload": {`{"metadata": {"name": "x", "namespace": "n"}, "spec": {"queueName": "l", "podSets": [` +
				strings.Join(many(6000, func(i int) string { return fmt.Sprintf(`{"name": "s%d"}`, i) }), ",") + `]}, "status": {
				"conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
				"admission": {"clusterQueue": "small007", "podSetAssignments": [` +
				strings.Join(many(6000, func(i int) string {
					return fmt.Sprintf(`{"name": "s%d", "flavors": {"x0": "u%d"}, "resourceUsage": {"x0": 1}}`, i, i)
				}), ",") + `]}}}`}},
			[]string{"x"},
			"it names 6000 of 1206403 accounts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			limits := decode.Limits{TextBytes: 4096}
			held := kueue.NewObjects(kueue.WithLimits(limits))
			put := func(kind, data string) {
				object, err := held.Read(objects.Kind{Name: kind, Version: "kueue.x-k8s.io/v1beta1"}, []byte(data))
				require.NoError(t, err)
				held.Put(object)
			}
			for _, o := range innocent {
				put(o.kind, o.data)
			}
			for kind, list := range c.dump {
				for _, data := range list {
					put(kind, data)
				}
			}
			for range 2 { // Nothing of what is held changes by it.
				got := held.Cluster(now)
				var left []string
				for _, f := range got.Faulty {
					left = append(left, f.Name)
					require.Contains(t, f.Detail(), c.says)
				}
				require.ElementsMatch(t, c.left, left)
				require.True(t, hasQueue(got.Snapshot, "a"))
				data, err := proto.Marshal(got.Snapshot)
				require.NoError(t, err)
				m, err := new(decode.Decoder).CompileWithin(data, decode.Guard{Limits: limits})
				require.NoError(t, err)
				cluster, err := wirekueue.ClusterOf(m)
				require.NoError(t, err)
				_, err = policy.Compile(cluster, policy.Default())
				require.NoError(t, err)
			}
		})
	}
}

// naming is a workload that waits, with requests of n resources that no quota covers.
func naming(name string, n int) string {
	requests := ""
	for i := range n {
		requests += fmt.Sprintf(`, "%s%d": 1`, name, i)
	}
	return fmt.Sprintf(`{"metadata": {"name": %q, "namespace": "n"}, "spec": {"queueName": "main", "podSets": [{"name": "main", "template":
		{"spec": {"containers": [{"resources": {"requests": {"cpu": 1%s}}}]}}}]}}`, name, requests)
}

func hasQueue(s *apportionv1.Snapshot, name string) bool {
	for _, q := range s.GetQueues() {
		if q.GetName() == name {
			return true
		}
	}
	return false
}
