package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

func TestASizeFollowsWhatSinglePoliciesReadThroughChanges(t *testing.T) {
	const own = 24
	extra := func(bytes int) *model.Extra { return &model.Extra{Bytes: bytes} }
	b := model.NewBuilder(0)
	b.NodeSet(model.NodeSetSpec{Name: "s", Extra: extra(1000)})
	b.Queue(model.QueueSpec{Name: "a", Extra: extra(100)})
	b.Queue(model.QueueSpec{Name: "b"})
	b.Job(model.JobSpec{UID: "x", Queue: "a", Extra: extra(10)})
	b.Job(model.JobSpec{UID: "y", Queue: "a", Extra: extra(1)})
	m, err := b.Build()
	require.NoError(t, err)
	require.Equal(t, 1111+4*own, m.ExtraBytes())

	c := m.Change(nil)
	c.UpdatePhase(0, model.PhaseRunning)
	same, err := c.Build()
	require.NoError(t, err)
	require.Equal(t, m.ExtraBytes(), same.ExtraBytes())

	c = m.Change(nil)
	c.NodeSet(model.NodeSetSpec{Name: "t", Extra: extra(3000)})
	c.Queue(model.QueueSpec{Name: "b", Extra: extra(200)})
	c.RemoveJob("x")
	c.UpdateExtra(1, extra(2))
	c.UpdatePhase(1, model.PhaseRunning)
	next, err := c.Build()
	require.NoError(t, err)
	require.Equal(t, 4302+5*own, next.ExtraBytes())
	require.GreaterOrEqual(t, next.Own.Bytes, 3202+3*own)
}
