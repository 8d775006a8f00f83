package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/proportion"
)

func TestARestoredSessionIsAsNewForTheNext(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{10}}})
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	b.Job(model.JobSpec{UID: "j", Queue: "q"})
	b.Group(model.GroupSpec{Request: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1}}})
	b.Task(&model.TaskSpec{UID: "t", Node: model.None, Index: -1})
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: proportion.Plugin{}}}}}, nil)
	require.NoError(t, err)
	s.Host().Keep()

	for range 3 {
		require.Equal(t, 0, s.Mark())
		require.NoError(t, s.Allocate(0, 0))
		require.Equal(t, 1, s.Mark())
		require.NoError(t, s.Change(nil, func(b *model.ChangeBuilder) { b.RemoveJobs(0) }))
		s.Host().Restore()

		require.ErrorIs(t, s.Rollback(0), engine.ErrNoMark)
		require.Equal(t, model.Pending, s.View().Status(0))
		require.True(t, s.View().HasJob(0))
		share, _ := s.Dividers()[0].Queues.Share(0)
		require.Equal(t, []float64{0, 0}, share.Allocated.V)
	}
}
