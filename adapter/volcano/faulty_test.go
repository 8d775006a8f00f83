package volcano_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
)

// limits are those of a server with default settings.
func limits() decode.Limits {
	l := setting.Default[setting.Limit]()
	return decode.LimitsOf(&l)
}

// requireAccepted fails unless a server with these limits takes the snapshot.
func requireAccepted(t fataler, s *apportionv1.Snapshot, l decode.Limits) {
	t.Helper()
	data, err := proto.Marshal(s)
	require.NoError(t, err)
	_, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Limits: l})
	require.NoError(t, err)
}

const (
	requests = "spec.containers.0.resources.requests"
	required = "requiredDuringSchedulingIgnoredDuringExecution"
)

var (
	long      = strings.Repeat("x", 5000)
	manyNames = func() map[string]any {
		names := map[string]any{}
		for i := range 70 {
			names[fmt.Sprintf("evil.org/r%d", i)] = "1"
		}
		return names
	}()
)

// hostile sets fields of an object, by kind, to values that no server takes.
var hostile = map[string][]struct {
	field string
	value any
}{
	"Pod": {
		{requests, manyNames},
		{requests, map[string]any{"cpu": "1e200"}},
		{requests, map[string]any{"cpu": "-1"}},
		{requests, map[string]any{"cpu": map[string]any{}}},
		{requests, []any{}},
		{requests, map[string]any{strings.Repeat("kubernetes.io/", 400): "1"}},
		{"spec.overhead", map[string]any{"cpu": "99999999999999999999999999Ei"}},
		{"spec.containers", map[string]any{}},
		{"spec.initContainers", "x"},
		{"spec.priority", "high"},
		{"spec.priority", 1e10},
		{"metadata.uid", long},
		{"metadata.creationTimestamp", "9999-01-01T00:00:00Z"},
		{"metadata.uid", 7},
		{"metadata.annotations.scheduling~k8s~io/group-name", long},
		{"metadata.annotations.volcano~sh/task-spec", long},
		{"metadata.annotations.scheduling~k8s~io/group-name", map[string]any{}},
		{"metadata.annotations.volcano~sh/task-spec", []any{}},
		{"spec.schedulerName", long},
		{"spec.priorityClassName", long},
		{"spec.schedulingGates", 3},
		{"spec.nodeName", []any{}},
		{"spec.nodeSelector", []any{"x"}},
		{"spec.tolerations", map[string]any{"x": 1}},
		{"status.phase", 1},
		{"spec.affinity", map[string]any{"nodeAffinity": map[string]any{required: map[string]any{"nodeSelectorTerms": []any{
			map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Near", "values": []any{"b"}}}},
		}}}}},
		{"spec.affinity", map[string]any{"nodeAffinity": map[string]any{required: []any{}}}},
	},
	"PodGroup": {
		{"spec.queue", long},
		{"spec.queue", 3},
		{"spec.minResources", map[string]any{"cpu": "1e200"}},
		{"spec.minResources", manyNames},
		{"spec.minResources", map[string]any{"cpu": "99999999999999999999999Ei", "memory": "-1"}},
		{"spec.minMember", -1},
		{"spec.minMember", 3e9},
		{"spec.minTaskMember", map[string]any{long: 1}},
		{"spec.minTaskMember", map[string]any{"a": -1}},
		{"spec.minTaskMember", []any{}},
		{"metadata.creationTimestamp", "soon"},
		{"spec.priorityClassName", 3},
		{"status.phase", []any{}},
	},
	"Node": {
		{"status.allocatable", manyNames},
		{"status.allocatable", map[string]any{"cpu": "-1"}},
		{"metadata.labels.volcano~sh/nodegroup-name", long},
		{"metadata.annotations.volcano~sh/oversubscription-cpu", "1e308"},
		{"metadata.annotations.volcano~sh/oversubscription-cpu", "-1"},
		{"metadata.annotations.volcano~sh/oversubscription-memory", "NaN"},
		{"spec.taints", "none"},
		{"spec.unschedulable", "perhaps"},
		{"metadata.labels", []any{1}},
	},
	"Queue": {
		{"spec.weight", -1},
		{"spec.weight", 1e12},
		{"spec.parent", long},
		{"spec.capability", manyNames},
		{"spec.deserved", map[string]any{"cpu": "1e200"}},
		{"spec.guarantee", map[string]any{"resource": map[string]any{"cpu": "-3"}}},
		{"status.state", []any{}},
		{"spec.affinity", map[string]any{"nodeGroupAffinity": map[string]any{required: []any{long}}}},
		{"metadata.annotations.volcano~sh/hierarchy", long},
		{"spec.reclaimable", "perhaps"},
	},
	"PriorityClass": {{"value", "high"}, {"value", 1e12}, {"globalDefault", "perhaps"}},
}

