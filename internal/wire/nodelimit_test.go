package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

const limitedQueues = `
	dimensions: ["nvidia.com/gpu", "cpu"]
	nodes { name: "n" group: "g" allocatable { dimensions: 1 amounts: 9000 } }
	queues {
		name: "a"
		node_group_affinity { affinity { required_groups: "g" } }
		node_group_limits {
			groups { group: "g" limit { dimensions: [1, 0] amounts: [3000, 2000] } }
			groups { group: "h" limit {} }
			groups { group: "" }
		}
	}
	queues { name: "b" node_group_limits { invalid: true } }
	queues { name: "c" node_group_limits {} }
	jobs { name: "j" queue: "a" groups { request { dimensions: 1 amounts: 2000 } tasks { uid: "t" } tasks { uid: "r" status: TASK_STATUS_RUNNING node: 0 } } }`

// TestLimitsForNodeGroupsComeBackAsTheyWereGiven reads a snapshot in both forms, describes it, and reads it again with a dimension more.
func TestLimitsForNodeGroupsComeBackAsTheyWereGiven(t *testing.T) {
	given := parse(t, &apportionv1.Snapshot{}, limitedQueues)
	decoded, err := decode.Compile(given)
	require.NoError(t, err)
	data, err := proto.Marshal(given)
	require.NoError(t, err)
	read, err := new(decode.Decoder).CompileWithin(data, decode.Guard{})
	require.NoError(t, err)
	want := parse(t, &apportionv1.Queue{}, `name: "a" weight: 1 reclaimable: true state: QUEUE_STATE_OPEN
		node_group_affinity { affinity { required_groups: "g" } }
		node_group_limits {
			groups { group: "g" limit { dimensions: [0, 1] amounts: [2000, 3000] } } groups { group: "h" limit {} } groups { group: "" }
		}`)
	for range 2 {
		for _, s := range []*apportionv1.Snapshot{decode.SnapshotOf(decoded), decode.SnapshotOf(read)} {
			require.Empty(t, queueDifference(want, s.GetQueues()[0], s.GetDimensions()))
			require.True(t, s.GetQueues()[1].GetNodeGroupLimits().GetInvalid())
			require.Nil(t, s.GetQueues()[2].GetNodeGroupLimits())
		}
		decoded, err = decode.Compile(decode.SnapshotOf(decoded))
		require.NoError(t, err)
	}
}

// queueDifference returns a queue where it is not the wanted one, whose amounts are of the GPUs and then of the CPUs.
func queueDifference(want, got *apportionv1.Queue, dimensions []string) string {
	got = proto.CloneOf(got)
	for _, l := range got.GetNodeGroupLimits().GetGroups() {
		if r := l.GetLimit(); len(r.GetDimensions()) == 2 && dimensions[r.GetDimensions()[0]] == "cpu" {
			r.Amounts[0], r.Amounts[1] = r.Amounts[1], r.Amounts[0]
		}
	}
	if proto.Equal(want, got) {
		return ""
	}
	return got.String()
}

func TestAGroupWithTwoLimitsOrANegativeOneIsNamed(t *testing.T) {
	s := parse(t, &apportionv1.Snapshot{}, `
		dimensions: "cpu"
		queues { name: "a" node_group_limits {
			groups { group: "g" limit { dimensions: 0 amounts: 1 } } groups { group: "g" limit { dimensions: 3 amounts: -1 } }
			groups { group: "h" limit { dimensions: 0 amounts: -1 } }
		} }`)
	_, err := decode.Compile(s)
	require.ErrorContains(t, err, "snapshot.queues[0].node_group_limits.groups[1].group")
	require.ErrorContains(t, err, "snapshot.queues[0].node_group_limits.groups[1].limit")
	require.ErrorContains(t, err, "snapshot.queues[0].node_group_limits.groups[2].limit")
}

// TestAChangeCarriesLimits changes the limits of a queue, and adds a dimension, in a session that decides as Volcano 1.16 does.
func TestAChangeCarriesLimits(t *testing.T) {
	s := open(t, limitedQueues, `volcano_release: VOLCANO_RELEASE_1_16 tiers { plugins { node_group {} } }`)
	question := `nodes { tasks { names: "t" } explain: true }`
	requireAnswer(t, `nodes { tasks { task: 0 nodes: 0 fits: false scores: 100 causes {
		plugin: "nodegroup" code: CAUSE_CODE_ABOVE_NODE_GROUP_LIMIT queue: 0 dimensions: 1 have: 2000 need: 2000 limit: 3000 detail: "g" node: 0 } } }`, ask(t, s, question))
	ask(t, s, `event { change { dimensions: "fpga" nodes { name: "m" allocatable { dimensions: 0 amounts: 1 } } } }`)
	require.False(t, ask(t, s, question).GetNodes().GetTasks()[0].GetFits()[0], "a change of something else keeps limits and release")
	ask(t, s, `event { change { dimensions: ["fpga", "cpu"] queues {
		name: "a" node_group_affinity { affinity { required_groups: "g" } }
		node_group_limits { groups { group: "g" limit { dimensions: 1 amounts: 4000 } } }
	} } }`)
	require.True(t, ask(t, s, question).GetNodes().GetTasks()[0].GetFits()[0])
}
