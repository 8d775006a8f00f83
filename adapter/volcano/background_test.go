package volcano_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/volcano"
)

func TestObjectsOfABackgroundCountWhereNoOtherSourceHasTheirKind(t *testing.T) {
	queue := func(name, weight string) string {
		return "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " + name + "}\nspec: {weight: " + weight + "}\n"
	}
	node := "---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1}}\n"
	cluster := []byte(queue("root", "1") + queue("default", "1") + queue("gone", "1") + queue("kept", "1") + node)
	read, err := volcano.ReadManifests([]volcano.Source{
		{Name: "cluster", Data: cluster, Background: true},
		{Name: "queues", Data: []byte(queue("kept", "5") + queue("default", "2"))},
	})
	require.NoError(t, err)
	weights := map[string]uint32{}
	for _, q := range read.Snapshot.GetQueues() {
		weights[q.GetName()] = q.GetWeight()
	}
	require.Equal(t, map[string]uint32{"kept": 5, "default": 2, "root": 1}, weights)
	require.Len(t, read.Snapshot.GetNodes(), 1)

	_, err = volcano.ReadManifests([]volcano.Source{{Name: "a", Data: []byte(node)}, {Name: "b", Data: []byte(node)}})
	require.ErrorContains(t, err, "Node n is already at a:")
}