// with returns an object with another value of a field.
func with(t fataler, item json.RawMessage, field string, value any) json.RawMessage {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(item, &object))
	at := object
	keys := strings.Split(field, ".")
	for i, key := range keys[:len(keys)-1] {
		key = strings.ReplaceAll(key, "~", ".")
		inner, ok := at[key].(map[string]any)
		if list, is := at[key].([]any); is && keys[i+1] == "0" && len(list) > 0 {
			inner, ok = map[string]any{"0": list[0]}, true
		}
		if !ok {
			inner = map[string]any{}
			if i+1 < len(keys) && keys[i+1] == "0" {
				first := map[string]any{"name": "c"}
				at[key], inner = []any{first}, map[string]any{"0": first}
				at = inner
				continue
			}
			at[key] = inner
		}
		at = inner
	}
	at[strings.ReplaceAll(keys[len(keys)-1], "~", ".")] = value
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return data
}

// withoutFaulty returns a snapshot without what says that objects are left out because they are invalid.
func withoutFaulty(s *apportionv1.Snapshot) *apportionv1.Snapshot {
	s = proto.CloneOf(s)
	s.LeftOuts = slices.DeleteFunc(s.LeftOuts, func(l *apportionv1.LeftOut) bool {
		return l.GetCause() == apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID
	})
	for _, j := range s.Jobs {
		j.Groups = slices.DeleteFunc(j.Groups, func(g *apportionv1.TaskGroup) bool {
			return slices.Contains(g.GetUnjudgedConstraints(), apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT)
		})
	}
	return s
}

// put puts all objects.
func put(t fataler, o *volcano.Objects, objects map[objects.Kind]map[string]json.RawMessage) {
	t.Helper()
	for kind, byKey := range objects {
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			o.Put(readObject(t, o, kind, byKey[key]))
		}
	}
}

func TestHostileObjectsChangeNothingForTheOthers(t *testing.T) {
	sample := sampleObjects(t)
	kinds := slices.SortedFunc(maps.Keys(sample), func(a, b objects.Kind) int { return strings.Compare(a.Name, b.Name) })
	short := limits()
	short.TextBytes = 128
	all := map[decode.Limits]*volcano.Objects{}
	for _, l := range []decode.Limits{limits(), short} {
		all[l] = volcano.NewObjects(volcano.WithLimits(l))
		put(t, all[l], sample)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom([]decode.Limits{limits(), short}).Draw(t, "limits")
		o, replaced := all[l], map[string]func(){}
		var restore []func()
		for range rapid.IntRange(1, 12).Draw(t, "hostile") {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(sample[kind]))).Draw(t, "key")
			how := rapid.SampledFrom(hostile[kind.Name]).Draw(t, "how")
			o.Put(readObject(t, o, kind, with(t, sample[kind][key], how.field, how.value)))
			original := readObject(t, o, kind, sample[kind][key])
			replaced[kind.Name+key] = func() { o.Remove(original) }
			restore = append(restore, func() { o.Put(original) })
		}
		defer func() {
			for _, put := range restore {
				put()
			}
		}()
		cluster, err := o.Cluster(volcano.WithAsOf(time.Unix(1, 0)))
		require.NoError(t, err)
		require.Len(t, cluster.Faulty, len(replaced), "%v", cluster.Faulty)
		requireAccepted(t, cluster.Snapshot, l)
		for _, remove := range replaced {
			remove()
		}
		require.True(t, proto.Equal(withoutFaulty(cluster.Snapshot), ofObjects(t, o)))
	})
}

func TestEveryHostileFieldIsRefusedByItself(t *testing.T) {
	for kind, byKey := range sampleObjects(t) {
		for i, how := range hostile[kind.Name] {
			t.Run(fmt.Sprintf("%s %s %d", kind.Name, how.field, i), func(t *testing.T) {
				for key, item := range byKey {
					o := volcano.NewObjects(volcano.WithLimits(limits()))
					for range 2 { // A second one that is equal in what is wrong.
						o.Put(readObject(t, o, kind, with(t, item, how.field, how.value)))
						item = with(t, item, "metadata.name", "other")
					}
					cluster, err := o.Cluster()
					require.NoError(t, err)
					require.Len(t, cluster.Faulty, 2, key)
					break
				}
			})
		}
	}
}

