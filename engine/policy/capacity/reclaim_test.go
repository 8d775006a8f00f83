package capacity_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
)

func TestVictimsAreJudgedInTheOrderInWhichTheSessionWouldEvictThem(t *testing.T) {
	s := cluster{
		total:  ten,
		queues: []queue{{name: "a", deserved: amounts{"cpu": 2000}}, {name: "b", deserved: amounts{"cpu": 5000}}},
		jobs:   []job{jobOf("a", times(4, running(small))...), jobOf("b", pending(small))},
	}.flat(t)
	victims, spared, vote := s.reclaimable("j1.0", "j0.0", "j0.1", "j0.2", "j0.3")
	require.Equal(t, policy.Permit, vote)
	require.Equal(t, []string{"j0.0", "j0.1"}, victims, "two may go until the queue has what it deserves")
	require.Equal(t, map[string]policy.Reason{
		"j0.2": s.why(policy.WithinDeserved, "a", "cpu", 2000, 1000, 2000),
		"j0.3": s.why(policy.WithinDeserved, "a", "cpu", 2000, 1000, 2000),
	}, spared)

	given := []model.TaskID{0, 1, 2, 3}
	s.v.SortVictims = func(claimant model.TaskID, candidates []model.TaskID) {
		require.Equal(t, s.task("j1.0"), claimant)
		slices.Reverse(candidates)
	}
	got, _ := s.Reclaimable(s.task("j1.0"), given, nil, nil)
	require.Equal(t, []model.TaskID{3, 2}, got)
	require.Equal(t, []model.TaskID{0, 1, 2, 3}, given, "the caller's list stays")
	require.Equal(t, amounts{"cpu": 4000, "memory": 4, "pods": 4}, s.row(s.share("a").Allocated), "and so do the accounts")
	got, _ = s.Reclaimable(s.task("j1.0"), given, got, nil)
	require.Equal(t, []model.TaskID{3, 2, 3, 2}, got, "asked again, the answer is the same, appended")
}

func TestAGuaranteeOfAnotherDimensionProtects(t *testing.T) {
	s := cluster{
		total:  amounts{"cpu": 10_000, "memory": 10, "gpu": 4000},
		queues: []queue{{name: "a", guarantee: amounts{"gpu": 2000}}, {name: "b", deserved: amounts{"cpu": 5000}}},
		jobs:   []job{jobOf("a", times(2, running(small))...), jobOf("b", pending(small))},
	}.flat(t)
	victims, spared, vote := s.reclaimable("j1.0", "j0.0", "j0.1")
	require.Empty(t, victims)
	require.Equal(t, policy.Permit, vote)
	require.Equal(t, s.why(policy.GuaranteeKept, "a", "gpu", 0, 0, 2000), spared["j0.0"])
}

func TestClaimantAndVictimNeedADimensionInCommon(t *testing.T) {
	s := cluster{
		total:  amounts{"cpu": 10_000, "memory": 10, "gpu": 4000},
		queues: []queue{{name: "a"}, {name: "b"}},
		jobs: []job{
			jobOf("a", running(amounts{"cpu": 4000, "pods": 1}), running(amounts{"gpu": 4000, "pods": 1}), running(amounts{"gpu": 0.05, "pods": 1})),
			jobOf("b", pending(amounts{"gpu": 1000, "pods": 1})),
		},
	}.flat(t)
	victims, spared, _ := s.reclaimable("j1.0", "j0.0", "j0.1", "j0.2")
	require.Equal(t, []string{"j0.1"}, victims, "where nothing is deserved, all candidates are victims")
	require.Equal(t, s.because(policy.NoSharedDimension, "a"), spared["j0.0"], "pods are nothing in common")
	require.Equal(t, s.because(policy.NoSharedDimension, "a"), spared["j0.2"])
}

func TestDeservedPodsProtectAndNeverExceed(t *testing.T) {
	s := cluster{
		total:  ten,
		queues: []queue{{name: "a", deserved: amounts{"pods": 1}}, {name: "b"}},
		jobs:   []job{jobOf("a", times(3, running(small))...), jobOf("b", pending(small))},
	}.flat(t)
	victims, spared, _ := s.reclaimable("j1.0", "j0.0")
	require.Empty(t, victims)
	require.Equal(t, s.because(policy.WithinDeserved, "a"), spared["j0.0"], "three pods of one deserved, and yet")
}

