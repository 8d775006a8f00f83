package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
)

// For any question, the size that is estimated while an answer is made is at least the size of the answer.
func TestNoAnswerIsLargerThanItsEstimate(t *testing.T) {
	policies := []string{
		`tiers { plugins { priority {} } plugins { gang {} } plugins { conformance {} } } tiers { plugins { drf {} } plugins { proportion {} } plugins { binpack {} } }`,
		`tiers { plugins { capacity { hierarchical: true ancestor_reclaim_level: 2 } } plugins { hierarchical_drf {} } plugins { node_group {} } }`,
		`tiers { plugins { capacity {} } plugins { overcommit {} } plugins { cooldown {} } }`,
	}
	questions := []string{
		`shares { jobs {} tree: true explain {} }`, `shares { jobs { indices: 0 } fields: SHARE_FIELD_SHARE }`,
		`shares { explain { queues { indices: 0 } } }`, `jobs {}`, `enqueue {}`, `enqueue { mode: ENQUEUE_MODE_ACTION }`, `event { admit { jobs { indices: 0 } } }`,
		`allocatable { tasks { indices: [0, 1, 2, 3, 4, 5] } explain: true }`, `preemptive { tasks { indices: [0, 1, 2, 3] } explain: true }`,
		`reclaim { claimant { indices: 0 } explain: true }`, `reclaim { claimant { indices: 1 } candidates { indices: [0, 2, 3, 3, 5] } explain: true eligible_only: true }`,
		`preempt { claimant { indices: 2 } candidates { indices: [0, 1, 3, 4, 5] } }`, `order { queues {} pairs: true }`, `order { jobs {} pairs: true }`,
		`order { tasks { indices: [0, 1, 2, 3, 4, 5] } claimant_task: 0 pairs: true }`, `nodes { tasks { indices: [0, 1, 2] } by_plugin: true explain: true }`,
		`nodes { tasks { indices: [0, 1, 2] } top: 2 }`, `inspect { nodes: true jobs: true tasks: true }`, `mark {}`, `rollback {}`,
		`event { change { remove_jobs: "none" } }`, `event { status { tasks { indices: 5 } status: TASK_STATUS_FAILED } }`, `event { change { jobs { uid: "new" queue: "x" } } }`,
	}
	rapid.Check(t, func(t *rapid.T) {
		m, err := decode.Compile(generate.Snapshot(generate.Shape{
			Queues: rapid.IntRange(1, 12).Draw(t, "queues"), Jobs: rapid.IntRange(1, 12).Draw(t, "jobs"), Tasks: rapid.IntRange(6, 60).Draw(t, "tasks"),
			Nodes: rapid.IntRange(0, 5).Draw(t, "nodes"), Depth: rapid.IntRange(0, 3).Draw(t, "depth"), Seed: rapid.Uint64().Draw(t, "seed"),
			Dimensions: rapid.IntRange(2, 64).Draw(t, "dimensions"), UIDs: rapid.Bool().Draw(t, "uids"),
		}))
		require.NoError(t, err)
		policy := &apportionv1.Policy{}
		require.NoError(t, prototext.Unmarshal([]byte(rapid.SampledFrom(policies).Draw(t, "policy")), policy))
		s, err := Open(m, policy, Options{})
		require.NoError(t, err)
		s.Show(rapid.Bool().Draw(t, "texts"), rapid.Bool().Draw(t, "omit names"))
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			text := rapid.SampledFrom(questions).Draw(t, "question")
			step := &apportionv1.Step{}
			require.NoError(t, prototext.Unmarshal([]byte(text), step), text)
			answer, err := s.Ask(step)
			if err != nil {
				continue
			}
			require.LessOrEqual(t, proto.Size(answer), s.out.maximum-s.out.left+messageBytes, text)
		}
	})
}

func TestAListThatIsTooLargeIsRefusedBeforeItIsMade(t *testing.T) {
	e := encoder{}
	e.begin(resource.Dimensions{}, 1000)
	require.NoError(t, e.room(50, "tasks"))
	fault := decode.AsFault(e.room(1<<40, "tasks"))
	require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, fault.Reason)
	require.Equal(t, "tasks", fault.Field)
}

func TestPiecesOfMemoryAreHandedOutOnce(t *testing.T) {
	var c chunk[int]
	seen := map[*int]bool{}
	for i := range 500 {
		piece := c.take(i % 7)
		require.Len(t, piece, i%7)
		require.Equal(t, len(piece), cap(piece))
		for k := range piece {
			require.False(t, seen[&piece[k]])
			seen[&piece[k]] = true
		}
	}
}
