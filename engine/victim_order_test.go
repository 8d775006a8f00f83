package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
)

// drawSession opens a session with queues of equal and unequal priority, jobs that plugins tell apart and jobs they do not, and tasks
// with every kind of tie.
func drawSession(t *rapid.T, indices bool) *Session {
	b := model.NewBuilder(0)
	small := func(label string) int64 { return int64(rapid.IntRange(0, 2).Draw(t, label)) }
	b.Dimensions([]string{"cpu"})
	amount := func(label string) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{float64(1000 * small(label))}}
	}
	queues := rapid.IntRange(1, 8).Draw(t, "queues")
	b.Queue(model.QueueSpec{Name: "root"})
	for _, inner := range []string{"inner", "other"} {
		b.Queue(model.QueueSpec{Name: inner, Deserved: amount("deserved")})
	}
	for i := range queues {
		b.Queue(model.QueueSpec{
			Name: fmt.Sprint("q", i), Parent: rapid.SampledFrom([]string{"", "inner", "other"}).Draw(t, "parent"),
			Priority: int32(small("queue priority")), CreateTime: small("created"), Deserved: amount("deserved"),
		})
	}
	for j := range rapid.IntRange(1, 10).Draw(t, "jobs") {
		b.Job(model.JobSpec{
			Name: fmt.Sprint("j", j), Queue: fmt.Sprint("q", rapid.IntRange(0, queues-1).Draw(t, "queue")), Priority: int32(small("job priority")),
			MinAvailable: uint32(small("minimum")), CreateTime: small("created"),
		})
		b.Group(model.GroupSpec{Request: amount("request")})
		for k := range rapid.IntRange(0, 5).Draw(t, "tasks") {
			index := int32(-1)
			if indices {
				index = int32(small("index"))
			}
			b.Task(&model.TaskSpec{
				UID: fmt.Sprint("u", j, k), Status: model.Running, Node: model.None, Priority: int32(small("priority")), Index: index,
				CreateTime: small("created"),
			})
		}
	}
	b.Group(model.GroupSpec{Role: "claimant"})
	b.Task(&model.TaskSpec{UID: "claimant", Node: model.None, Index: -1})
	m, err := b.Build()
	require.NoError(t, err)
	divider := capacity.Plugin{Hierarchical: rapid.Bool().Draw(t, "hierarchical")}
	s, err := Open(m, Policy{Tiers: []Tier{{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}}, {{Plugin: divider}}}}, nil)
	require.NoError(t, err)
	return s
}

func TestVictimsAreSortedAsComparingThemPairByPairHasIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSession(t, rapid.Bool().Draw(t, "indices"))
		claimant := model.TaskID(s.view.Tasks.Len() - 1)
		var candidates []model.TaskID
		for i := range claimant {
			candidates = append(candidates, i)
		}
		want := slices.Clone(candidates)
		// Queues are sorted by themselves: in a tree with ties comparing them is not transitive, and each has many tasks.
		queue := func(c model.TaskID) model.QueueID { return s.view.QueueOf(c) }
		var queues []model.QueueID
		for _, c := range candidates {
			if !slices.Contains(queues, queue(c)) {
				queues = append(queues, queue(c))
			}
		}
		Sort(queues, s.queueName, func(l, r model.QueueID) bool { return s.Order().CompareVictimQueues(l, r, queue(claimant)).Less })
		Sort(want,
			func(l, r model.TaskID) int {
				return cmp.Or(strings.Compare(s.view.TaskKey(l), s.view.TaskKey(r)), cmp.Compare(l, r))
			},
			func(l, r model.TaskID) bool {
				if queue(l) != queue(r) {
					return slices.Index(queues, queue(l)) < slices.Index(queues, queue(r))
				}
				return s.Order().CompareVictims(l, r, claimant).Less
			})
		s.Order().SortVictims(claimant, candidates)
		require.Equal(t, want, candidates)
	})
}

func BenchmarkSortVictims(b *testing.B) {
	m := model.NewBuilder(0)
	for q := range 10 {
		m.Queue(model.QueueSpec{Name: fmt.Sprint("q", q), Priority: int32(q % 3)})
	}
	for j := range 50 {
		m.Job(model.JobSpec{Name: fmt.Sprint("j", j), Queue: fmt.Sprint("q", j%10), Priority: int32(j % 4)})
		m.Group(model.GroupSpec{})
		for k := range 2 {
			m.Task(&model.TaskSpec{UID: fmt.Sprint("u", j, k), Status: model.Running, Node: model.None, Priority: 1, Index: int32(k)})
		}
	}
	built, err := m.Build()
	require.NoError(b, err)
	s, err := Open(built, Policy{Tiers: []Tier{{{Plugin: priority.Plugin{}}}, {{Plugin: capacity.Plugin{}}}}}, nil)
	require.NoError(b, err)
	candidates := make([]model.TaskID, 100)
	b.ReportAllocs()
	for b.Loop() {
		for i := range candidates {
			candidates[i] = model.TaskID(i * 37 % 100)
		}
		s.Order().SortVictims(0, candidates)
	}
}

func TestPlacedQueuesAreSortedAsComparingTheirNumbersHasIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := model.NewBuilder(0)
		n := rapid.IntRange(2, 30).Draw(t, "queues")
		for i := range n {
			b.Queue(model.QueueSpec{Name: fmt.Sprint("q", i), CreateTime: int64(rapid.IntRange(0, 1).Draw(t, "created"))})
		}
		m, err := b.Build()
		require.NoError(t, err)
		// Numbers that differ in the highest bits, in the lowest, and in all.
		long := rapid.OneOf(
			rapid.SampledFrom([]uint64{0, 1, 2, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}),
			rapid.Uint64(), rapid.Uint64Range(1<<40, 1<<40+3), rapid.Just(uint64(7)),
		)
		high, low := rapid.SampledFrom([]*rapid.Generator[uint64]{long, rapid.Just(uint64(7))}).Draw(t, "high"), long
		var o queueOrder
		var queues []model.QueueID
		for i := range n {
			queues = append(queues, model.QueueID(i))
			o.places = append(o.places, policy.QueuePlace{High: high.Draw(t, "high"), Low: low.Draw(t, "low")})
			o.near = append(o.near, rapid.SampledFrom([]uint32{0, 1, math.MaxUint32 - 1, math.MaxUint32}).Draw(t, "near"))
		}
		v := policy.NewView(m, nil)
		want := slices.Clone(queues)
		slices.SortFunc(want, func(l, r model.QueueID) int { return o.compare(v, queues, int(l), int(r)) })
		o.sortPlaced(v, queues)
		require.Equal(t, want, o.sorted)
		for i := range n - 1 {
			require.Equal(t, o.places[want[i]] == o.places[want[i+1]], o.tied(i))
		}
	})
}
