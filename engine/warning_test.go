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

func TestNodesBelowOneCoreOrDeviceAreNamed(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "example.com/gpu", "ephemeral-storage"})
	for i, cpu := range []float64{1000, 64, 0, 32} {
		b.Node(model.NodeSpec{Name: "n" + strconv.Itoa(i), Allocatable: &model.Amounts{
			Dimension: []uint32{0, 1, 2}, Amount: []float64{cpu, []float64{0, 8000, 8, 4}[i], 5},
		}})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	require.Equal(t, []policy.Warning{{
		Code: policy.NodeBelowOne, Path: "nodes[1].allocatable", Queue: model.None, Dimension: 0, Amounts: []float64{64},
		Text: `nodes with less than 1 core: 2, such as "n1" with {0}; amounts of cpu are in milli-cores, 1000 for a core`,
	}, {
		Code: policy.NodeBelowOne, Path: "nodes[2].allocatable", Queue: model.None, Dimension: 3, Amounts: []float64{8},
		Text: `nodes with less than 1 example.com/gpu: 2, such as "n2" with {0}; amounts of devices are in thousandths, 1000 for one`,
	}}, s.Warnings())
}

func TestReservationsThatBlockEachOtherAreNamed(t *testing.T) {
	part := func(cpu float64) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{cpu}}
	}
	const whole = `reservations of node "n" at the same time, for "x" and for "y", keep it from each other: one of them is of all of it`
	for name, c := range map[string]struct {
		list []model.ReservationSpec
		want string
	}{
		"more together than there is": {
			[]model.ReservationSpec{{From: 5, Until: 9, Request: part(6000), Holder: "x"}, {From: 8, Request: part(6000), Holder: "y"}},
			`reservations of node "n" at the same time, for "x" and for "y", keep it from each other: {0} of cpu together, of which it has {1}`,
		},
		"three": {
			[]model.ReservationSpec{
				{From: 5, Request: part(3000), Holder: "x"}, {From: 5, Request: part(3000)}, {From: 5, Request: part(3000), Holder: "y"},
			},
			`reservations of node "n" at the same time, for "x" and for nobody and for "y", ` +
				"keep it from each other: {0} of cpu together, of which it has {1}",
		},
		"all of it": {[]model.ReservationSpec{{From: 5, Holder: "x"}, {From: 8, Request: part(1), Holder: "y"}}, whole},
		"as much as there is": {
			[]model.ReservationSpec{{From: 5, Request: part(2000), Holder: "x"}, {From: 8, Request: part(6000), Holder: "y"}}, "",
		},
		"one after the other": {[]model.ReservationSpec{{From: 5, Until: 8, Holder: "x"}, {From: 8, Holder: "y"}}, ""},
		"both of one job":     {[]model.ReservationSpec{{From: 5, Holder: "x"}, {From: 5, Request: part(6000), Holder: "x"}}, ""},
		"nobody's":            {[]model.ReservationSpec{{From: 5}, {From: 6}}, ""},
		"over":                {[]model.ReservationSpec{{From: 1, Until: 3, Holder: "x"}, {From: 2, Until: 4, Holder: "y"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBuilder(4)
			b.Dimensions([]string{"cpu"})
			b.Node(model.NodeSpec{Name: "n", Allocatable: part(8000), Reservations: c.list})
			m, err := b.Build()
			require.NoError(t, err)
			s, err := engine.Open(m, engine.Policy{}, nil)
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, s.Warnings())
				return
			}
			require.Len(t, s.Warnings(), 1)
			require.Equal(t, c.want, s.Warnings()[0].Text)
		})
	}
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
