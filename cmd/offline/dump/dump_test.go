package dump_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/offline/dump"
)

const queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {weight: 2}\n"

func read(sources ...objects.Source) (*dump.Dump, error) {
	return dump.Read(sources, time.Unix(1, 0), func(int) {})
}

func source(name, text string) objects.Source { return objects.Source{Name: name, Data: []byte(text)} }

func TestAConfigurationBesideTheObjectsGivesThePolicy(t *testing.T) {
	d, err := read(source("q.yaml", queue), source("v.conf", "tiers:\n- plugins:\n  - name: capacity\nactions: enqueue, allocate, backfill, preempt, reclaim\n"))
	require.NoError(t, err)
	require.NotNil(t, d.Policy.GetTiers()[0].GetPlugins()[0].GetCapacity())
	require.True(t, d.Patchable())
	_, err = read(source("q.yaml", queue), source("v.conf", "tiers: []"), source("w.conf", "tiers: []"))
	require.EqualError(t, err, "v.conf and w.conf: give one configuration of Volcano's scheduler")
}

func TestASnapshotIsReadAsOne(t *testing.T) {
	d, err := read(source("s.json", `{"queues": [{"name": "a", "weight": 2}]}`))
	require.NoError(t, err)
	require.Equal(t, "a", d.Snapshot.GetQueues()[0].GetName())
	require.False(t, d.Patchable())
	patches, err := d.Patches([]byte(`{"answers": [{"remedies": {"remedies": [{}]}}]}`))
	require.NoError(t, err)
	require.JSONEq(t, `[]`, string(patches))
}

func TestFilesWithoutAClusterAreRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"e.yaml", "", "no input: e.yaml is empty; give the output of: kubectl get"},
		{"l.yaml", "apiVersion: v1\nkind: List\nitems: []\n", "holds no object of Kubernetes"},
		{"s.json", `{}`, "s.json has no queue, no job and no node"},
		{"s.json", `{"queues": 3}`, "s.json is neither a dump of kubectl nor a snapshot"},
		{"y.yaml", "a: [1", "y.yaml"},
	} {
		_, err := read(source(c.name, c.text))
		require.ErrorContains(t, err, c.want)
	}
	_, err := read()
	require.EqualError(t, err, "no file was given")
}

func TestObjectsOfKueueAreJudgedByKueue(t *testing.T) {
	d, err := read(source("k.yaml", "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: f}\n"))
	require.NoError(t, err)
	require.Equal(t, "kueue", d.Preset)
}
