package place_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
)

// idleNodes is a session on idle nodes of the given amounts of cpu and memory, with a job of tasks that wait.
func idleNodes(t require.TestingT, nodes, tasks [][2]float64) *engine.Session {
	amounts := func(x [2]float64) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{x[0], x[1]}}
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "memory"})
	for i, node := range nodes {
		b.Node(model.NodeSpec{Name: string(rune('a' + i)), Allocatable: amounts(node)})
	}
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	b.Job(model.JobSpec{UID: "j", Queue: "q"})
	b.Group(model.GroupSpec{})
	for _, task := range tasks {
		b.Task(&model.TaskSpec{Node: model.None, Index: -1, Request: amounts(task), Detail: &model.Detail{}})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano}, nil)
	require.NoError(t, err)
	return s
}

func placed(t require.TestingT, nodes, tasks [][2]float64) place.Placement {
	s := idleNodes(t, nodes, tasks)
	placement, err := place.Tasks(s, first[model.TaskID](len(tasks)), first[model.NodeID](len(nodes)))
	require.NoError(t, err)
	return placement
}

func first[ID ~int32](n int) []ID {
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = ID(i)
	}
	return ids
}

func cpus(amounts ...float64) [][2]float64 {
	list := make([][2]float64, len(amounts))
	for i, x := range amounts {
		list[i][0] = x * 1000
	}
	return list
}

func many(n int, x float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = x
	}
	return list
}

func TestPlacement(t *testing.T) {
	for _, test := range []struct {
		name         string
		nodes, tasks [][2]float64
		outcome      place.Outcome
		most         int
	}{
		{"no task needs room", cpus(1), nil, place.Placed, 0},
		{"no node has room", nil, cpus(1), place.NoPlacement, 0},
		{"the first node is not the right one for the first task", cpus(5, 4), cpus(4, 5), place.Placed, 2},
		{"only one choice of nodes has room", cpus(10, 9), cpus(6, 5, 4, 4), place.Placed, 4},
		{"the largest task is too large for every node", cpus(4, 4, 4), cpus(5, 1), place.NoPlacement, 0},
		{"many tasks that are alike", cpus(many(500, 8)...), cpus(many(1000, 4)...), place.Placed, 1000},
		{"one task too many of those that are alike", cpus(many(500, 9)...), cpus(many(1001, 4)...), place.NoPlacement, 1000},
		{"more than there is of cpu", cpus(many(50, 9)...), cpus(append(many(50, 6), many(60, 4)...)...), place.NoPlacement, 50},
		{
			"each dimension has enough, but never on one node",
			[][2]float64{{10_000, 2}, {2_000, 10}},
			[][2]float64{{6_000, 1}, {3_000, 6}},
			place.NoPlacement, 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			placement := placed(t, test.nodes, test.tasks)
			require.Equal(t, test.outcome, placement.Outcome)
			require.Equal(t, test.most, placement.Most)
			require.Len(t, placement.Nodes, map[bool]int{true: len(test.tasks)}[test.outcome == place.Placed])
		})
	}
}

func TestPlacementBeyondTheBoundIsNotKnown(t *testing.T) {
	// A node takes one task. There is one task more than nodes; all tasks differ, and all nodes differ.
	var nodes, tasks []float64
	for i := range 40 {
		nodes = append(nodes, 10+float64(i)/100)
		tasks = append(tasks, 6+float64(i)/100)
	}
	tasks = append(tasks, 7)
	placement := placed(t, cpus(nodes...), cpus(tasks...))
	require.Equal(t, place.Unknown, placement.Outcome)
	require.Equal(t, 40, placement.Most)
}

// TestPlacementIsExactWhereItIsSmall compares with a plain search through every choice of nodes.
func TestPlacementIsExactWhereItIsSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.Custom(func(t *rapid.T) [2]float64 {
			return [2]float64{float64(rapid.IntRange(0, 8).Draw(t, "cpu")), float64(rapid.IntRange(0, 4).Draw(t, "memory"))}
		})
		nodes := rapid.SliceOfN(amounts, 0, 5).Draw(t, "nodes")
		tasks := rapid.SliceOfN(amounts, 0, 6).Draw(t, "tasks")
		placement := placed(t, nodes, tasks)
		want := place.NoPlacement
		if placeable(nodes, tasks) {
			want = place.Placed
		}
		require.Equal(t, want, placement.Outcome)
		if want == place.Placed {
			for i, node := range placement.Nodes {
				nodes[node][0] -= tasks[i][0]
				nodes[node][1] -= tasks[i][1]
				require.GreaterOrEqual(t, min(nodes[node][0], nodes[node][1]), 0.0)
			}
		}
	})
}

