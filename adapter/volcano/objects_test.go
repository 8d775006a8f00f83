package volcano_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// kindOf are the kinds by the files of the sample cluster.
var kindOf = map[string]objects.Kind{
	"nodes.yaml":           {Name: "Node", Version: "v1"},
	"podgroups.yaml":       {Name: "PodGroup", Version: "scheduling.volcano.sh/v1beta1"},
	"pods.yaml":            {Name: "Pod", Version: "v1"},
	"priorityclasses.yaml": {Name: "PriorityClass", Version: "scheduling.k8s.io/v1"},
	"queues.yaml":          {Name: "Queue", Version: "scheduling.volcano.sh/v1beta1"},
}

// sampleObjects are the objects of the sample cluster, by kind and key.
func sampleObjects(t *testing.T) map[objects.Kind]map[string]json.RawMessage {
	t.Helper()
	out := map[objects.Kind]map[string]json.RawMessage{}
	for file, kind := range kindOf {
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		require.NoError(t, json.Unmarshal(apiList(t, file, kind.Name, kind.Version), &list))
		out[kind] = map[string]json.RawMessage{}
		for _, item := range list.Items {
			out[kind][keyOf(t, item)] = item
		}
	}
	return out
}

type fataler interface {
	require.TestingT
	Helper()
}

func keyOf(t fataler, item json.RawMessage) string {
	t.Helper()
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(item, &object))
	return object.Metadata.Namespace + "/" + object.Metadata.Name
}

// listed makes the snapshot of lists of the objects, as an API server writes them.
func listed(t fataler, of map[objects.Kind]map[string]json.RawMessage) *apportionv1.Snapshot {
	t.Helper()
	var pages []objects.Source
	for _, kind := range kindOf {
		items := []json.RawMessage{}
		for _, key := range slices.Sorted(maps.Keys(of[kind])) {
			items = append(items, of[kind][key])
		}
		data, err := json.Marshal(map[string]any{"kind": kind.Name + "List", "apiVersion": kind.Version, "items": items})
		require.NoError(t, err)
		page, err := objects.ReadPage(kind.Name, data, volcano.Shape())
		require.NoError(t, err)
		pages = append(pages, page.Source)
	}
	cluster, err := volcano.ReadManifests(pages, volcano.WithAsOf(time.Unix(1, 0)))
	require.NoError(t, err)
	return cluster.Snapshot
}

func ofObjects(t fataler, o *volcano.Objects) *apportionv1.Snapshot {
	t.Helper()
	cluster, err := o.Cluster(volcano.WithAsOf(time.Unix(1, 0)))
	require.NoError(t, err)
	return cluster.Snapshot
}

func readObject(t fataler, o *volcano.Objects, kind objects.Kind, data []byte) *objects.Object {
	t.Helper()
	object, err := o.Read(kind, data)
	require.NoError(t, err)
	return object
}

func TestObjectsMakeTheSnapshotOfTheirLists(t *testing.T) {
	sample, o := sampleObjects(t), volcano.NewObjects()
	for kind, byKey := range sample {
		for _, item := range byKey {
			require.True(t, o.Put(readObject(t, o, kind, item)))
		}
		require.Equal(t, len(byKey), o.Count(kind))
	}
	want := listed(t, sample)
	require.Len(t, want.GetNodes(), 16)
	require.True(t, proto.Equal(want, ofObjects(t, o)))
	require.True(t, proto.Equal(want, ofObjects(t, o)), "a second time")
	lists := volcano.NewObjects()
	for file, kind := range kindOf {
		read, next, version, err := lists.ReadList(kind, apiList(t, file, kind.Name, kind.Version))
		require.NoError(t, err)
		require.Equal(t, "next", next)
		require.Equal(t, "7", version)
		require.True(t, lists.Replace(kind, read))
		require.False(t, lists.Replace(kind, read), "the same again")
	}
	require.True(t, proto.Equal(want, ofObjects(t, lists)))
}

