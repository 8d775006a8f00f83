package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
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
