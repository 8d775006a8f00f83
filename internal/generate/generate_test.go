package generate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
)

func encoded(t require.TestingT, shape generate.Shape) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(generate.Snapshot(shape))
	require.NoError(t, err)
	return data
}

func TestSameShapeGivesTheSameBytes(t *testing.T) {
	shape := generate.Shape{Queues: 30, Jobs: 100, Tasks: 1000, Nodes: 50, Seed: 7, Depth: 3, Dimensions: 9, UIDs: true}
	first := encoded(t, shape)
	require.Equal(t, first, encoded(t, shape))
	shape.Seed++
	require.NotEqual(t, first, encoded(t, shape))
}

func TestIdentityChangesNothingElse(t *testing.T) {
	shape := generate.Shape{Queues: 30, Jobs: 100, Tasks: 1000, Nodes: 50, Seed: 7}
	anonymous := encoded(t, shape)
	shape.UIDs = true
	named := generate.Snapshot(shape)
	for _, job := range named.GetJobs() {
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				require.Len(t, task.GetUid(), 36)
				task.Uid = ""
			}
		}
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(named)
	require.NoError(t, err)
	require.Equal(t, anonymous, data)
}

func drawShape(t *rapid.T) generate.Shape {
	return generate.Shape{
		Queues: rapid.IntRange(-1, 40).Draw(t, "queues"), Jobs: rapid.IntRange(-1, 40).Draw(t, "jobs"),
		Tasks: rapid.IntRange(-1, 300).Draw(t, "tasks"), Nodes: rapid.IntRange(-1, 20).Draw(t, "nodes"),
		Seed: rapid.Uint64().Draw(t, "seed"), Depth: rapid.IntRange(-1, 9).Draw(t, "depth"),
		Dimensions: rapid.IntRange(0, 66).Draw(t, "dimensions"), UIDs: rapid.Bool().Draw(t, "uids"), Counted: rapid.Bool().Draw(t, "counted"),
	}
}

func TestSnapshotOfAnyShapeIsValidAndOfItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t)
		s := generate.Snapshot(shape)
		m, err := decode.Compile(s)
		require.NoError(t, err)
		require.Len(t, m.Nodes, max(shape.Nodes, 0))
		require.Equal(t, max(shape.Jobs, min(max(shape.Tasks, 0), 1), 0), m.Jobs.Len())
		tasks := 0
		for _, account := range m.Accounts.All() {
			tasks += int(account.AllTasks())
		}
		require.Equal(t, max(shape.Tasks, 0), tasks)
		if !shape.Counted {
			require.Equal(t, tasks, m.Tasks.Len())
		}
		requireTree(t, s, max(shape.Depth, 0))
	})
}

// requireTree requires what a hierarchical policy does: parents exist, every queue is below root, and jobs are on leaves.
func requireTree(t require.TestingT, s *apportionv1.Snapshot, depth int) {
	level, inner := map[string]int{}, map[string]bool{}
	for i, q := range s.GetQueues() {
		switch {
		case depth == 0:
			require.Empty(t, q.GetParent())
		case i == 0:
			require.Equal(t, "root", q.GetName())
		default:
			parent := q.GetParent()
			if parent == "" {
				parent = "root"
			}
			require.Contains(t, level, parent)
			level[q.GetName()], inner[parent] = level[parent]+1, true
			require.LessOrEqual(t, level[q.GetName()], depth)
			continue
		}
		level[q.GetName()] = 0
	}
	for _, job := range s.GetJobs() {
		require.False(t, inner[job.GetQueue()])
	}
}

func TestTreeIsAsDeepAsAsked(t *testing.T) {
	for depth := 1; depth <= 8; depth++ {
		deepest := 0
		for _, q := range generate.Snapshot(generate.Shape{Queues: 1000, Depth: depth}).GetQueues() {
			path := q.GetFairShareHierarchy().GetPath()
			deepest = max(deepest, strings.Count(path, "/"))
			require.Equal(t, strings.Count(path, "/"), strings.Count(q.GetFairShareHierarchy().GetWeights(), "/"))
		}
		require.Equal(t, depth, deepest)
	}
}

