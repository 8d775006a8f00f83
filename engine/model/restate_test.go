package model_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// requireWhole requires that a spec lacks no field.
func requireWhole(t *testing.T, spec any) {
	t.Helper()
	v := reflect.ValueOf(spec)
	for i := range v.NumField() {
		require.False(t, v.Field(i).IsZero(), "%s.%s", v.Type(), v.Type().Field(i).Name)
	}
}

// TestWhatIsStatedAgainLacksNothing builds a queue and a job with every field, builds them again from the specs that the model returns, as
// a change of one field does, and compares.
func TestWhatIsStatedAgainLacksNothing(t *testing.T) {
	one := func(d uint32, x int64) *model.Integers {
		return &model.Integers{Dimension: []uint32{d}, Amount: []int64{x}}
	}
	queue := model.QueueSpec{
		Name: "q", Parent: "root", Weight: 3, Priority: 4, State: model.Closed, Reclaimable: true, Capability: amounts(0, 5), Guarantee: amounts(1, 2),
		Deserved: amounts(0, 3), Affinity: &model.NodeAffinity{}, Hierarchy: &model.Hierarchy{Path: "root/q", Weights: "1/2"}, CreateTime: 6,
		Memory: &model.QueueMemorySpec{
			Usage: one(0, 70), Entitled: one(1, 80), Reserved: one(1, 85), Budget: &model.BudgetSpec{Kind: model.HardBudget, Amount: one(0, 90), Spent: one(0, 10)},
			Owners: []model.OwnerSpec{{Owner: "ann", Usage: one(1, 5), Weight: 2}},
		},
		NodeLimits: &model.NodeLimitsSpec{Groups: []model.NodeLimitSpec{{Group: "a", Limit: amounts(0, 1)}}}, Extra: &model.Extra{Value: "x"},
	}
	job := model.JobSpec{
		UID: "u", Name: "j", Namespace: "ns", Queue: "q", Priority: 1, Phase: model.PhaseInqueue, MinAvailable: 2, MinResources: amounts(0, 1),
		CreateTime: 3, Condition: "waits", ExpectedEnd: 8, EndIsDeadline: true, ExpectedRuntime: 9, Owner: "ann", Extra: &model.Extra{Value: "y"},
		Detail: &model.JobDetail{
			Preemptable: new(false), WaitingLimit: 5, QuotaRequest: []model.NamedAmount{{Name: "count/pods", Amount: 3}},
			Disruption: model.JobDisruption{MinAvailable: "1", MaxUnavailable: "50%"},
		},
	}
	requireWhole(t, queue)
	requireWhole(t, *queue.Memory)
	requireWhole(t, job)
	requireWhole(t, *job.Detail)
	requireWhole(t, job.Detail.Disruption)
	build := func(q model.QueueSpec, j model.JobSpec) (model.QueueSpec, model.JobSpec) {
		b := model.NewBuilder(0)
		b.Dimensions([]string{"cpu", "memory"})
		b.Memory(&model.MemorySpec{EpochSeconds: 1, HalfLife: 1})
		b.Queue(q)
		b.Job(j)
		m, err := b.Build()
		require.NoError(t, err)
		return m.QueueSpecOf(0), m.JobSpecOf(0)
	}
	queueAgain, jobAgain := build(queue, job)
	requireWhole(t, queueAgain)
	requireWhole(t, *queueAgain.Memory)
	requireWhole(t, jobAgain)
	require.Equal(t, queue.Memory, queueAgain.Memory)
	require.Equal(t, job, jobAgain)
	third, last := build(queueAgain, jobAgain)
	require.Equal(t, queueAgain, third)
	require.Equal(t, jobAgain, last)
}