func TestADeservedScalarOfZeroIsExceeded(t *testing.T) {
	s := cluster{
		total:  amounts{"cpu": 10_000, "memory": 10, "gpu": 4000},
		queues: []queue{{name: "a", deserved: amounts{"cpu": 9000, "gpu": 0}}, {name: "b"}},
		jobs:   []job{jobOf("a", running(amounts{"cpu": 1000, "gpu": 1000}), running(small)), jobOf("b", pending(small))},
	}.flat(t)
	victims, spared, _ := s.reclaimable("j1.0", "j0.0", "j0.1")
	require.Equal(t, []string{"j0.0"}, victims)
	require.Equal(t, s.why(policy.WithinDeserved, "a", "cpu", 1000, 1000, 9000), spared["j0.1"])
}

// family is a tree in which a1 and a2 are siblings under a, and b1 hangs under b.
func family(deserved map[string]amounts, jobs ...job) cluster {
	c := cluster{total: ten, jobs: jobs}
	for _, q := range []queue{
		{name: "root"}, {name: "a"}, {name: "a1", parent: "a"}, {name: "a2", parent: "a"}, {name: "b"}, {name: "b1", parent: "b"},
	} {
		q.deserved = deserved[q.name]
		c.queues = append(c.queues, q)
	}
	return c
}

func TestAncestorsProtectOnlyWhereTheyAreNotTheClaimantsOwn(t *testing.T) {
	c := family(map[string]amounts{"a": {"cpu": 2000}, "a2": {"cpu": 1000}, "b": {"cpu": 1000}, "b1": {"cpu": 1000}},
		jobOf("a1", times(2, running(small))...), jobOf("a2", pending(small)), jobOf("b1", pending(small)))

	s := c.tree(t)
	victims, _, _ := s.reclaimable("j2.0", "j0.0", "j0.1")
	require.Len(t, victims, 2, "level 0 asks no ancestor")

	s = c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 1})
	victims, spared, _ := s.reclaimable("j2.0", "j0.0", "j0.1")
	require.Empty(t, victims)
	require.Equal(t, s.why(policy.WithinDeserved, "a", "cpu", 2000, 1000, 2000), spared["j0.0"], "a has no more than it deserves")
	victims, _, _ = s.reclaimable("j1.0", "j0.0", "j0.1")
	require.Len(t, victims, 2, "within a, a itself protects no task")
}

func TestATakenVictimCountsAtTheAncestorsToo(t *testing.T) {
	c := family(map[string]amounts{"a": {"cpu": 2000}, "b1": {"cpu": 1000}},
		jobOf("a1", times(2, running(small))...), jobOf("a2", running(small)), jobOf("b1", pending(small)))
	s := c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 1})
	victims, spared, _ := s.reclaimable("j2.0", "j0.0", "j1.0", "j0.1")
	require.Equal(t, []string{"j0.0"}, victims)
	require.Equal(t, s.why(policy.WithinDeserved, "a", "cpu", 2000, 1000, 2000), spared["j1.0"])
}

func TestTwoWhoDeserveNothingTakeNothingFromEachOtherUnderACommonAncestor(t *testing.T) {
	c := family(map[string]amounts{"a": {"cpu": 2000}, "b": {"cpu": 2000}},
		jobOf("a1", running(small)), jobOf("a2", pending(small)), jobOf("b1", pending(small)))
	s := c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 1})
	victims, spared, _ := s.reclaimable("j1.0", "j0.0")
	require.Empty(t, victims)
	require.Equal(t, s.because(policy.BestEffortSubtree, "a1"), spared["j0.0"])

	s = c.tree(t)
	victims, _, _ = s.reclaimable("j1.0", "j0.0")
	require.Len(t, victims, 1, "level 0 knows no such rule")

	c.queues[3].deserved = amounts{"cpu": 500}
	s = c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 1})
	victims, _, _ = s.reclaimable("j1.0", "j0.0")
	require.Len(t, victims, 1, "a claimant that deserves something may claim it")
}