func TestASnapshotIsWithinAnyLimits(t *testing.T) {
	sample := sampleObjects(t)
	pods := sample[kindOf["pods.yaml"]]
	for i, key := range slices.Sorted(maps.Keys(pods)) {
		if i%4 > 0 {
			delete(pods, key)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		few := func(name string) int64 { return rapid.Int64Range(0, 12).Draw(t, name) }
		l := decode.Limits{
			Nodes: few("nodes"), Queues: few("queues"), QueueDepth: few("depth"), Jobs: few("jobs"), Groups: few("groups"), Tasks: 10 * few("tasks"),
			NodeSets: few("sets"), Dimensions: rapid.SampledFrom([]int64{0, 3, 4, 5, 64}).Draw(t, "dimensions"),
			TextBytes: rapid.SampledFrom([]int64{0, 128, 4096}).Draw(t, "text bytes"),
		}
		o := volcano.NewObjects(volcano.WithLimits(l))
		put(t, o, sample)
		requireAccepted(t, ofObjects(t, o), l)
	})
}

// object is the JSON of an object.
func object(format string, args ...any) json.RawMessage { return fmt.Appendf(nil, format, args...) }

func TestResourceNamesOfATenantDisplaceNoOthersAndAreForgotten(t *testing.T) {
	sample, o := sampleObjects(t), volcano.NewObjects(volcano.WithLimits(limits()))
	put(t, o, sample)
	want := ofObjects(t, o)
	pods, groups, nodes := kindOf["pods.yaml"], kindOf["podgroups.yaml"], kindOf["nodes.yaml"]
	evil := func(i int) json.RawMessage {
		names := map[string]any{}
		for k := range 30 {
			names[fmt.Sprintf("evil.org/p%d-%d", i, k)] = "1"
		}
		pod := object(`{"metadata": {"name": "e%d", "namespace": "evil", "annotations": {"scheduling.k8s.io/group-name": "e%d"}},
			"spec": {"schedulerName": "volcano"}}`, i, i)
		return with(t, pod, requests, names)
	}
	for i := range 40 {
		o.Put(readObject(t, o, groups, object(`{"metadata": {"name": "e%d", "namespace": "evil"}, "spec": {"queue": "vision"}}`, i)))
		o.Put(readObject(t, o, pods, evil(i)))
	}
	typo := object(`{"metadata": {"name": "typo", "namespace": "zoo", "annotations": {"scheduling.k8s.io/group-name": "typo"}},
		"spec": {"schedulerName": "volcano", "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpus": 1}}}]}}`)
	o.Put(readObject(t, o, groups, object(`{"metadata": {"name": "typo", "namespace": "zoo"}, "spec": {"queue": "vision"}}`)))
	o.Put(readObject(t, o, pods, typo))
	node := object(`{"metadata": {"name": "new"}, "status": {"allocatable": {"cpu": "4", "new.org/device": "8"}}}`)
	o.Put(readObject(t, o, nodes, node))
	got := ofObjects(t, o)
	requireAccepted(t, got, limits())
	require.Contains(t, got.GetDimensions(), "new.org/device", "a node that came later")
	require.Contains(t, got.GetDimensions(), "nvidia.com/gpus", "the name that one tenant mistook")
	require.Len(t, got.GetNodes(), len(want.GetNodes())+1)
	names := map[string]bool{}
	for _, j := range got.GetJobs() {
		names[j.GetNamespace()+"/"+j.GetName()] = true
	}
	for _, j := range want.GetJobs() {
		require.True(t, names[j.GetNamespace()+"/"+j.GetName()], j.GetName())
	}
	require.True(t, names["zoo/typo"])
	cluster, err := o.Cluster()
	require.NoError(t, err)
	require.NotEmpty(t, cluster.Faulty)
	for _, f := range cluster.Faulty {
		require.Equal(t, "evil", f.Namespace)
		require.Contains(t, f.String(), "with it the snapshot would have more than 64 resource names")
	}
	for i := range 40 {
		o.Remove(readObject(t, o, pods, evil(i)))
	}
	for range 3 {
		got = ofObjects(t, o)
	}
	require.Len(t, got.GetDimensions(), len(want.GetDimensions())+2)
}

func TestNodesAndQueuesWithTooManyNamesAreLeftOutTheLargestFirst(t *testing.T) {
	o := volcano.NewObjects()
	for i := range 4 {
		names := map[string]any{"cpu": "1"}
		for k := range []int{1, 30, 40, 2}[i] {
			names[fmt.Sprintf("x.org/%d-%d", i, k)] = "1"
		}
		item := with(t, object(`{"metadata": {"name": "n%d"}}`, i), "status.allocatable", names)
		o.Put(readObject(t, o, kindOf["nodes.yaml"], item))
	}
	cluster, err := o.Cluster()
	require.NoError(t, err)
	require.Len(t, cluster.Faulty, 1)
	require.Equal(t, "Node n2: with its resource names the snapshot would have more than 64", cluster.Faulty[0].String())
	require.Len(t, cluster.Snapshot.GetNodes(), 3)
	requireAccepted(t, cluster.Snapshot, decode.Limits{})
}

