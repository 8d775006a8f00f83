package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/policytest"
)

func class(name string) *model.Detail { return &model.Detail{PriorityClass: name} }

func TestOnlyNamesOfTheSystemProtect(t *testing.T) {
	v := policytest.Cluster{Queues: policytest.Queues("q"), Jobs: []policytest.Job{
		{Name: "user", Namespace: "default", Queue: "q", Tasks: []policytest.Tasks{
			{Detail: class("system-cluster-critical")},
			{Detail: class("system-node-critical")},
			{Detail: class("system-critical")},
			{Detail: class("")},
			{Priority: 2000001000},
		}},
		{Name: "system", Namespace: "kube-system", Queue: "q", Tasks: []policytest.Tasks{{}, {Detail: class("system-node-critical")}}},
		{Name: "kube-system", Namespace: "kube-system-2", Queue: "q", Tasks: []policytest.Tasks{{}}},
	}}.View(t)
	state, err := conformance.Plugin{}.Open(v)
	require.NoError(t, err)
	s := state.(*conformance.State)
	because := func(code policy.Code) policy.Reason {
		return policy.Reason{Plugin: "conformance", Code: code, Queue: model.None, Dimension: -1}
	}
	for name, ask := range map[string]policy.VictimFunc{"reclaim": s.Reclaimable, "preempt": s.Preemptable} {
		t.Run(name, func(t *testing.T) {
			chosen, spared := policytest.Victims(t, v, ask, "user-3",
				"user-4", "user-0", "user-1", "user-2", "user-3", "system-0", "system-1", "kube-system-0")
			require.Equal(t, []string{"user-4", "user-2", "user-3", "kube-system-0"}, chosen)
			require.Equal(t, map[string]policy.Reason{
				"user-0": because(policy.SystemCritical), "user-1": because(policy.SystemCritical),
				"system-0": because(policy.SystemNamespace), "system-1": because(policy.SystemCritical),
			}, spared)
		})
	}
	candidates := policytest.TaskIDs(t, v, "user-0", "user-4", "system-0")
	dst := make([]model.TaskID, 0, 3)
	require.Zero(t, testing.AllocsPerRun(10, func() { dst, _ = s.Preemptable(0, candidates, dst[:0], nil) }))
}

func TestTheSystemIsProtectedFromWholeJobsToo(t *testing.T) {
	v := policytest.Cluster{Queues: policytest.Queues("q"), Jobs: []policytest.Job{
		{Name: "user", Queue: "q", Tasks: []policytest.Tasks{{Detail: class("system-cluster-critical")}, {}}},
	}}.View(t)
	s, err := conformance.Plugin{}.Open(v)
	require.NoError(t, err)
	got, vote := s.(policy.GangEvictor).GangEvictable(0, policytest.TaskIDs(t, v, "user-0", "user-1"), nil)
	require.Equal(t, policy.Permit, vote)
	require.Equal(t, policytest.TaskIDs(t, v, "user-1"), got)
}
