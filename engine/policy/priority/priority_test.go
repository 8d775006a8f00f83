package priority_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/policy/priority"
)

func open(t *testing.T, jobs ...policytest.Job) (*policy.View, *priority.State) {
	t.Helper()
	for i := range jobs {
		jobs[i].Queue = "q"
	}
	v := policytest.Cluster{Queues: policytest.Queues("q"), Jobs: jobs}.View(t)
	state, err := priority.Plugin{}.Open(v)
	require.NoError(t, err)
	require.NotImplements(t, (*policy.Reclaimer)(nil), state, "priority takes no part in reclaim")
	return v, state.(*priority.State)
}

func TestHigherPriorityComesFirst(t *testing.T) {
	v, s := open(t,
		policytest.Job{Name: "least", Priority: math.MinInt32, Tasks: []policytest.Tasks{{Priority: math.MinInt32}, {Priority: math.MaxInt32}}},
		policytest.Job{Name: "low", Priority: -1},
		policytest.Job{Name: "high", Priority: math.MaxInt32},
	)
	least, low, high := policytest.JobID(t, v, "least"), policytest.JobID(t, v, "low"), policytest.JobID(t, v, "high")
	require.Equal(t, -1, s.CompareJobs(high, least))
	require.Equal(t, 1, s.CompareJobs(least, low))
	require.Zero(t, s.CompareJobs(low, low))
	tasks := policytest.TaskIDs(t, v, "least-0", "least-1")
	require.Equal(t, 1, s.CompareTasks(tasks[0], tasks[1]))
	require.Equal(t, -1, s.CompareTasks(tasks[1], tasks[0]))
	require.Zero(t, s.CompareTasks(tasks[0], tasks[0]))
}

func TestAJobStarvesUntilAllItsTasksAreReadyOrPipelined(t *testing.T) {
	for name, c := range map[string]struct {
		tasks    []policytest.Tasks
		starving bool
		have     float64
	}{
		"a job without tasks does not starve":     {},
		"ready, succeeded and pipelined are fine": {tasks: []policytest.Tasks{{Status: model.Bound}, {Status: model.Succeeded}, {Status: model.Pipelined}}, have: 3},
		"a pending task":                          {tasks: []policytest.Tasks{{Status: model.Running}, {}}, starving: true},
		"a failed task counts as lacking":         {tasks: []policytest.Tasks{{Status: model.Running}, {Status: model.Failed}}, starving: true},
		"so does one that is being released":      {tasks: []policytest.Tasks{{Status: model.Releasing}}, starving: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := open(t, policytest.Job{Name: "j", Tasks: c.tasks})
			var why policy.Reasons
			require.Equal(t, c.starving, s.Starving(0, &why))
			require.Equal(t, c.starving, s.Starving(0, nil))
			if !c.starving {
				require.Equal(t, []policy.Reason{{
					Plugin: "priority", Code: policy.NotStarving, Queue: model.None, Dimension: -1, Have: c.have, Limit: c.have,
				}}, why.List)
			}
		})
	}
}

func TestVictimsAreOfStrictlyLowerPriority(t *testing.T) {
	v, s := open(t,
		policytest.Job{Name: "claims", Priority: 5, Tasks: []policytest.Tasks{{Priority: 2}, {Priority: 1}, {Priority: 2}, {Priority: 3}}},
		policytest.Job{Name: "lower", Priority: 4, Tasks: []policytest.Tasks{{Priority: 9}}},
		policytest.Job{Name: "equal", Priority: 5, Tasks: []policytest.Tasks{{Priority: 0}}},
		policytest.Job{Name: "higher", Priority: 6, Tasks: []policytest.Tasks{{Priority: 0}}},
	)
	chosen, spared := policytest.Victims(t, v, s.Preemptable, "claims-0", "claims-1", "claims-2", "claims-3", "higher-0", "equal-0", "lower-0")
	require.Equal(t, []string{"claims-1", "lower-0"}, chosen)
	because := func(have, limit float64) policy.Reason {
		return policy.Reason{Plugin: "priority", Code: policy.PriorityNotLower, Queue: model.None, Dimension: -1, Have: have, Limit: limit}
	}
	require.Equal(t, map[string]policy.Reason{
		"claims-2": because(2, 2), "claims-3": because(3, 2), "equal-0": because(5, 5), "higher-0": because(6, 5),
	}, spared, "job against job, and within the job task against task")
}

func TestQuestionsAllocateNothing(t *testing.T) {
	v, s := open(t, policytest.Job{Name: "a", Priority: 1, Tasks: []policytest.Tasks{{N: 3}}}, policytest.Job{Name: "b"})
	candidates := policytest.TaskIDs(t, v, "a-0", "a-1", "a-2")
	dst := make([]model.TaskID, 0, 3)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		dst, _ = s.Preemptable(0, candidates, dst[:0], nil)
		s.Starving(0, nil)
		s.CompareJobs(0, 1)
		s.CompareTasks(0, 1)
	}))
}

func TestForAWholeJobPriorityCountsWithinTheQueueOnly(t *testing.T) {
	one := []policytest.Tasks{{Status: model.Running, Priority: 9}}
	v := policytest.Cluster{Queues: policytest.Queues("mine", "other"), Jobs: []policytest.Job{
		{Name: "claimant", Queue: "mine", Priority: 5, Tasks: []policytest.Tasks{{Priority: 1}}},
		{Name: "low", Queue: "mine", Priority: 4, Tasks: one},
		{Name: "equal", Queue: "mine", Priority: 5, Tasks: one},
		{Name: "high elsewhere", Queue: "other", Priority: 6, Tasks: one},
	}}.View(t)
	s, err := priority.Plugin{}.Open(v)
	require.NoError(t, err)
	got, vote := s.(policy.GangEvictor).GangEvictable(0, policytest.TaskIDs(t, v, "equal-0", "high elsewhere-0", "low-0"), nil)
	require.Equal(t, policy.Permit, vote)
	require.Equal(t, policytest.TaskIDs(t, v, "high elsewhere-0", "low-0"), got)
}
