package kueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// innocent are the objects of others, by kind.
var innocent = []struct{ kind, data string }{
	{"ResourceFlavor", `{"metadata": {"name": "default"}}`},
	{"ClusterQueue", `{"metadata": {"name": "a"}, "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"],
		"flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": 4}]}]}]}}`},
	{"LocalQueue", `{"metadata": {"name": "l", "namespace": "n"}, "spec": {"clusterQueue": "a"}}`},
	{"Workload", `{"metadata": {"name": "w", "namespace": "n", "uid": "w"}, "spec": {"queueName": "l", "podSets": [{"name": "main",
		"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}}}]}}`},
}

// podSets is a Workload of queue l with some pod sets.
func podSets(sets string) string {
	return `{"metadata": {"name": "x", "namespace": "n", "uid": "x"}, "spec": {"queueName": "l", "podSets": [` + sets + `]}}`
}

// requesting is a pod set that requests something.
func requesting(requests string) string {
	return `{"name": "main", "template": {"spec": {"containers": [{"resources": {"requests": {` + requests + `}}}]}}}`
}

// named is an object with a name of 5,000 bytes.
var named = fmt.Sprintf(`{"metadata": {"name": "x%s"}}`, strings.Repeat("x", 4999))

func TestAHostileObjectOfKueueChangesNothingForTheOthers(t *testing.T) {
	const assigned = `{"metadata": {"name": "x", "namespace": "n"}, "spec": {"queueName": "l", "podSets": [{"name": "main"}]}, "status": {
		"conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
		"admission": {"clusterQueue": "a", "podSetAssignments": [{"name": "main", "flavors": {"": "default"}, "resourceUsage": {"": 1}}]}}}`
	groups := func(resource, flavor string) string {
		return fmt.Sprintf(`, "spec": {"resourceGroups": [{"coveredResources": [%q], "flavors": [{"name": %q,
			"resources": [{"name": %q, "nominalQuota": 1}]}]}]}}`, resource, flavor, resource)
	}
	for name, c := range map[string]struct{ kind, data, says string }{
		"a name of 5,000 bytes":           {"Workload", named, "metadata.name: it has 5000 bytes, at most 4096 are taken"},
		"an owner of 5,000 bytes":         {"Workload", strings.Replace(podSets(""), `"uid"`, `"annotations": {"apportion.dev/owner": "`+strings.Repeat("o", 5000)+`"}, "uid"`, 1), "a name or uid has 5000 bytes"},
		"a resource without a name":       {"Workload", podSets(requesting(`"": 1`)), "spec.podSets[0].template.spec: the name of a resource is needed"},
		"usage of a resource without one": {"Workload", assigned, "status.admission.podSetAssignments[0].resourceUsage.: the name of a resource is needed"},
		"two pod sets of one name":        {"Workload", podSets(`{"name": "m"}, {"name": "m"}`), `pod_sets[1].name: "m" is there twice`},
		"a pod set without a name":        {"Workload", podSets(`{}`), "pod_sets[0].name: a name is needed"},
		"fewer than no pods":              {"Workload", podSets(`{"name": "m", "count": -5}`), "pod_sets[0].count: -5 is negative"},
		"more pods at least than at most": {"Workload", podSets(`{"name": "m", "minCount": 5}`), "pod_sets[0].min_count: 5 is not from 0 to 1"},
		"a quantity that takes for ever":  {"Workload", podSets(requesting(`"cpu": "1e999999999"`)), "spec.podSets[0].template.spec.containers[0].resources.requests.cpu: not a quantity"},
		"a pod that is none":              {"Workload", podSets(`{"name": "m", "template": {"spec": 5}}`), "spec.podSets[0].template.spec: not an object"},
		"metadata of another type":        {"Workload", `{"metadata": {"name": "x", "namespace": "n", "labels": {"a": 5}}}`, "metadata.labels.a: not a text"},
		"the uid of another one":          {"Workload", `{"metadata": {"name": "x", "namespace": "n", "uid": "w"}, "spec": {"queueName": "l"}}`, `metadata.uid: "w" is there twice`},
		"a queue of 5,000 bytes":          {"ClusterQueue", named, "metadata.name: it has 5000 bytes"},
		"a quota of no resource":          {"ClusterQueue", `{"metadata": {"name": "x"}` + groups("", "f"), "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: the name of a resource is needed"},
		"a quota of no flavor":            {"ClusterQueue", `{"metadata": {"name": "x"}` + groups("cpu", ""), "quotas[0].node_set: a flavor needs a name"},
		"a cohort's quota of no flavor":   {"Cohort", `{"metadata": {"name": "x"}` + groups("cpu", ""), "quotas[0].node_set: a flavor needs a name"},
		"a flavor of 5,000 bytes":         {"ResourceFlavor", named, "metadata.name: it has 5000 bytes"},
		"a cohort of 5,000 bytes":         {"Cohort", named, "metadata.name: it has 5000 bytes"},
		"a local queue of 5,000 bytes":    {"LocalQueue", named, "metadata.name: it has 5000 bytes"},
		"a check of 5,000 bytes":          {"AdmissionCheck", named, "metadata.name: it has 5000 bytes"},
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
			want := held.Cluster(now)
			require.Empty(t, want.Faulty)
			put(c.kind, c.data)
			got := held.Cluster(now)
			require.Len(t, got.Faulty, 1)
			require.Contains(t, got.Faulty[0].Problems.Error(), c.says)
			out := got.Snapshot.GetLeftOuts()
			require.Len(t, out, 1)
			require.Equal(t, apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, out[0].GetCause())
			require.Equal(t, c.kind, out[0].GetKind())
			require.Equal(t, "x", out[0].GetName()[:1])
			require.Contains(t, out[0].GetDetail(), c.says[strings.Index(c.says, ": ")+1:])
			got.Snapshot.LeftOuts = nil
			require.True(t, proto.Equal(want.Snapshot, got.Snapshot), "%v\n%v", want.Snapshot, got.Snapshot)
			data, err := proto.Marshal(got.Snapshot)
			require.NoError(t, err)
			_, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Limits: limits})
			require.NoError(t, err)
		})
	}
}

func TestAWorkloadOfAQueueWithALongNameStaysWithinTheLimits(t *testing.T) {
	limits := decode.Limits{TextBytes: 4096}
	held := kueue.NewObjects(kueue.WithLimits(limits))
	object, err := held.Read(objects.Kind{Name: "Workload", Version: "kueue.x-k8s.io/v1beta1"},
		[]byte(`{"metadata": {"name": "x", "namespace": "n"}, "spec": {"queueName": "`+strings.Repeat("q", 3000)+`"}}`))
	require.NoError(t, err)
	held.Put(object)
	snapshot := held.Cluster(now).Snapshot
	require.Len(t, snapshot.GetLeftOuts(), 1)
	require.LessOrEqual(t, len(snapshot.GetLeftOuts()[0].GetDetail()), 1000)
}
