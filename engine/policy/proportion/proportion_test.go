package proportion_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

func TestDeserved(t *testing.T) {
	ten := amounts{"cpu": 10_000, "memory": 100}
	for name, tc := range map[string]struct {
		node   amounts
		queues []queue
		jobs   []job
		want   map[string]amounts
	}{
		"weights divide what both want": {
			ten,
			[]queue{{name: "a", weight: 3}, {name: "b", weight: 1}},
			[]job{jobOf("a", pending(amounts{"cpu": 10_000})), jobOf("b", pending(amounts{"cpu": 10_000}))},
			map[string]amounts{"a": {"cpu": 7500, "memory": 0}, "b": {"cpu": 2500, "memory": 0}},
		},
		"what one queue does not want goes to the others": {
			ten,
			[]queue{{name: "a", weight: 1}, {name: "b", weight: 1}},
			[]job{jobOf("a", pending(amounts{"cpu": 2000})), jobOf("b", pending(amounts{"cpu": 10_000}))},
			map[string]amounts{"a": {"cpu": 2000, "memory": 0}, "b": {"cpu": 8000, "memory": 0}},
		},
		"a queue without jobs takes no part but keeps its guarantee from the others' real capability": {
			ten,
			[]queue{{name: "a", weight: 1}, {name: "idle", weight: 9, guarantee: amounts{"cpu": 4000}}},
			[]job{jobOf("a", pending(amounts{"cpu": 10_000}))},
			map[string]amounts{"a": {"cpu": 6000, "memory": 0}},
		},
		"an idle guarantee is given away to two busy queues together": {
			ten,
			[]queue{{name: "a", weight: 1}, {name: "b", weight: 1}, {name: "idle", weight: 1, guarantee: amounts{"cpu": 4000}}},
			[]job{jobOf("a", pending(amounts{"cpu": 10_000})), jobOf("b", pending(amounts{"cpu": 10_000}))},
			map[string]amounts{"a": {"cpu": 5000, "memory": 0}, "b": {"cpu": 5000, "memory": 0}},
		},
		"guarantees beyond the cluster are deserved all the same": {
			ten,
			[]queue{{name: "a", weight: 1, guarantee: amounts{"cpu": 20_000}}, {name: "b", weight: 1, guarantee: amounts{"cpu": 10_000}}},
			[]job{jobOf("a", pending(amounts{"cpu": 1000})), jobOf("b", pending(amounts{"cpu": 1000}))},
			map[string]amounts{"a": {"cpu": 20_000, "memory": 0}, "b": {"cpu": 10_000, "memory": 0}},
		},
		"all weights 0 give nothing, not even guarantees": {
			ten,
			[]queue{{name: "a", guarantee: amounts{"cpu": 2000}}, {name: "b"}},
			[]job{jobOf("a", pending(amounts{"cpu": 1000})), jobOf("b", pending(amounts{"cpu": 1000}))},
			map[string]amounts{"a": {"cpu": 0, "memory": 0}, "b": {"cpu": 0, "memory": 0}},
		},
		"a scalar that is guaranteed away entirely is unlimited for the others": {
			amounts{"cpu": 10_000, "memory": 100, "gpu": 4000},
			[]queue{{name: "a", weight: 1, guarantee: amounts{"gpu": 4000}}, {name: "b", weight: 1}},
			[]job{jobOf("a", pending(amounts{"gpu": 1000})), jobOf("b", pending(amounts{"gpu": 1000}))},
			map[string]amounts{"a": {"cpu": 0, "memory": 0, "gpu": 4000}, "b": {"cpu": 0, "memory": 0, "gpu": 1000}},
		},
		"capability 0 of cpu is unlimited, of a scalar it is 0": {
			amounts{"cpu": 10_000, "memory": 100, "gpu": 4000},
			[]queue{{name: "a", weight: 1, capability: amounts{"cpu": 0, "gpu": 0}}},
			[]job{jobOf("a", pending(amounts{"cpu": 3000, "gpu": 1000}))},
			map[string]amounts{"a": {"cpu": 3000, "memory": 0, "gpu": 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := build(t, tc.node, tc.queues, tc.jobs)
			_, s := open(t, m)
			for q, want := range tc.want {
				require.Equal(t, want, named(m, share(t, m, s, q).Deserved), "queue %s", q)
			}
		})
	}
}

func TestAQueueWithoutJobsHasNoAccount(t *testing.T) {
	m := build(t, amounts{"cpu": 1000}, []queue{{name: "a", weight: 1}}, nil)
	_, s := open(t, m)
	_, ok := s.Share(0)
	require.False(t, ok)
	require.False(t, s.Overused(0, nil))
}

func TestOverusedNeedsEveryDimension(t *testing.T) {
	node := amounts{"cpu": 4000, "memory": 400}
	m := build(t, node, []queue{{name: "a", weight: 1}, {name: "b", weight: 1}}, []job{
		jobOf("a", running(amounts{"cpu": 4000, "memory": 100}), pending(amounts{"memory": 300})),
		jobOf("b", pending(amounts{"cpu": 4000, "memory": 400})),
	})
	_, s := open(t, m)
	var why policy.Reasons
	require.False(t, s.Overused(0, &why), "memory is below deserved")
	require.Empty(t, why.List)
	require.Equal(t, 2.0, share(t, m, s, "a").Share)
	require.False(t, s.Overused(1, nil))
}

func TestEnqueueBooksWhatItPermits(t *testing.T) {
	m := build(t, amounts{"cpu": 10_000, "memory": 100}, []queue{{name: "a", weight: 1}, {name: "shut", weight: 1, state: model.Closed}}, []job{
		{queue: "a", min: amounts{"cpu": 6000}},
		{queue: "a", min: amounts{"cpu": 6000}},
		{queue: "a"},
		{queue: "shut"},
	})
	_, s := open(t, m)
	var why policy.Reasons
	require.Equal(t, policy.Permit, s.Enqueueable(0, &why))
	require.Empty(t, why.List)
	require.Equal(t, policy.Reject, s.Enqueueable(1, &why))
	require.Equal(t, []policy.Reason{{
		Plugin: "proportion", Code: policy.AboveRealCapability, Queue: 0, Dimension: 0, Have: 6000, Need: 6000, Limit: 10_000,
	}}, why.List)
	require.Equal(t, policy.Permit, s.Enqueueable(2, nil), "a job without minimum is always let in")
	why = policy.Reasons{}
	require.Equal(t, policy.Reject, s.Enqueueable(3, &why), "unless its queue is closed")
	require.Equal(t, policy.QueueNotOpen, why.List[0].Code)
}

func TestAllocatableWithinDeserved(t *testing.T) {
	m := build(t, amounts{"cpu": 10_000, "memory": 100}, []queue{{name: "a", weight: 1}, {name: "b", weight: 1}, {name: "shut", weight: 1, state: model.Closed}}, []job{
		jobOf("a", running(amounts{"cpu": 3000}), pending(amounts{"cpu": 7000})),
		jobOf("b", pending(amounts{"cpu": 10_000})),
		jobOf("shut", pending(amounts{})),
	})
	_, s := open(t, m)
	ask := func(queue int, cpu float64, mode policy.Mode) bool {
		row := m.Requests[0].Clone()
		row.V[0] = cpu
		return s.Allocatable(model.QueueID(queue), policy.Request{Row: row, BestEffort: cpu == 0}, mode, nil, nil)
	}
	require.True(t, ask(0, 2000, policy.InSession))
	require.False(t, ask(0, 2001, policy.InSession))
	require.True(t, ask(0, 0, policy.InSession), "best effort always fits")
	require.False(t, ask(2, 0, policy.InSession), "a closed queue takes nothing")
	require.True(t, ask(2, 0, policy.InSimulation), "a simulation does not look at the state")
}

func TestReclaimTakesFromWhoeverHasTooMuchOfAnything(t *testing.T) {
	node := amounts{"cpu": 10_000, "memory": 100}
	m := build(t, node, []queue{{name: "rich", weight: 1}, {name: "poor", weight: 1}}, []job{
		jobOf("rich", running(amounts{"cpu": 4000}), running(amounts{"cpu": 4000}), running(amounts{"memory": 10})),
		jobOf("poor", pending(amounts{"cpu": 10_000, "memory": 100})),
	})
	_, s := open(t, m)
	var g policy.Grounds
	victims, vote := s.Reclaimable(3, []model.TaskID{2, 0, 1}, nil, &g)
	require.Equal(t, policy.Permit, vote)
	require.Equal(t, []model.TaskID{2, 0}, victims, "the memory pod goes too, though memory is not above deserved; then one cpu pod is enough")
	require.Len(t, g.Spared.List, 1)
	require.Equal(t, model.TaskID(1), g.Spared.List[0].Task)
	require.Equal(t, policy.Reason{
		Plugin: "proportion", Code: policy.WithinDeserved, Queue: 0, Dimension: 0, Have: 4000, Need: 4000, Limit: 5000,
	}, g.Spared.List[0].Reason)
	require.Equal(t, 8000.0, share(t, m, s, "rich").Allocated.V[0], "asking changes nothing")
}

func TestEventsMoveAllocatedAndShareAndRollBackExactly(t *testing.T) {
	m := build(t, amounts{"cpu": 10_000, "memory": 100}, []queue{{name: "a", weight: 1}}, []job{
		jobOf("a", running(amounts{"cpu": 1000}), pending(amounts{"cpu": 3000, "gpu": 0})),
	})
	v, s := open(t, m)
	before := share(t, m, s, "a")
	allocated := before.Allocated.Clone()
	at := v.Journal.Mark()
	s.Allocate(1)
	after := share(t, m, s, "a")
	require.Equal(t, amounts{"cpu": 4000, "memory": 0, "gpu": 0}, named(m, after.Allocated))
	require.Equal(t, 1.0, after.Share)
	v.Journal.Rollback(at)
	require.Equal(t, named(m, allocated), named(m, share(t, m, s, "a").Allocated))
	require.Equal(t, before.Share, share(t, m, s, "a").Share)
}

func TestWarningsNameSurprises(t *testing.T) {
	m := build(t, amounts{"cpu": 10_000, "memory": 100, "gpu": 2000}, []queue{
		{name: "a", guarantee: amounts{"cpu": 20_000, "gpu": 2000}, capability: amounts{"cpu": 1000}},
		{name: "idle", weight: 1, guarantee: amounts{"memory": 1}},
	}, []job{jobOf("a", pending(amounts{"cpu": 1}))})
	_, s := open(t, m)
	var codes []policy.WarningCode
	s.Warnings(func(w policy.Warning) { codes = append(codes, w.Code) })
	require.Equal(t, []policy.WarningCode{
		policy.AllWeightsZero, policy.GuaranteesExceedTotal, policy.ScalarGuaranteedAway, policy.GuaranteeAboveCapability, policy.IdleGuarantee,
	}, codes)
}

func TestEveryZeroCapabilityIsWarnedOf(t *testing.T) {
	m := build(t, amounts{"cpu": 10_000, "memory": 100}, []queue{{name: "a", weight: 1, capability: amounts{"cpu": 0, "memory": 0}}},
		[]job{jobOf("a", pending(amounts{"cpu": 1}))})
	_, s := open(t, m)
	var texts []string
	s.Warnings(func(w policy.Warning) { texts = append(texts, w.Text) })
	require.Equal(t, []string{"a capability of 0 cpu counts as unlimited", "a capability of 0 memory counts as unlimited"}, texts)
}
