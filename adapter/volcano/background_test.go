package volcano_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestObjectsOfABackgroundCountWhereNoOtherSourceHasTheirKind(t *testing.T) {
	queue := func(name, weight string) string {
		return "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " + name + "}\nspec: {weight: " + weight + "}\n"
	}
	node := "---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1}}\n"
	cluster := []byte(queue("root", "1") + queue("default", "1") + queue("gone", "1") + queue("kept", "1") + node)
	read, err := volcano.ReadManifests([]objects.Source{
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

	_, err = volcano.ReadManifests([]objects.Source{{Name: "a", Data: []byte(node)}, {Name: "b", Data: []byte(node)}})
	require.ErrorContains(t, err, "Node n is already at a:")
}

func TestAQueueWithoutAStateHasThatOfTheQueueThatItReplaces(t *testing.T) {
	queue := func(name, status string) string {
		return "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " + name + "}\nspec: {weight: 1}\n" + status
	}
	file := objects.Source{Name: "queues", Data: []byte(queue("new", "") + queue("shut", "") + queue("own", "status: {state: Closing}\n"))}
	cluster := objects.Source{Name: "cluster", Background: true, Data: []byte(
		queue("shut", "status: {state: Closed}\n") + queue("own", "status: {state: Open}\n") + queue("root", ""),
	)}
	states := func(sources ...objects.Source) map[string]apportionv1.QueueState {
		read, err := volcano.ReadManifests(sources)
		require.NoError(t, err)
		states := map[string]apportionv1.QueueState{}
		for _, q := range read.Snapshot.GetQueues() {
			states[q.GetName()] = q.GetState()
		}
		return states
	}
	const open = apportionv1.QueueState_QUEUE_STATE_OPEN
	require.Equal(t, map[string]apportionv1.QueueState{
		"new": open, "shut": apportionv1.QueueState_QUEUE_STATE_CLOSED, "own": apportionv1.QueueState_QUEUE_STATE_CLOSING, "root": open,
	}, states(cluster, file))
	require.Equal(t, open, states(file)["new"], "Volcano's controller opens a queue without a state")
	read, err := volcano.ReadManifests([]objects.Source{file}, volcano.AsScheduler())
	require.NoError(t, err)
	require.Equal(t, apportionv1.QueueState_QUEUE_STATE_UNKNOWN, read.Snapshot.GetQueues()[0].GetState())
	said := objects.Source{Name: "said", Data: []byte(queue("said", "status: {state: Unknown}\n") + queue("none", "status: {state: ''}\n"))}
	require.Equal(t, map[string]apportionv1.QueueState{"said": apportionv1.QueueState_QUEUE_STATE_UNKNOWN, "none": open}, states(said))
}

func TestAQueueWithoutAWeightHasThatOfTheQueueThatItReplaces(t *testing.T) {
	queue := func(name, spec string) string {
		return "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	}
	file := objects.Source{Name: "queues", Data: []byte(
		queue("new", "") + queue("heavy", "") + queue("own", "weight: 2") + queue("zero", "weight: 0"),
	)}
	cluster := objects.Source{Name: "cluster", Background: true, Data: []byte(queue("heavy", "weight: 7") + queue("own", "weight: 7"))}
	for story, test := range map[string]struct {
		sources []objects.Source
		options []volcano.Option
		want    []uint32
	}{
		"in a cluster":      {[]objects.Source{cluster, file}, nil, []uint32{1, 7, 2, 0}},
		"alone":             {[]objects.Source{file}, nil, []uint32{1, 1, 2, 0}},
		"for the scheduler": {[]objects.Source{file}, []volcano.Option{volcano.AsScheduler()}, []uint32{0, 0, 2, 0}},
	} {
		t.Run(story, func(t *testing.T) {
			read, err := volcano.ReadManifests(test.sources, test.options...)
			require.NoError(t, err)
			var got []uint32
			for _, name := range []string{"new", "heavy", "own", "zero"} {
				for _, q := range read.Snapshot.GetQueues() {
					if q.GetName() == name {
						got = append(got, q.GetWeight())
					}
				}
			}
			require.Equal(t, test.want, got)
		})
	}
}
