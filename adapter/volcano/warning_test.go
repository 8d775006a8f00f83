package volcano

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

// toldOf lists warnings as place and message.
func toldOf(cluster *Cluster) []string {
	list := make([]string, 0, len(cluster.Warnings))
	for _, w := range cluster.Warnings {
		list = append(list, w.GetPath()+": "+w.GetMessage())
	}
	return list
}

func TestFieldsThatVolcanoDoesNotHaveAreWarnings(t *testing.T) {
	const unknown = ": Volcano v1.15.1 has no such field, so it has no effect here"
	cluster := read(t, `
kind: Queue
metadata: {name: q}
spec:
  wieght: 7
  guarantee: {resources: {cpu: 1}}
  affinity: {nodeGroupAffinity: {required: [a]}}
---
kind: PodGroup
metadata: {name: j}
spec:
  queue: q
  minmember: 3
  networkTopology: {mod: hard}
  subGroupPolicy:
  - {name: a, subGroupSize: 2, size: 3}
  - {name: b, networkTopology: {tier: 1}}
`)
	require.Equal(t, []string{
		"cluster.yaml:5: spec.wieght" + unknown,
		"cluster.yaml:6: spec.guarantee.resources" + unknown,
		"cluster.yaml:7: spec.affinity.nodeGroupAffinity.required" + unknown,
		"cluster.yaml:13: spec.minmember" + unknown,
		"cluster.yaml:14: spec.networkTopology.mod" + unknown,
		"cluster.yaml:16: spec.subGroupPolicy[0].size" + unknown,
		"cluster.yaml:17: spec.subGroupPolicy[1].networkTopology.tier" + unknown,
	}, toldOf(cluster))
}

func TestStatesAndPhasesThatDoNotExistAreWarnings(t *testing.T) {
	cluster := read(t, `
- {kind: Queue, metadata: {name: q}, status: {state: Opened}}
- {kind: Queue, metadata: {name: fine}, status: {state: Unknown}}
- {kind: PodGroup, metadata: {name: j}, spec: {queue: q}, status: {phase: Going}}
- {kind: Pod, metadata: {name: p}, status: {phase: Waiting}}
`)
	require.Equal(t, []string{
		`cluster.yaml:2: status.state: not a state of a queue: "Opened"; valid are Open, Closing, Closed and Unknown, as which it counts`,
		`cluster.yaml:4: status.phase: not a phase of a PodGroup: "Going"; valid are Pending, Inqueue, Running, Completed and Unknown, as which it counts`,
		`cluster.yaml:5: status.phase: not a phase of a pod: "Waiting"; valid are Pending, Running, Succeeded, Failed and Unknown, as which it counts`,
	}, toldOf(cluster))
}

func TestEntitiesOfTheSnapshotHavePlaces(t *testing.T) {
	cluster, err := ReadManifests([]objects.Source{
		{Name: "a.yaml", Data: []byte("items:\n- kind: Queue\n  metadata: {name: q}\n- kind: PodGroup\n  metadata: {name: gone}\n  spec: {queue: nowhere}\n")},
		{Name: "b.json", Data: []byte("{\"items\": [\n{\"kind\": \"PodGroup\", \"metadata\": {\"name\": \"j\"}, \"spec\": {\"queue\": \"q\"}},\n" +
			"{\"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}]}")},
		{Name: "c.yaml", Data: []byte("items: []\n")},
		{Name: "d.yaml"},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"c.yaml", "d.yaml"}, cluster.Empty)
	for path, want := range map[string]string{
		"snapshot.queues[0].capability":  "a.yaml:2",
		"snapshot.jobs[0]":               "b.json:2",
		"open.input.snapshot.nodes[0].x": "b.json:3",
		"snapshot.nodes[7]":              "",
		"snapshot.queues[99999999999]":   "",
		"snapshot.dimensions":            "",
		"policy.tiers[0]":                "",
	} {
		require.Equal(t, want, cluster.Place(path), path)
	}
}

func TestProgressEndsWithTheLastObject(t *testing.T) {
	sources := []objects.Source{
		{Name: "a.yaml", Data: []byte("items:\n- kind: Queue\n  metadata: {name: q}\n- kind: Queue\n  metadata: {name: r}\n")},
		{Name: "b.json", Data: []byte("{\"items\": [{\"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}, {\"kind\": \"Node\", \"metadata\": {\"name\": \"m\"}}]}")},
	}
	var told []int
	_, err := ReadManifests(sources, WithProgress(func(read int) { told = append(told, read) }))
	require.NoError(t, err)
	require.Len(t, told, 4)
	require.IsNonDecreasing(t, told)
	require.LessOrEqual(t, told[3], len(sources[0].Data)+len(sources[1].Data))
	require.Greater(t, told[3], len(sources[0].Data))
}
