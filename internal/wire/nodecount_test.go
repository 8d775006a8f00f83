package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

const twelve = `
dimensions: "cpu" dimensions: "memory"
nodes { name: "n0" allocatable { dimensions: [0, 1] amounts: [8000, 100] } }
nodes { name: "n1" allocatable { dimensions: [0, 1] amounts: [8000, 20] } }
nodes { name: "n2" allocatable { dimensions: [0, 1] amounts: [32000, 100] } used_by_others { dimensions: 0 amounts: 20000 } }
nodes { name: "n3" allocatable { dimensions: [0, 1] amounts: [32000, 100] } used_by_others { dimensions: 0 amounts: 20000 } }
nodes { name: "n4" allocatable { dimensions: [0, 1] amounts: [32000, 100] } }
nodes { name: "n5" allocatable { dimensions: [0, 1] amounts: [32000, 100] } }
nodes { name: "n6" allocatable { dimensions: [0, 1] amounts: [32000, 100] } }
nodes { name: "n7" allocatable { dimensions: [0, 1] amounts: [32000, 100] } }
nodes { name: "n8" allocatable { dimensions: [0, 1] amounts: [32000, 100] } }
nodes { name: "n9" allocatable { dimensions: [0, 1] amounts: [32000, 100] } unschedulable { cause: UNSCHEDULABLE_CAUSE_CORDONED } }
nodes { name: "n10" allocatable { dimensions: [0, 1] amounts: [32000, 100] } unschedulable { cause: UNSCHEDULABLE_CAUSE_CORDONED detail: "x" } }
nodes { name: "n11" allocatable { dimensions: [0, 1] amounts: [32000, 100] } unschedulable { cause: UNSCHEDULABLE_CAUSE_NOT_READY } }
node_sets { name: "s" nodes: [0, 1, 2, 3, 9, 10, 11] rule: "node selector a=b; no toleration of taint nvidia.com/gpu"
  exclusions { rule: "taint nvidia.com/gpu" } exclusions { rule: "node selector a=b" nodes: 5 } }
queues { name: "q" }
jobs { name: "j" queue: "q" phase: JOB_PHASE_INQUEUE min_available: 1 groups { node_set: "s"
  request { dimensions: [0, 1] amounts: [24000, 50] } tasks { name: "j-0" } } }`

func TestTheNodesAreCountedOnceByWhatTheyLack(t *testing.T) {
	s := open(t, twelve, `tiers { plugins { gang {} } }`)
	e := ask(t, s, `explain { jobs { indices: 0 } }`).GetExplain().GetJobs()[0]
	f := e.GetFindings()[e.GetBlocking()]
	want := parse(t, &apportionv1.Finding{}, `
nodes { count: 4 code: CAUSE_CODE_NODE_NOT_IN_SET detail: "taint nvidia.com/gpu" free: 4 }
nodes { count: 2 code: CAUSE_CODE_NODE_UNSCHEDULABLE detail: "cordoned" free: 2 }
nodes { count: 1 code: CAUSE_CODE_NODE_NOT_IN_SET detail: "node selector a=b" free: 1 }
nodes { count: 1 code: CAUSE_CODE_NODE_UNSCHEDULABLE detail: "not ready" free: 1 }
nodes { count: 2 code: CAUSE_CODE_INSUFFICIENT_RESOURCE dimensions: 0 }
nodes { count: 1 code: CAUSE_CODE_NODE_TOO_SMALL dimensions: 0 }
nodes { count: 1 code: CAUSE_CODE_NODE_TOO_SMALL dimensions: [0, 1] }`)
	require.True(t, proto.Equal(want, &apportionv1.Finding{Nodes: f.GetNodes()}), "%v", f.GetNodes())
	const counted = "0/12 nodes take j-0: 4 with taint nvidia.com/gpu, 2 cordoned, 1 excluded (node selector a=b), 1 not ready, " +
		"which have enough left; 2 too full (insufficient cpu), 2 too small (insufficient cpu or memory)"
	require.Contains(t, f.GetText(), counted)

	plan := ask(t, s, `plan { job { indices: 0 } }`).GetPlan()
	require.True(t, proto.Equal(want, &apportionv1.Finding{Nodes: plan.GetMiss().GetNodes()}), "%v", plan)
	require.Contains(t, plan.GetText(), counted)
}

func TestAModelKeepsWhyNodesAreExcluded(t *testing.T) {
	m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, twelve))
	require.NoError(t, err)
	require.Len(t, decode.SnapshotOf(m).GetNodeSets()[0].GetExclusions(), 2)
	change := parse(t, &apportionv1.Change{}, `remove_nodes: "n5"`)
	data, err := proto.Marshal(change)
	require.NoError(t, err)
	m, err = new(decode.Decoder).CompileChange(m, data, decode.Guard{})
	require.NoError(t, err)
	left := decode.SnapshotOf(m).GetNodeSets()[0].GetExclusions()
	require.Len(t, left, 1, "that of a removed node would be of all others")
	require.Equal(t, "taint nvidia.com/gpu", left[0].GetRule())
}

func TestFaultyExclusionsAreNamedByPath(t *testing.T) {
	_, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, `nodes { name: "n" }
node_sets { name: "a" exclusions { rule: "x" } exclusions { nodes: [0, 0, 1] } exclusions { rule: "y" } }`))
	var fault *decode.Fault
	require.ErrorAs(t, err, &fault)
	var paths []string
	for _, v := range fault.Violations.Violations {
		paths = append(paths, v.Path)
	}
	require.ElementsMatch(t, []string{
		"snapshot.node_sets[0].exclusions[1].rule", "snapshot.node_sets[0].exclusions[1].nodes",
		"snapshot.node_sets[0].exclusions[1].nodes[2]", "snapshot.node_sets[0].exclusions[2].nodes",
	}, paths)
}