func TestNoNodeIsOvercommitted(t *testing.T) {
	m, err := decode.Compile(generate.Snapshot(generate.Shape{Queues: 20, Jobs: 200, Tasks: 3000, Nodes: 100, Seed: 3, Dimensions: 8}))
	require.NoError(t, err)
	for n := range m.Nodes {
		left := m.Nodes[n].Allocatable.Clone()
		left.Sub(m.Nodes[n].UsedByOthers)
		for _, task := range m.Tasks.All() {
			if int(task.Node) == n && task.Status.Occupies() {
				left.Sub(m.Requests[task.Request])
			}
		}
		for d, x := range left.V {
			require.GreaterOrEqual(t, x, 0., "node %d, %s", n, m.Dims.Name(d))
		}
	}
}

func TestStandardIsAMixAsABusyClusterShowsIt(t *testing.T) {
	s := generate.Snapshot(generate.Standard())
	status, accelerated, tasks := map[apportionv1.TaskStatus]int{}, 0, 0
	for _, job := range s.GetJobs() {
		for _, group := range job.GetGroups() {
			tasks += len(group.GetTasks())
			for _, task := range group.GetTasks() {
				status[task.GetStatus()]++
			}
			for _, d := range group.GetRequest().GetDimensions() {
				if s.GetDimensions()[d] == "nvidia.com/gpu" {
					accelerated += len(group.GetTasks())
				}
			}
		}
	}
	data, err := proto.Marshal(s)
	require.NoError(t, err)
	t.Logf("%d bytes; %v; %d tasks ask for GPUs", len(data), status, accelerated)
	require.Equal(t, 100_000, tasks)
	require.Greater(t, status[apportionv1.TaskStatus_TASK_STATUS_RUNNING], tasks/2)
	require.Greater(t, status[apportionv1.TaskStatus_TASK_STATUS_PENDING], tasks/20)
	require.Greater(t, accelerated, tasks/50)
	require.InDelta(t, 6_600_000, len(data), 300_000)
}

func TestHierarchicalPolicyAcceptsTheTree(t *testing.T) {
	m, err := decode.Compile(generate.Snapshot(generate.Shape{Queues: 300, Jobs: 1000, Tasks: 5000, Nodes: 200, Depth: 4}))
	require.NoError(t, err)
	s, err := capacity.Plugin{Hierarchical: true}.Open(policy.NewView(m, nil))
	require.NoError(t, err)
	require.Implements(t, (*policy.Tree)(nil), s)
	require.True(t, s.(policy.Tree).Accepted(nil))
}

func TestQueuesAreGivenMoreThanWeights(t *testing.T) {
	guaranteed, deserving, capped, bound, closed := 0, 0, 0, 0, 0
	for _, q := range generate.Snapshot(generate.Standard()).GetQueues() {
		if q.GetGuarantee() != nil {
			guaranteed++
		}
		if q.GetDeserved() != nil {
			deserving++
		}
		if q.GetCapability() != nil {
			capped++
		}
		if q.GetNodeGroupAffinity() != nil {
			bound++
		}
		if q.GetState() != apportionv1.QueueState_QUEUE_STATE_OPEN {
			closed++
		}
	}
	require.Greater(t, guaranteed, 200)
	require.Greater(t, deserving, 600)
	require.Greater(t, capped, 300)
	require.Greater(t, bound, 50)
	require.Greater(t, closed, 10)
}

func TestJobsAreInAllPhasesWithAndWithoutAMinimum(t *testing.T) {
	type kind struct {
		phase   apportionv1.JobPhase
		minimum bool
	}
	kinds, roles := map[kind]int{}, map[int]int{}
	for _, job := range generate.Snapshot(generate.Standard()).GetJobs() {
		kinds[kind{job.GetPhase(), job.GetMinResources() != nil}]++
		roles[len(job.GetGroups())]++
	}
	require.Len(t, kinds, 10)
	require.Len(t, roles, 3)
}

func BenchmarkStandard(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		generate.Snapshot(generate.Standard())
	}
}