// varied returns an object with a changed field: in a field that affects decisions, or in another one.
func varied(t fataler, kind objects.Kind, item json.RawMessage, how int) json.RawMessage {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(item, &object))
	part := func(name string) map[string]any {
		inner, _ := object[name].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			object[name] = inner
		}
		return inner
	}
	switch {
	case how == 0:
		part("metadata")["resourceVersion"] = fmt.Sprint(rand.IntN(1000))
	case kind.Name == "Pod" && how == 1:
		part("status")["phase"] = "Succeeded"
	case kind.Name == "Pod" && how == 2:
		part("spec")["nodeSelector"] = map[string]any{"kubernetes.io/hostname": "none"}
	case kind.Name == "Pod":
		part("spec")["containers"] = []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{
			"cpu": fmt.Sprint(how), "example.org/device": "2",
		}}}}
	case kind.Name == "Node" && how == 1:
		part("spec")["unschedulable"] = true
	case kind.Name == "Node":
		part("metadata")["labels"] = map[string]any{"kubernetes.io/hostname": "none"}
	case kind.Name == "Queue":
		part("spec")["weight"] = how
	case kind.Name == "PodGroup" && how == 1:
		part("spec")["queue"] = "no-such-queue"
	case kind.Name == "PodGroup":
		part("spec")["minMember"] = how
	case kind.Name == "PriorityClass":
		object["value"] = how
	}
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return data
}

func TestObjectsFollowAnyChanges(t *testing.T) {
	raced.Skip(t)
	sample := sampleObjects(t)
	rapid.Check(t, func(t *rapid.T) {
		held, o := map[objects.Kind]map[string]json.RawMessage{}, volcano.NewObjects()
		for kind, byKey := range sample {
			held[kind] = maps.Clone(byKey)
			var all []*objects.Object
			for _, item := range byKey {
				all = append(all, readObject(t, o, kind, item))
			}
			o.Replace(kind, all)
		}
		kinds := slices.SortedFunc(maps.Keys(sample), func(a, b objects.Kind) int { return len(a.Name) - len(b.Name) })
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range rapid.IntRange(1, 8).Draw(t, "changes") {
				kind := rapid.SampledFrom(kinds).Draw(t, "kind")
				key := rapid.SampledFrom(slices.Sorted(maps.Keys(sample[kind]))).Draw(t, "key")
				item := varied(t, kind, sample[kind][key], rapid.IntRange(0, 3).Draw(t, "how"))
				if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
					_, there := held[kind][key]
					delete(held[kind], key)
					require.Equal(t, there, o.Remove(readObject(t, o, kind, item)))
					continue
				}
				held[kind][key] = item
				o.Put(readObject(t, o, kind, item))
			}
			require.True(t, proto.Equal(listed(t, held), ofObjects(t, o)))
		}
	})
}

func TestWhatIsNotReadOfAnObjectChangesNothing(t *testing.T) {
	o, kind := volcano.NewObjects(), kindOf["nodes.yaml"]
	node := func(rest string) *objects.Object {
		return readObject(t, o, kind, []byte(`{"metadata": {"name": "n", `+rest+`}, "status": {"allocatable": {"cpu": "4"}, "images": []}}`))
	}
	require.True(t, o.Put(node(`"resourceVersion": "1"`)))
	again := node(`"resourceVersion": "2", "managedFields": []`)
	require.Equal(t, "2", again.ResourceVersion)
	require.False(t, o.Put(again))
	require.True(t, o.Put(node(`"labels": {"zone": "a"}`)))
}

func TestABookmarkIsNoObject(t *testing.T) {
	o, kind := volcano.NewObjects(), kindOf["pods.yaml"]
	mark := readObject(t, o, kind, []byte(`{"kind": "Pod", "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}`))
	require.Equal(t, "9", mark.ResourceVersion)
	require.True(t, mark.Synced)
	require.False(t, o.Put(mark))
	require.False(t, o.Remove(mark))
	require.Zero(t, o.Count(kind))
}

func TestAnObjectThatCannotBeReadIsLeftOutAndNamed(t *testing.T) {
	o, kind := volcano.NewObjects(), kindOf["queues.yaml"]
	require.True(t, o.Put(readObject(t, o, kind, []byte(`{"metadata": {"name": "good"}}`))))
	require.True(t, o.Put(readObject(t, o, kind, []byte(`{"metadata": {"name": "bad"}, "spec": {"capability": {"cpu": "many"}}}`))))
	cluster, err := o.Cluster()
	require.NoError(t, err)
	require.Len(t, cluster.Snapshot.GetQueues(), 1)
	require.Len(t, cluster.Faulty, 1)
	require.Equal(t, `Queue bad: spec.capability.cpu: not a quantity: "many"`, cluster.Faulty[0].String())
	require.Equal(t, "bad", cluster.Snapshot.GetLeftOuts()[0].GetName())
	for _, text := range []string{"", "[", "7", "null"} {
		_, err := o.Read(kind, []byte(text))
		require.Error(t, err, text)
	}
}
