package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// oneQueue is a session on a node of 10 cpu with a queue, of which one task runs and one waits.
func oneQueue(t *testing.T, tiers ...engine.Tier) *engine.Session {
	t.Helper()
	cpu := func(x float64) *model.Amounts { return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{x}} }
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: cpu(10_000)})
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	b.Job(model.JobSpec{UID: "j", Queue: "q", MinResources: cpu(4000), MinAvailable: 2})
	b.Group(model.GroupSpec{Request: cpu(2000)})
	b.Task(&model.TaskSpec{UID: "runs", Status: model.Running, Node: 0, Index: -1})
	b.Task(&model.TaskSpec{UID: "waits", Node: model.None, Index: -1})
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Tiers: tiers, Walk: engine.Volcano}, nil)
	require.NoError(t, err)
	return s
}

func allocated(t *testing.T, s *engine.Session) float64 {
	t.Helper()
	share, ok := s.Dividers()[0].Queues.Share(0)
	require.True(t, ok)
	return share.Allocated.V[0]
}

func TestAPipelinedTaskIsBookedByItsQueueButUsesNoNode(t *testing.T) {
	s := oneQueue(t, engine.Tier{{Plugin: proportion.Plugin{}}})
	const waits = model.TaskID(1)

	s.Host().Book(waits, model.Pipelined, 0)
	require.Equal(t, 4000.0, allocated(t, s))
	require.Equal(t, 2000.0, s.View().Used(0).V[0])
	require.Equal(t, 2000.0, s.View().Account(0).Allocated.V[0])

	s.Host().Unbook(waits, model.Pending)
	require.Equal(t, 2000.0, allocated(t, s))
	require.Equal(t, model.NodeID(model.None), s.View().NodeOf(waits))
}

func TestAnUndoneEvictionRunsAndIsBookedAgain(t *testing.T) {
	s := oneQueue(t, engine.Tier{{Plugin: proportion.Plugin{}}})
	const runs = model.TaskID(0)

	s.Host().Unbook(runs, model.Releasing)
	require.Equal(t, 0.0, allocated(t, s))
	s.Host().Book(runs, model.Running, model.None)
	require.Equal(t, 2000.0, allocated(t, s))
	require.Equal(t, model.Running, s.View().Status(runs))
	require.Equal(t, model.NodeID(0), s.View().NodeOf(runs))
}

func TestNoOpinionOnAnAdmissionIsToldFromAPermit(t *testing.T) {
	silent := oneQueue(t, engine.Tier{{Plugin: gang.Plugin{}}})
	require.Equal(t, policy.Abstain, silent.Job(0).EnqueueVote(nil))
	require.True(t, silent.Job(0).Enqueueable(nil))

	speaking := oneQueue(t, engine.Tier{{Plugin: gang.Plugin{}}}, engine.Tier{{Plugin: proportion.Plugin{}}})
	require.Equal(t, policy.Permit, speaking.Job(0).EnqueueVote(nil))
}

func TestAJobIsAdmittedOnce(t *testing.T) {
	s := oneQueue(t, engine.Tier{{Plugin: proportion.Plugin{}}})
	s.View().SetPhase(0, model.PhasePending)
	require.True(t, s.Job(0).Admit(nil))
	require.Equal(t, model.PhaseInqueue, s.View().Phase(0))
	var why policy.Reasons
	require.False(t, s.Job(0).Admit(&why))
	require.Equal(t, policy.JobNotPending, why.List[0].Code)
}

func TestATaskThatWasNeverBookedIsNotTakenOff(t *testing.T) {
	s := oneQueue(t, engine.Tier{{Plugin: proportion.Plugin{}}})
	const runs, waits = model.TaskID(0), model.TaskID(1)

	mark := s.Mark()
	s.SetStatus(waits, model.Running)
	require.ErrorIs(t, s.Deallocate(waits, model.Releasing), engine.ErrNotBooked)
	require.Equal(t, 2000.0, allocated(t, s), "the account would be negative with the next one")

	s.SetStatus(runs, model.Releasing)
	s.SetStatus(runs, model.Running)
	require.NoError(t, s.Deallocate(runs, model.Releasing), "a task stays booked whatever its status says in between")
	require.Equal(t, 0.0, allocated(t, s))

	require.NoError(t, s.Rollback(mark))
	require.ErrorIs(t, s.Deallocate(waits, model.Releasing), engine.ErrWrongStatus)
	require.NoError(t, s.Deallocate(runs, model.Releasing))
	s.SetStatus(runs, model.Running)
	require.ErrorIs(t, s.Deallocate(runs, model.Releasing), engine.ErrNotBooked)

	require.NoError(t, s.Change(nil, func(*model.ChangeBuilder) {}))
	require.NoError(t, s.Deallocate(runs, model.Releasing), "a session that is opened again books by statuses")
}
