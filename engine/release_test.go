package engine_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// TestAJobThatAnotherPluginRejectsStaysBookedOnlyBeforeRelease116 offers a job of 5 CPUs to a queue that may hold 7, in a cluster in which
// overcommit admits 4 more; then one of 3.
func TestAJobThatAnotherPluginRejectsStaysBookedOnlyBeforeRelease116(t *testing.T) {
	cpus := func(n float64) *model.Amounts {
		return policytest.Sparse([]string{"cpu"}, policytest.Amounts{"cpu": n * 1000})
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: cpus(10)})
	b.Queue(model.QueueSpec{Name: "root"})
	b.Queue(model.QueueSpec{Name: "a", Parent: "root", Capability: cpus(7)})
	b.Queue(model.QueueSpec{Name: "b", Parent: "root"})
	b.Job(model.JobSpec{UID: "run", Queue: "b", Phase: model.PhaseRunning})
	b.Group(model.GroupSpec{Request: cpus(8)})
	b.Task(&model.TaskSpec{UID: "r", Status: model.Running, Node: 0})
	for uid, n := range map[string]float64{"big": 5, "small": 3} {
		b.Job(model.JobSpec{UID: uid, Queue: "a", Phase: model.PhasePending, MinResources: cpus(n)})
		b.Group(model.GroupSpec{Request: cpus(n)})
		b.Task(&model.TaskSpec{UID: uid + "-0", Node: model.None})
	}
	m, err := b.Build()
	require.NoError(t, err)
	for name, plugin := range map[string]policy.Plugin{
		"proportion": proportion.Plugin{}, "capacity": capacity.Plugin{}, "capacity, hierarchical": capacity.Plugin{Hierarchical: true},
	} {
		for release, admitted := range map[policy.Release]bool{policy.V115: false, policy.V116: true} {
			p := engine.Policy{
				Tiers:   []engine.Tier{{{Plugin: plugin}, {Plugin: overcommit.Plugin{Factor: 1.2}}}},
				Release: release,
			}
			s, err := engine.Open(m, p, nil)
			require.NoError(t, err, name)
			job := func(uid string) engine.Job {
				j, ok := s.View().Job(uid)
				require.True(t, ok)
				return s.Job(j)
			}
			mark := s.Mark()
			require.False(t, job("big").Enqueue(nil), name)
			require.Equal(t, admitted, job("small").Enqueue(nil), "%s, release %d", name, release)
			require.False(t, job("small").Enqueue(nil), "it is admitted, or does not fit")
			require.NoError(t, s.Rollback(mark))
			require.True(t, job("small").Enqueue(nil), "%s, release %d: nothing is booked any more", name, release)
		}
	}
}

// TestATaskThatTerminatesIsNotReadyInAnyRelease has gangs of two. Volcano 1.16, and 1.15 after 1.15.1, counts tasks that terminate on a node
// where it writes a PodGroup's phase and conditions (volcano-sh/volcano 5796), but not in JobInfo.ReadyTaskNum, by which gang decides.
func TestATaskThatTerminatesIsNotReadyInAnyRelease(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	one := policytest.Sparse([]string{"cpu"}, policytest.Amounts{"cpu": 1000})
	b.Node(model.NodeSpec{Name: "n", Allocatable: policytest.Sparse([]string{"cpu"}, policytest.Amounts{"cpu": 9000})})
	b.Queue(model.QueueSpec{Name: "q"})
	for uid, others := range map[string][]model.Status{
		"runs":      {model.Running, model.Running},
		"ends":      {model.Running, model.Releasing},
		"ended":     {model.Releasing, model.Releasing},
		"is placed": {model.Running, model.Releasing, model.Pipelined},
	} {
		b.Job(model.JobSpec{UID: uid, Queue: "q", Phase: model.PhaseRunning, MinAvailable: 2})
		b.Group(model.GroupSpec{Request: one})
		for i, status := range others {
			b.Task(&model.TaskSpec{UID: uid + strconv.Itoa(i), Status: status, Node: 0})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	for _, release := range []policy.Release{policy.V115, policy.V116} {
		s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}}}, Release: release}, nil)
		require.NoError(t, err)
		for uid, want := range map[string][3]bool{ // ready, pipelined, starving
			"runs": {true, true, false}, "ends": {false, false, true}, "ended": {false, false, true}, "is placed": {false, true, false},
		} {
			j, ok := s.View().Job(uid)
			require.True(t, ok)
			job := s.Job(j)
			require.Equal(t, want, [3]bool{job.Ready(nil), job.Pipelined(nil), job.Starving(nil)}, "%s, release %d", uid, release)
		}
	}
}
