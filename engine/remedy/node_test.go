package remedy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/remedy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// mixedCluster has three nodes of each of ten shapes with 4 GPUs and two nodes with 8 GPUs that are full, and a gang of three tasks that
// each need 8 GPUs of one node. change may change the queue.
func mixedCluster(t *testing.T, change func(*model.QueueSpec)) (*engine.Session, model.JobID) {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	for shape := range 10 {
		for n := range 3 {
			b.Node(model.NodeSpec{Name: fmt.Sprintf("mig-%d-%d", shape, n), Allocatable: enginetest.Amounts(8+shape, 4)})
		}
	}
	for n := range 2 {
		b.Node(model.NodeSpec{Name: fmt.Sprintf("h100-%d", n+1), Allocatable: enginetest.Amounts(8, 8)})
	}
	queue := model.QueueSpec{Name: "q", Weight: 1, Reclaimable: true}
	change(&queue)
	b.Queue(queue)
	gang := func(uid string, phase model.Phase, nodes ...model.NodeID) {
		b.Job(model.JobSpec{UID: uid, Queue: "q", MinAvailable: uint32(len(nodes)), Phase: phase})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(1, 8)})
		for k, n := range nodes {
			task := model.TaskSpec{UID: fmt.Sprint(uid, k), Node: n, Index: int32(k)}
			if n != model.None {
				task.Status = model.Running
			}
			b.Task(&task)
		}
	}
	gang("runs", model.PhaseRunning, 30, 31)
	gang("waits", model.PhaseInqueue, model.None, model.None, model.None)
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["capacity"], nil)
	require.NoError(t, err)
	j, _ := m.Job("waits")
	return s, j
}

func remediesOf(found *remedy.Answer, kind remedy.Kind) []remedy.Remedy {
	var list []remedy.Remedy
	for _, remedy := range found.List {
		if remedy.Kind == kind {
			list = append(list, remedy)
		}
	}
	return list
}

func TestNodesOfTheRarestShapeAreFoundWhereOnlyTheyHelp(t *testing.T) {
	s, j := mixedCluster(t, func(*model.QueueSpec) {})
	found := remedies(t, s, j)
	require.Equal(t, judge.CheckNodes, found.Check)
	more := remediesOf(found, remedy.MoreNodes)
	require.Len(t, more, 1, "nodes with too few GPUs are not tried")
	require.Equal(t, "h100-1", s.View().Nodes[more[0].Edits[0].Node].Name)
	require.EqualValues(t, 3, more[0].Edits[0].Amount)
	for _, untried := range found.Untried {
		require.NotEqual(t, remedy.BeyondBound, untried.Cause, "%+v", untried)
	}
}

func TestNodesOfTheRarestShapeAreFoundBesideALimit(t *testing.T) {
	s, j := mixedCluster(t, func(q *model.QueueSpec) { q.Capability = enginetest.Amounts(1000, 16) })
	found := remedies(t, s, j)
	require.Equal(t, judge.CheckShare, found.Check)
	both := remediesOf(found, remedy.Combined)
	require.NotEmpty(t, both)
	require.Equal(t, "h100-1", s.View().Nodes[both[0].Edits[0].Node].Name)
	// Nodes of any shape could be added: shapes that are not tried are counted.
	for _, kind := range []remedy.Kind{remedy.MoreNodes, remedy.Combined} {
		require.Contains(t, found.Untried, remedy.Untried{
			Kind: kind, Cause: remedy.BeyondBound, Tried: 8, Of: 11, Bound: remedy.BoundShapes,
		})
	}
}