func TestPassedChecksAreShownWhenWanted(t *testing.T) {
	c := family(map[string]amounts{"a": {"cpu": 500}, "a1": {"cpu": 500}}, jobOf("a1", running(small)), jobOf("b1", pending(small)))
	c.queues[2].guarantee = amounts{"memory": 0.05}
	s := c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 3})
	g := policy.Grounds{Checks: &policy.Checks{}}
	s.Reclaimable(s.task("j1.0"), []model.TaskID{s.task("j0.0")}, nil, &g)
	require.Equal(t, []policy.Check{
		{Task: 0, Passed: true, Reason: s.why(policy.NoSharedDimension, "a1", "cpu", 1000, 1000, 0)},
		{Task: 0, Passed: true, Reason: s.why(policy.GuaranteeKept, "a1", "memory", 1, 1, 0.05)},
		{Task: 0, Passed: true, Reason: s.why(policy.WithinDeserved, "a1", "cpu", 1000, 1000, 500)},
		{Task: 0, Passed: true, Reason: s.why(policy.WithinDeserved, "a", "cpu", 1000, 1000, 500)},
	}, g.Checks.List)
	require.Empty(t, g.Spared.List)
}

func TestForAWholeJobAQueueKeepsItsGuaranteeAndWhatItDeserves(t *testing.T) {
	gpu := amounts{"gpu": 1000, "pods": 1}
	s := cluster{
		total: amounts{"cpu": 20_000, "memory": 20, "gpu": 4000},
		queues: []queue{
			{name: "a", deserved: amounts{"cpu": 2000}},
			{name: "b", deserved: amounts{"cpu": 5000}},
			{name: "c", guarantee: amounts{"memory": 2}},
		},
		jobs: []job{
			jobOf("a", append(times(3, running(small)), running(gpu))...), jobOf("b", append(times(2, running(small)), pending(small))...),
			jobOf("c", times(3, running(small))...),
		},
	}.flat(t)
	ask := func(candidates ...string) []string {
		ids := make([]model.TaskID, 0, len(candidates))
		for _, c := range candidates {
			ids = append(ids, s.task(c))
		}
		got, vote := s.GangEvictable(s.v.Tasks.At(s.task("j1.2")).Job, ids, nil)
		require.Equal(t, policy.Permit, vote)
		names := []string{}
		for _, id := range got {
			names = append(names, s.v.TaskUID(id))
		}
		return names
	}
	require.Equal(t, []string{"j0.2"}, ask("j0.2", "j0.0", "j0.1"), "in the order given, until the queue has what it deserves")
	require.Equal(t, []string{"j0.3"}, ask("j0.3"), "nothing of it is deserved, and the claimant need not ask for it")
	require.Equal(t, []string{"j2.1"}, ask("j2.1", "j2.0", "j2.2"), "the guarantee stays")
	require.Equal(t, []string{"j1.0", "j1.1"}, ask("j1.0", "j1.1"), "the claimant's own queue is not tested")
	require.Equal(t, amounts{"cpu": 3000, "gpu": 1000, "memory": 3, "pods": 4}, s.row(s.share("a").Allocated), "accounts stay")
}

func TestForAWholeJobARefusedTreeGivesNothingOfOthers(t *testing.T) {
	s := cluster{
		total:  ten,
		queues: []queue{{name: "a"}, {name: "b"}},
		jobs:   []job{jobOf("a", running(small)), jobOf("b", running(small), pending(small))},
	}.tree(t)
	claimant := s.v.Tasks.At(s.task("j1.1")).Job
	got, vote := s.GangEvictable(claimant, []model.TaskID{s.task("j0.0")}, nil)
	require.Empty(t, got)
	require.Equal(t, policy.Reject, vote)
	got, vote = s.GangEvictable(claimant, []model.TaskID{s.task("j1.0")}, nil)
	require.Len(t, got, 1)
	require.Equal(t, policy.Permit, vote)
}
