package engine_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/policy/undecided"
)

func TestADimensionThatNoNodeOffersIsNamed(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu", "fpga"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: &model.Amounts{Dimension: []uint32{0, 2}, Amount: []float64{1000, 1}}})
	b.Queue(model.QueueSpec{Name: "q", Capability: &model.Amounts{Dimension: []uint32{0, 1, 2}, Amount: []float64{1, 1, 1}}})
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)

	require.Equal(t, []policy.Warning{{
		Code: policy.DimensionNotOffered, Path: "dimensions", Queue: model.None, Text: `queues or jobs name "gpu", which no node offers`,
	}}, s.Warnings())
}

func TestNodesBelowOneCoreAreNamed(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	for i, cpu := range []float64{1000, 64, 0, 32} {
		b.Node(model.NodeSpec{Name: "n" + strconv.Itoa(i), Allocatable: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{cpu}}})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	require.Equal(t, []policy.Warning{{
		Code: policy.NodeBelowOneCore, Path: "nodes[1].allocatable", Queue: model.None, Dimension: 0, Amounts: []float64{64},
		Text: `nodes with less than 1 core: 2, such as "n1" with {0}; amounts of cpu are in milli-cores, 1000 for a core`,
	}}, s.Warnings())
}

func TestManyWarningsAreCountedNotListed(t *testing.T) {
	m, err := model.NewBuilder(0).Build()
	require.NoError(t, err)
	var tier engine.Tier
	for i := range 150 {
		tier = append(tier, engine.Entry{Plugin: undecided.Plugin{Called: strconv.Itoa(i)}})
	}
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{tier}}, nil)
	require.NoError(t, err)

	warnings := s.Warnings()
	require.Len(t, warnings, engine.MaxWarnings)
	last := warnings[len(warnings)-1]
	require.Equal(t, policy.WarningsTruncated, last.Code)
	require.Equal(t, "150 warnings in all, of which 99 are listed", last.Text)
}

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
