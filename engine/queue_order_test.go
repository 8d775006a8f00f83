package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
)

func TestRanksAreThePlacesInTheOrderOfServiceThatComparingPairsGives(t *testing.T) {
	small := rapid.IntRange(0, 2)
	amount := func(n int) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000 * float64(n)}}
	}
	policies := []engine.Policy{
		{Tiers: []engine.Tier{{{Plugin: priority.Plugin{}}, {Plugin: proportion.Plugin{}}}}},
		{Tiers: []engine.Tier{{{Plugin: proportion.Plugin{}}, {Plugin: capacity.Plugin{}}}}},
		{Tiers: []engine.Tier{{{Plugin: capacity.Plugin{}}}}},
		{Tiers: []engine.Tier{{{Plugin: priority.Plugin{}}}}},
		{Tiers: []engine.Tier{{{Plugin: hdrf.Plugin{}}, {Plugin: capacity.Plugin{}}}}},
		{Tiers: []engine.Tier{{{Plugin: fair.Plugin{}}}}},
	}
	rapid.Check(t, func(t *rapid.T) {
		b := model.NewBuilder(0)
		b.Dimensions([]string{"cpu"})
		b.Node(model.NodeSpec{Name: "n", Allocatable: amount(10)})
		queues := rapid.IntRange(1, 40).Draw(t, "queues")
		for i := range queues {
			b.Queue(model.QueueSpec{
				Name: fmt.Sprint("q", i), Weight: 1, Priority: int32(small.Draw(t, "priority")) - 1, CreateTime: int64(small.Draw(t, "created")),
				Deserved: amount(small.Draw(t, "deserved")),
			})
			for j := range small.Draw(t, "jobs") {
				b.Job(model.JobSpec{UID: fmt.Sprint("j", i, "-", j), Queue: fmt.Sprint("q", i)})
				b.Group(model.GroupSpec{Request: amount(1)})
				b.Task(&model.TaskSpec{Node: model.None, Index: -1, Status: rapid.SampledFrom([]model.Status{model.Pending, model.Running}).Draw(t, "status")})
			}
		}
		m, err := b.Build()
		require.NoError(t, err)
		s, err := engine.Open(m, rapid.SampledFrom(policies).Draw(t, "policy"), nil)
		require.NoError(t, err)

		var busy []model.QueueID
		for _, q := range m.QueueOrder {
			if len(m.QueueJobs[q]) > 0 {
				busy = append(busy, q)
			}
		}
		require.True(t, slices.Equal(busy, s.View().Busy()))
		want := slices.Clone(busy)
		engine.Sort(want, func(l, r model.QueueID) int { return strings.Compare(m.Queues[l].Name, m.Queues[r].Name) },
			func(l, r model.QueueID) bool { return s.Order().CompareQueues(l, r).Less })
		s.Order().SortQueues(busy)
		require.Equal(t, want, busy)

		asked := rapid.SliceOfN(rapid.IntRange(0, queues-1), 0, queues).Draw(t, "asked")
		ids := make([]model.QueueID, len(asked))
		for i, q := range asked {
			ids[i] = model.QueueID(q)
		}
		for i, rank := range s.Order().Ranks(ids) {
			require.Equal(t, slices.Index(want, ids[i]), int(rank))
		}
	})
}
