package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// oneRunningTask is a node of 10 cpu with a task of 3 on it.
func oneRunningTask(t *testing.T) *policy.View {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{10}}})
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{UID: "j", Queue: "q"})
	b.Group(model.GroupSpec{Request: &model.Amounts{Dimension: []uint32{0}, Amount: []float64{3}}})
	b.Task(&model.TaskSpec{UID: "t", Status: model.Running, Node: 0})
	m, err := b.Build()
	require.NoError(t, err)
	return policy.NewView(m, nil)
}

func TestUsageFirstAskedForWithinAWhatIfIsPutBack(t *testing.T) {
	v := oneRunningTask(t)
	p := v.Journal.Mark()
	v.SetStatus(0, model.Pending, model.None)
	require.Zero(t, v.Used(0).V[0])
	v.Journal.Rollback(p)
	require.InDelta(t, 3, v.Used(0).V[0], 0)
}

func TestUsageFollowsATaskUntilItHasFinished(t *testing.T) {
	v := oneRunningTask(t)
	v.SetStatus(0, model.Releasing, model.None)
	require.InDelta(t, 3, v.Used(0).V[0], 0)
	v.SetStatus(0, model.Succeeded, model.None)
	require.Zero(t, v.Used(0).V[0])
}