func TestEachBoundThatCutsASearchIsNamed(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	for n := range 100 {
		node := model.NodeSpec{Name: fmt.Sprintf("n%02d", n), Allocatable: enginetest.Amounts(4, 1)}
		if n >= 50 {
			node.Unschedulable = &model.Unschedulable{Cause: model.Cordoned}
		}
		b.Node(node)
	}
	b.NodeSet(model.NodeSetSpec{Name: "first", Nodes: []uint32{0}})
	parent := ""
	for level := range 12 {
		name := fmt.Sprintf("level-%d", level)
		b.Queue(model.QueueSpec{Name: name, Parent: parent, Weight: 1 << 16, Capability: enginetest.Amounts(1, 0)})
		parent = name
	}
	b.Job(model.JobSpec{UID: "wide", Queue: parent, MinAvailable: 11, Phase: model.PhaseInqueue})
	for role := range 10 {
		b.Group(model.GroupSpec{Role: fmt.Sprint(role), Request: enginetest.Amounts(2, 1), MinAvailable: 1, HasMin: true, NodeSet: "first"})
		for k := range 2 {
			b.Task(&model.TaskSpec{UID: fmt.Sprint(role, "-", k), Node: model.None})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["capacity"], nil)
	require.NoError(t, err)
	j, _ := m.Job("wide")
	found := remedies(t, s, j)
	for _, want := range []remedy.Untried{
		{Kind: remedy.SmallerMinimum, Tried: 8, Of: 10, Bound: remedy.BoundRoles},
		{Kind: remedy.SmallerRequest, Tried: 8, Of: 10, Bound: remedy.BoundRoles},
		{Kind: remedy.HigherCapability, Tried: 8, Bound: remedy.BoundLevels},
		{Kind: remedy.HigherWeight, Tried: 8, Bound: remedy.BoundLevels},
		{Kind: remedy.HigherWeight, Tried: 1 << 16, Bound: remedy.BoundWeight},
		{Kind: remedy.Combined, Tried: 16, Of: 50, Bound: remedy.BoundNodes},
	} {
		want.Cause = remedy.BeyondBound
		require.Contains(t, found.Untried, want)
	}
}

func TestMoreNodesThanAreTriedMayHelpWhereTheTotalHoldsTheJobBack(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Amounts(4, 1)})
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	b.Job(model.JobSpec{UID: "large", Queue: "q", MinAvailable: 1, MinResources: enginetest.Amounts(1, 100)})
	b.Group(model.GroupSpec{Request: enginetest.Amounts(1, 1)})
	b.Task(&model.TaskSpec{UID: "t", Node: model.None})
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
	require.NoError(t, err)
	j, _ := m.Job("large")
	require.Contains(t, remedies(t, s, j).Untried, remedy.Untried{
		Kind: remedy.MoreNodes, Cause: remedy.BeyondBound, Tried: 64, Bound: remedy.BoundAddedNodes,
	})
}

// constrained is a cluster of nodes n0 to n3 with 4 cores, where a gang of two tasks of 3 cores may use none but the nodes of a set.
func constrained(t *testing.T, set ...uint32) (*engine.Session, model.JobID) {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	for n := range 4 {
		node := model.NodeSpec{Name: fmt.Sprintf("n%d", n), Allocatable: enginetest.Amounts(4, 0)}
		if n == 3 {
			node.Unschedulable = &model.Unschedulable{Cause: model.NotReady}
		}
		b.Node(node)
	}
	b.NodeSet(model.NodeSetSpec{Name: "set", Nodes: set})
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	b.Job(model.JobSpec{UID: "gang", Queue: "q", MinAvailable: 2, Phase: model.PhaseInqueue})
	b.Group(model.GroupSpec{Request: enginetest.Amounts(3, 0), NodeSet: "set"})
	for k := range 2 {
		b.Task(&model.TaskSpec{UID: fmt.Sprint("gang-", k), Node: model.None})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
	require.NoError(t, err)
	j, _ := m.Job("gang")
	return s, j
}

func TestTasksThatANodeSetKeepsFromRoomMayUseOtherNodes(t *testing.T) {
	for name, test := range map[string]struct{ set, others []uint32 }{
		"no node is in the set": {others: []uint32{0, 1}},
		"one node is missing":   {set: []uint32{2}, others: []uint32{0}},
		"the set has a node that is not ready": {
			set: []uint32{3, 1}, others: []uint32{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := constrained(t, test.set...)
			found := remedies(t, s, j)
			list := remediesOf(found, remedy.OtherNodes)
			require.Len(t, list, 1)
			var nodes []uint32
			for i, e := range list[0].Edits {
				require.Equal(t, edit.AllowedNode, e.Kind)
				nodes = append(nodes, uint32(e.Node))
				require.False(t, runsAfter(t, s, j, oneLess(list[0].Edits, i)))
			}
			require.ElementsMatch(t, test.others, nodes)
			require.True(t, runsAfter(t, s, j, list[0].Edits))
		})
	}
}