func TestAJobWhosePodIsLeftOutSaysSo(t *testing.T) {
	sample, o := sampleObjects(t), volcano.NewObjects()
	kind := kindOf["pods.yaml"]
	put(t, o, sample)
	o.Put(readObject(t, o, kind, with(t, sample[kind]["language/pretrain-7b-worker-0"], "spec.priority", "high")))
	s := ofObjects(t, o)
	var last *apportionv1.TaskGroup
	for _, j := range s.GetJobs() {
		if j.GetName() == "pretrain-7b" {
			last = j.GetGroups()[len(j.GetGroups())-1]
		}
	}
	require.Equal(t, []apportionv1.PlacementConstraint{apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT}, last.GetUnjudgedConstraints())
	require.EqualValues(t, 1, last.GetCounts()[0].GetCount())
	require.True(t, proto.Equal(&apportionv1.LeftOut{
		Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: "Pod", Namespace: "language", Name: "pretrain-7b-worker-0", Queue: "language",
		Job: "pretrain-7b", Detail: fmt.Sprintf(`spec.priority: not a whole number between %d and %d: "high"`, math.MinInt32, math.MaxInt32),
	}, s.GetLeftOuts()[0]), "%v", s.GetLeftOuts()[0])
}

func TestTwoPodsOfOneUIDAreNotBothTasks(t *testing.T) {
	sample, o := sampleObjects(t), volcano.NewObjects()
	kind := kindOf["pods.yaml"]
	put(t, o, sample)
	for _, key := range []string{"language/pretrain-7b-worker-0", "language/pretrain-7b-worker-1"} {
		o.Put(readObject(t, o, kind, with(t, sample[kind][key], "metadata.uid", "same")))
	}
	s := ofObjects(t, o)
	requireAccepted(t, s, limits())
	require.Equal(t, `the uid "same" is that of another pod`, s.GetLeftOuts()[0].GetDetail())
}

func TestADumpWithFaultyObjectsAnswersAboutTheRest(t *testing.T) {
	source := objects.Source{Name: "f.yaml", Data: []byte(`
- {kind: Queue, metadata: {name: q}, status: {state: Open}}
- {kind: Queue, metadata: {name: q}}
- {kind: Queue, metadata: {name: bad}, spec: {weight: -1, capability: {cpu: many}}}
- {kind: PodGroup, metadata: {name: j, namespace: a}, spec: {queue: q, minResources: {cpu: 1e200}}}
- {kind: PodGroup, metadata: {name: k, namespace: a}, spec: {queue: q}}
- {kind: Node, metadata: {name: a/b}}
- just text
`)}
	_, err := volcano.ReadManifests([]objects.Source{source})
	require.ErrorContains(t, err, "f.yaml:4: spec.weight: negative: -1")
	cluster, err := volcano.ReadManifests([]objects.Source{source}, volcano.LeaveOutFaulty())
	require.NoError(t, err)
	require.Len(t, cluster.Snapshot.GetQueues(), 1)
	require.Len(t, cluster.Snapshot.GetJobs(), 1)
	require.Empty(t, cluster.Snapshot.GetNodes())
	told := make([]string, 0, len(cluster.Faulty))
	for _, f := range cluster.Faulty {
		told = append(told, f.At.String()+": "+f.String())
	}
	require.Equal(t, []string{
		`f.yaml:3: Queue q: Queue q is already at f.yaml:2`,
		`f.yaml:4: Queue bad: spec.weight: negative: -1, and 1 more`,
		`f.yaml:5: PodGroup a/j: spec.minResources.cpu: not a quantity: longer, or with a larger exponent, than any real one`,
		`f.yaml:7: Node a/b: no name of Kubernetes: "a/b" may not contain '/'`,
		`f.yaml:8: object at f.yaml:8: not an object of Kubernetes`,
	}, told)
	require.NoError(t, cluster.Fault("other.yaml"))
	require.ErrorContains(t, cluster.Fault(""), "f.yaml:4: spec.capability.cpu: not a quantity")
}

func TestAQuantityOfStorageThatTakesForEverIsRefused(t *testing.T) {
	for name, data := range map[string]string{
		"a volume": `{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "x"}, "spec": {"capacity": {"storage": "1e999999999"}}}`,
		"a claim": `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x", "namespace": "n"},
			"spec": {"resources": {"requests": {"storage": "1e999999999"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := volcano.ReadManifests([]objects.Source{{Name: "x.json", Data: []byte(data)}})
			require.ErrorContains(t, err, "storage: not a quantity")
		})
	}
}
