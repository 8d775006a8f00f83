package model_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

func amounts(pairs ...float64) *model.Amounts {
	a := &model.Amounts{}
	for i := 0; i < len(pairs); i += 2 {
		a.Dimension, a.Amount = append(a.Dimension, uint32(pairs[i])), append(a.Amount, pairs[i+1])
	}
	return a
}

// small returns a builder of two queues, two nodes and a job with a group, ready for more.
func small() *model.Builder {
	b := model.NewBuilder(7)
	b.Dimensions([]string{"memory", "gpu", "cpu"})
	b.Node(model.NodeSpec{Name: "n0", Allocatable: amounts(0, 100, 1, 2)})
	b.Node(model.NodeSpec{Name: "n1", Allocatable: amounts(2, 50)})
	b.Queue(model.QueueSpec{Name: "qa", Weight: 1})
	b.Queue(model.QueueSpec{Name: "qb", Weight: 1})
	b.Job(model.JobSpec{Name: "j", Namespace: "ns", Queue: "qb"})
	b.Group(model.GroupSpec{Role: "worker", Request: amounts(2, 5)})
	return b
}

func TestViolationsAreAllNamedByPath(t *testing.T) {
	task := model.TaskSpec{Node: model.None, Index: -1}
	for name, tc := range map[string]struct {
		add  func(b *model.Builder)
		want []string
	}{
		"a node without a name": {
			func(b *model.Builder) { b.Node(model.NodeSpec{}) }, []string{"nodes[2].name: a node needs a name"},
		},
		"two nodes of one name": {
			func(b *model.Builder) { b.Node(model.NodeSpec{Name: "n1"}) }, []string{`nodes[2].name: node "n1" is nodes[1] already`},
		},
		"two queues of one name": {
			func(b *model.Builder) { b.Queue(model.QueueSpec{Name: "qa"}) }, []string{`queues[2].name: queue "qa" is queues[0] already`},
		},
		"a weight beyond int32": {
			func(b *model.Builder) { b.Queue(model.QueueSpec{Name: "q", Weight: math.MaxUint32}) },
			[]string{"queues[2].weight: weight 4294967295 is above 2147483647"},
		},
		"amounts that are none": {
			func(b *model.Builder) {
				b.Queue(model.QueueSpec{
					Name: "q", Guarantee: amounts(0, -1, 1, math.NaN(), 2, math.Inf(1)), Deserved: amounts(0, 1, 0, 2), Capability: amounts(3, 1),
				})
			},
			[]string{
				"queues[2].capability.dimensions: no dimension 3, there are 3",
				"queues[2].guarantee.amounts: memory is negative: -1",
				"queues[2].guarantee.amounts: gpu is not a number",
				"queues[2].guarantee.amounts: cpu is unlimited, which only capability may be",
				`queues[2].deserved.dimensions: dimension "memory" is given twice`,
			},
		},
		"more dimensions than amounts": {
			func(b *model.Builder) {
				b.Node(model.NodeSpec{Name: "n", UsedByOthers: &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{1}}})
			},
			[]string{"nodes[2].used_by_others: 2 dimensions but 1 amounts"},
		},
		"a job on an unknown queue": {
			func(b *model.Builder) { b.Job(model.JobSpec{Name: "k", Queue: "x"}) }, []string{`jobs[1].queue: no queue "x"`},
		},
		"two jobs of one name": {
			func(b *model.Builder) { b.Job(model.JobSpec{UID: "ns/j", Queue: "qa"}) }, []string{`jobs[1].uid: job "ns/j" is jobs[0] already`},
		},
		"a job without any name": {
			func(b *model.Builder) { b.Job(model.JobSpec{Queue: "qa", Namespace: "ns"}) }, []string{"jobs[1].uid: a job needs a uid or a name"},
		},
		"a role given twice": {
			func(b *model.Builder) { b.Group(model.GroupSpec{Role: "worker"}) },
			[]string{`jobs[0].groups[1].role: role "worker" is given twice`},
		},
		"a task on a node that does not exist, with a negative request": {
			func(b *model.Builder) {
				wrong := task
				wrong.Node, wrong.Request = 2, amounts(2, -3)
				b.Task(&wrong)
			},
			[]string{
				"jobs[0].groups[0].tasks[0].node: no node 2, there are 2 nodes",
				"jobs[0].groups[0].tasks[0].detail.request.amounts: cpu is negative: -3",
			},
		},
		"two tasks of one uid": {
			func(b *model.Builder) {
				same := task
				same.UID = "u"
				b.Task(&same)
				b.Group(model.GroupSpec{Role: "other"})
				b.Task(&task)
				b.Task(&same)
			},
			[]string{`jobs[0].groups[1].tasks[1].uid: uid "u" is that of task 0 already`},
		},
		"too many counted tasks": {
			func(b *model.Builder) { b.Count(model.Running, 0, math.MaxUint32) },
			[]string{"jobs[0].groups[0].counts: more than 1073741824 tasks in all"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := small()
			tc.add(b)
			_, err := b.Build()
			var violations *model.Error
			require.ErrorAs(t, err, &violations)
			var got []string
			for _, v := range violations.Violations {
				got = append(got, v.Path+": "+v.Detail)
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, len(tc.want), violations.Total)
		})
	}
}

func TestViolationsBeyondFiftyAreCounted(t *testing.T) {
	b := small()
	for range 10_000 {
		b.Task(&model.TaskSpec{UID: "same", Node: model.None})
	}
	_, err := b.Build()
	var violations *model.Error
	require.ErrorAs(t, err, &violations)
	require.Len(t, violations.Violations, 50)
	require.Equal(t, 9999, violations.Total)
	require.Contains(t, err.Error(), "9999 violations\n")
	require.Contains(t, err.Error(), "\nand 9949 more")
}