func placeable(nodes, tasks [][2]float64) bool {
	if len(tasks) == 0 {
		return true
	}
	for i := range nodes {
		left := append([][2]float64(nil), nodes...)
		left[i][0] -= tasks[0][0]
		left[i][1] -= tasks[0][1]
		if min(left[i][0], left[i][1]) >= 0 && placeable(left, tasks[1:]) {
			return true
		}
	}
	return false
}

func TestBestNodesAreTheFirstOfAllThatFitSortedByScoreAndName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "nodes")
		fits, score, rank := make([]bool, n), make([]float64, n), make([]int32, n)
		var want []int
		for i := range n {
			fits[i], score[i] = rapid.Bool().Draw(t, "fits"), float64(rapid.IntRange(0, 2).Draw(t, "score"))
			rank[i] = rapid.Int32Range(0, int32(n)).Draw(t, "rank")
			if fits[i] {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(l, r int) int { return cmp.Or(cmp.Compare(score[r], score[l]), cmp.Compare(rank[l], rank[r])) })
		top := rapid.IntRange(1, 50).Draw(t, "top")
		require.Equal(t, want[:min(top, len(want))], engine.BestNodes(fits, score, rank, top, nil))
		require.Len(t, engine.BestNodes(fits, score, nil, 0, nil), n)
	})
}

// TestTasksOfANodeSetArePlacedAsIfThereWereNoOtherNodes compares with the placement on a cluster of the nodes of the set alone.
func TestTasksOfANodeSetArePlacedAsIfThereWereNoOtherNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.IntRange(1, 6)
		room := rapid.SliceOfN(amount, 1, 8).Draw(t, "room")
		in := rapid.SliceOfN(rapid.Bool(), len(room), len(room)).Draw(t, "in")
		need, count := amount.Draw(t, "need"), rapid.IntRange(1, 8).Draw(t, "count")
		build := func(only bool) (s *engine.Session, nodes []model.NodeID, at []int) {
			b := model.NewBuilder(0)
			b.Dimensions([]string{"cpu"})
			cpu := func(n int) *model.Amounts {
				return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{float64(n) * 1000}}
			}
			var set []uint32
			for i, n := range room {
				if only && !in[i] {
					continue
				}
				if in[i] {
					set = append(set, uint32(len(at)))
				}
				nodes, at = append(nodes, model.NodeID(len(at))), append(at, i)
				b.Node(model.NodeSpec{Name: string(rune('a' + i)), Allocatable: cpu(n)})
			}
			b.Queue(model.QueueSpec{Name: "q", Weight: 1})
			b.NodeSet(model.NodeSetSpec{Name: "set", Nodes: set})
			b.Job(model.JobSpec{UID: "j", Queue: "q"})
			b.Group(model.GroupSpec{Request: cpu(need), NodeSet: "set"})
			for range count {
				b.Task(&model.TaskSpec{Node: model.None, Index: -1})
			}
			m, err := b.Build()
			require.NoError(t, err)
			s, err = engine.Open(m, engine.Policy{Walk: engine.Volcano}, nil)
			require.NoError(t, err)
			return s, nodes, at
		}
		placed := func(only bool) (place.Placement, []int) {
			s, nodes, at := build(only)
			given := slices.Clone(nodes)
			placement, err := place.Tasks(s, first[model.TaskID](count), nodes)
			require.NoError(t, err)
			require.Equal(t, given, nodes)
			var chosen []int
			for _, n := range placement.Nodes {
				chosen = append(chosen, at[n])
			}
			placement.Nodes = nil
			return placement, chosen
		}
		want, wantNodes := placed(true)
		got, gotNodes := placed(false)
		require.Equal(t, want, got)
		require.Equal(t, wantNodes, gotNodes)
	})
}