func TestTooManyDimensionsAreRefused(t *testing.T) {
	names := make([]string, resource.MaxDimensions)
	for i := range names {
		names[i] = fmt.Sprintf("d%02d", i)
	}
	b := model.NewBuilder(0)
	b.Dimensions(names[:resource.MaxDimensions-2])
	_, err := b.Build()
	require.NoError(t, err, "cpu and memory make up the number")
	b.Loader().Reset(0)
	b.Dimensions(names)
	b.Total(amounts(1, 1))
	b.Queue(model.QueueSpec{Name: "q", Capability: amounts(2, 1)})
	_, err = b.Build()
	require.ErrorContains(t, err, "1 violation\n", "amounts of dimensions that are refused are no faults of their own")
	require.ErrorContains(t, err, "64 dimensions beside cpu and memory, which every snapshot has; at most 62 are possible")
}

func TestModelKnowsWhatWasBuilt(t *testing.T) {
	b := small()
	b.Task(&model.TaskSpec{UID: "u", Name: "p-0", Status: model.Running, Node: 1, Priority: 3, Index: 0, Preemptable: true})
	b.Task(&model.TaskSpec{Name: "p-1", Status: model.Pending, Gate: model.GateOther, Node: model.None, Request: amounts(1, 1)})
	b.Count(model.Succeeded, 0, 4)
	m, err := b.Build()
	require.NoError(t, err)
	require.Equal(t, int64(7), m.AsOf)
	require.Equal(t, []string{"cpu", "memory", "gpu"}, m.Dims.Names())
	require.Equal(t, []float64{50, 100, 2}, m.Total.V)
	j, ok := m.Job("ns/j")
	require.True(t, ok)
	require.Equal(t, "j", m.Jobs.At(j).Name)
	task, ok := m.Task("u")
	require.True(t, ok)
	require.Equal(t, model.TaskID(0), task)
	task, ok = m.Task("ns/p-1")
	require.True(t, ok)
	require.Equal(t, model.TaskID(1), task)
	_, ok = m.Task("ns/p-2")
	require.False(t, ok)
	a := m.Accounts.At(0)
	require.Equal(t, []float64{5, 0, 0}, a.Allocated.V)
	require.Equal(t, []float64{0, 0, 1}, a.Pending.V)
	require.Equal(t, []float64{0, 0, 1}, a.Gated.V)
	require.Equal(t, []float64{25, 0, 1}, a.Total.V)
	require.Equal(t, int32(5), a.Ready())
	require.Equal(t, int32(6), a.AllTasks())
}

func TestAnExtendedModelKeepsTheOldOne(t *testing.T) {
	b := small()
	b.Task(&model.TaskSpec{UID: "u", Node: model.None})
	m, err := b.Build()
	require.NoError(t, err)
	extend := func(job, task, queue string) (*model.Model, error) {
		more := m.Change([]string{"cpu"})
		more.Job(model.JobSpec{Name: job, Queue: queue})
		more.Group(model.GroupSpec{Request: amounts(0, 9)})
		more.Task(&model.TaskSpec{UID: task, Node: 0})
		return more.Build()
	}
	larger, err := extend("new", "v", "qa")
	require.NoError(t, err)
	require.Equal(t, 1, m.Jobs.Len())
	require.Equal(t, 2, larger.Jobs.Len())
	for uid, want := range map[string]model.TaskID{"u": 0, "v": 1} {
		got, ok := larger.Task(uid)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	require.Equal(t, []float64{9, 0, 0}, larger.Request(1).V)
	_, ok := m.Task("v")
	require.False(t, ok)

	_, err = extend("new", "u", "x")
	require.ErrorContains(t, err, `jobs[0].queue: no queue "x"`)
	require.ErrorContains(t, err, `jobs[0].groups[0].tasks[0].uid: uid "u" is that of task 0 already`)
}

func TestAResetBuilderBuildsAsANewOne(t *testing.T) {
	first := small()
	for i := range 5000 {
		first.Task(&model.TaskSpec{UID: fmt.Sprint("old", i), Node: model.None, Status: model.Running})
	}
	_, err := first.Build()
	require.NoError(t, err)
	first.Loader().Reset(7)
	first.Dimensions([]string{"memory", "gpu", "cpu"})
	first.Queue(model.QueueSpec{Name: "only"})
	m, err := first.Build()
	require.NoError(t, err)
	fresh := model.NewBuilder(7)
	fresh.Dimensions([]string{"memory", "gpu", "cpu"})
	fresh.Queue(model.QueueSpec{Name: "only"})
	want, err := fresh.Build()
	require.NoError(t, err)
	require.Equal(t, want.Queues, m.Queues)
	require.Equal(t, want.Total, m.Total)
	require.Zero(t, m.Tasks.Len())
	_, ok := m.Task("old1")
	require.False(t, ok)
}

func TestJobsAreOrderedByUID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`a{0,12}[abc]{0,6}.{0,2}x`), rapid.ID[string]).Draw(t, "names")
		b := model.NewBuilder(0)
		b.Queue(model.QueueSpec{Name: "q"})
		for _, name := range names {
			b.Job(model.JobSpec{UID: name, Queue: "q"})
		}
		m, err := b.Build()
		require.NoError(t, err)
		var got []string
		for _, j := range m.JobOrder {
			got = append(got, m.Jobs.At(j).UID)
		}
		want := slices.Sorted(slices.Values(names))
		require.Equal(t, want, got)
		for i, name := range names {
			j, ok := m.Job(name)
			require.True(t, ok)
			require.Equal(t, model.JobID(i), j)
		}
	})
}
