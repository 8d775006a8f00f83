package capacity_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/resource"
)

func TestAllocatableNamesTheAncestorThatIsFull(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "root"},
			{name: "a", capability: amounts{"cpu": 2000}},
			{name: "a1", parent: "a"},
			{name: "a2", parent: "a", state: model.Closed},
		},
		jobs: []job{
			jobOf("a1", running(small), pending(small), pending(amounts{"cpu": 1500}), pending(amounts{"gpu": 1}), pending(amounts{"pods": 1})),
			jobOf("a2", pending(small)),
		},
	}.tree(t)
	ok, why := s.allocatable("j0.1", policy.InSession)
	require.True(t, ok, "exactly full is not too full")
	require.Empty(t, why)

	ok, why = s.allocatable("j0.2", policy.InSession)
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "a1", "cpu", 1000, 1500, 2000)}, why,
		"the capability is inherited, so the child is the first that is full")

	ok, why = s.allocatable("j0.3", policy.InSession)
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "a1", "gpu", 0, 1, 0)}, why, "the cluster has no such scalar")

	ok, _ = s.allocatable("j0.4", policy.InSession)
	require.True(t, ok, "best effort always fits")

	ok, why = s.allocatable("j1.0", policy.InSession)
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.because(policy.QueueNotOpen, "a2")}, why)
	ok, _ = s.allocatable("j1.0", policy.InSimulation)
	require.True(t, ok, "a simulation does not ask for the state")

	var checks policy.Checks
	s.Allocatable(s.queue("a1"), s.request(s.task("j0.2")), policy.InSession, nil, &checks)
	require.Equal(t, []policy.Check{
		{Task: model.None, Reason: s.why(policy.AboveRealCapability, "a1", "cpu", 1000, 1500, 2000)},
		{Task: model.None, Reason: s.why(policy.AboveRealCapability, "a", "cpu", 1000, 1500, 2000)},
		{Task: model.None, Passed: true, Reason: s.why(policy.AboveRealCapability, "root", "cpu", 1000, 1500, unlimited)},
	}, checks.List)
}

func TestAnAncestorIsFullThoughTheQueueIsNot(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "root"},
			{name: "a", capability: amounts{"cpu": 2000}},
			{name: "a1", parent: "a"},
			{name: "a2", parent: "a"},
		},
		jobs: []job{
			jobOf("a1", times(2, running(small))...),
			{queue: "a2", min: amounts{"cpu": 1, "pods": 1000}, tasks: []task{pending(small)}},
		},
	}.tree(t)
	ok, why := s.allocatable("j1.0", policy.InSession)
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "a", "cpu", 2000, 1000, 2000)}, why)

	vote, why := s.enqueueable("j1")
	require.Equal(t, policy.Permit, vote, "all that runs without a minimum is elastic: %v", why)
	s.Deallocate(s.task("j0.0"))
	require.Equal(t, amounts{"cpu": 1, "memory": 0, "pods": 1000}, s.row(s.share("root").Inqueue), "pods are booked though not compared")
}

func TestPreemptiveNeedsOneDimensionWithinDeserved(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "a", deserved: amounts{"cpu": 4000, "memory": 1}},
			{name: "z"},
			{name: "closed", deserved: amounts{"cpu": 4000}, state: model.Closing},
		},
		jobs: []job{
			jobOf("a", running(amounts{"cpu": 1000, "memory": 5}), pending(amounts{"cpu": 1000, "memory": 1}),
				pending(amounts{"cpu": 1000, "memory": 6}), pending(amounts{"memory": 1}), pending(amounts{"pods": 1}),
				pending(amounts{"cpu": 3000.05})),
			jobOf("z", pending(small)),
			jobOf("closed", pending(amounts{"pods": 1})),
		},
	}.flat(t)
	ok, _ := s.preemptive("j0.1")
	require.True(t, ok, "cpu fits, memory does not")
	ok, why := s.preemptive("j0.2")
	require.False(t, ok, "real capability counts in every dimension")
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "a", "memory", 5, 6, 10)}, why)
	ok, why = s.preemptive("j0.3")
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.why(policy.NoDimensionWithinDeserved, "a", "memory", 5, 1, 1)}, why)
	ok, why = s.preemptive("j0.4")
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.because(policy.BestEffortClaimant, "a")}, why)
	ok, _ = s.preemptive("j0.5")
	require.True(t, ok, "deserved is compared with a tolerance of 0.1")
	ok, why = s.preemptive("j1.0")
	require.False(t, ok)
	require.Equal(t, policy.NoDimensionWithinDeserved, why[0].Code)
	ok, why = s.preemptive("j2.0")
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.because(policy.QueueNotOpen, "closed")}, why, "the state is asked first")
}

func TestNearAncestorsMayPreemptForAQueueThatDeservesNothing(t *testing.T) {
	c := cluster{
		total: ten,
		queues: []queue{
			{name: "root"}, {name: "a", deserved: amounts{"cpu": 2000}}, {name: "b", parent: "a"}, {name: "c", parent: "b"},
		},
		jobs: []job{jobOf("c", pending(small))},
	}
	for level, want := range map[int]bool{-1: false, 0: false, 1: false, 2: true, 3: true, 1 << 40: true} {
		s := c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: level})
		ok, _ := s.preemptive("j0.0")
		require.Equal(t, want, ok, "level %d", level)
	}

	c.queues[1].deserved = nil
	c.queues = append(c.queues, queue{name: "other", deserved: amounts{"cpu": 9000}})
	s := c.open(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 9})
	ok, _ := s.preemptive("j0.0")
	require.False(t, ok, "the root, which deserves 9 cores, has no say")
}

func TestAPermitBooksTheMinimumOnAllAncestors(t *testing.T) {
	s := cluster{
		total: amounts{"cpu": 10_000, "memory": 10, "gpu": 4000, "pods": 110},
		queues: []queue{
			{name: "root"},
			{name: "a", capability: amounts{"cpu": 3000}},
			{name: "a1", parent: "a"},
			{name: "a2", parent: "a"},
			{name: "shut", state: model.StateUnknown},
		},
		jobs: []job{
			{queue: "a1", min: amounts{"cpu": 2000, "gpu": 0}, tasks: []task{
				pending(amounts{"cpu": 500}),
				{gate: model.GateOther, request: amounts{"cpu": 300}},
				{gate: model.GateAdmission, request: amounts{"cpu": 100}},
			}},
			{queue: "a2", min: amounts{"cpu": 1300}},
			{queue: "a2", min: amounts{"cpu": 1300.5}},
			{queue: "a2"},
			{queue: "shut"},
		},
	}.tree(t)
	vote, _ := s.enqueueable("j0")
	require.Equal(t, policy.Permit, vote)
	for _, q := range []string{"a1", "a", "root"} {
		require.Equal(t, amounts{"cpu": 1700, "memory": 0, "gpu": 0}, s.row(s.share(q).Inqueue), "%s is booked less what gates hold", q)
	}
	vote, why := s.enqueueable("j2")
	require.Equal(t, policy.Reject, vote)
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "a", "cpu", 1700, 1300.5, 3000)}, why)
	vote, _ = s.enqueueable("j1")
	require.Equal(t, policy.Permit, vote, "enqueue knows no tolerance, but exactly full is not too full")
	vote, _ = s.enqueueable("j3")
	require.Equal(t, policy.Permit, vote, "no minimum, no limit")
	vote, why = s.enqueueable("j4")
	require.Equal(t, policy.Reject, vote)
	require.Equal(t, []policy.Reason{s.because(policy.QueueNotOpen, "shut")}, why)
}

func TestQueueOrderInATree(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "root"},
			{name: "a", deserved: amounts{"cpu": 2000}},
			{name: "a1", parent: "a", deserved: amounts{"cpu": 9000}},
			{name: "a2", parent: "a"},
			{name: "b", deserved: amounts{"cpu": 4000}},
			{name: "b1", parent: "b", deserved: amounts{"cpu": 1000}},
			{name: "first", priority: 1},
			{name: "deep", parent: "b", deserved: amounts{"cpu": 500}},
			{name: "deeper", parent: "deep"},
		},
		jobs: []job{jobOf("a1", running(small)), jobOf("b1", running(small)), jobOf("deeper", running(small))},
	}.tree(t)
	for _, tt := range []struct {
		l, r string
		want int
		why  string
	}{
		{"first", "a1", -1, "priority first, whatever the shares"},
		{"first", "a", -1, "even before leaf and inner"},
		{"a1", "b", -1, "leaves before inner queues"},
		{"a", "b", 0, "inner queues by their own shares: 1/2 and 2/4"},
		{"b1", "a1", 0, "leaves of two subtrees by the subtrees' shares"},
		{"a1", "a2", -1, "siblings by their own"},
		{"b1", "deeper", -1, "a leaf beside a subtree: its own share of 1 against the subtree's 2"},
	} {
		require.Equal(t, tt.want, s.CompareQueues(s.queue(tt.l), s.queue(tt.r)), tt.why)
		require.Equal(t, -tt.want, s.CompareQueues(s.queue(tt.r), s.queue(tt.l)), tt.why)
	}
}

func TestVictimsComeFromNearFirst(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "root"},
			{name: "a"},
			{name: "aa", parent: "a"},
			{name: "aa1", parent: "aa"},
			{name: "aa2", parent: "aa"},
			{name: "ab", parent: "a"},
			{name: "b"},
			{name: "c"},
		},
	}.tree(t)
	order := s.decider.(policy.VictimQueueOrderer)
	compare := func(l, r, claimant string) int {
		return cmp.Compare(order.Nearness(s.queue(r), s.queue(claimant)), order.Nearness(s.queue(l), s.queue(claimant)))
	}
	require.Negative(t, compare("aa2", "ab", "aa1"))
	require.Positive(t, compare("b", "ab", "aa1"))
	require.Zero(t, compare("aa1", "aa2", "aa1"), "a sibling is as near as the claimant's own queue")
	require.Zero(t, compare("b", "c", "aa1"))
	require.Zero(t, compare("root", "b", "aa1"))
	_, ordered := cluster{total: ten}.flat(t).decider.(policy.VictimQueueOrderer)
	require.False(t, ordered, "flat, no queue is nearer than another")
}

func TestARefusedTreeRefusesEverything(t *testing.T) {
	deep := []queue{{name: "root"}}
	for i := range hierarchy.MaxDepth + 1 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("q", i-1)
		}
		deep = append(deep, queue{name: fmt.Sprint("q", i), parent: parent})
	}
	deep = append(deep, queue{name: "a"}, queue{name: "b"})
	for name, tt := range map[string]struct {
		queues []queue
		kind   hierarchy.Kind
		queue  string
	}{
		"root missing":       {queues: []queue{{name: "a"}, {name: "b"}}, kind: hierarchy.MissingRoot},
		"unknown parent":     {queues: []queue{{name: "root"}, {name: "a"}, {name: "b", parent: "x"}}, kind: hierarchy.UnknownParent, queue: "b"},
		"own parent":         {queues: []queue{{name: "root"}, {name: "a", parent: "a"}, {name: "b"}}, kind: hierarchy.Cycle, queue: "a"},
		"cycle":              {queues: []queue{{name: "root"}, {name: "b", parent: "a"}, {name: "a", parent: "b"}}, kind: hierarchy.Cycle, queue: "a"},
		"job on inner queue": {queues: []queue{{name: "root"}, {name: "a"}, {name: "b", parent: "a"}}, kind: hierarchy.NotLeaf, queue: "a"},
		"too deep":           {queues: deep, kind: hierarchy.TooDeep, queue: fmt.Sprint("q", hierarchy.MaxDepth)},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster{
				total: ten, queues: tt.queues,
				jobs: []job{jobOf("a", running(small), pending(small)), jobOf("b", running(small))},
			}.tree(t)
			want := policy.Because("capacity", policy.HierarchyRefused, model.None)
			if tt.queue != "" {
				want.Queue = s.queue(tt.queue)
			}
			want.Fault = uint8(tt.kind)

			var why policy.Reasons
			require.False(t, s.decider.(policy.Tree).Accepted(&why))
			require.Equal(t, []policy.Reason{want}, why.List)
			for _, mode := range []policy.Mode{policy.InSession, policy.InSimulation} {
				ok, why := s.allocatable("j0.1", mode)
				require.False(t, ok)
				require.Equal(t, []policy.Reason{want}, why)
			}
			ok, reasons := s.preemptive("j0.1")
			require.False(t, ok)
			require.Equal(t, []policy.Reason{want}, reasons)
			vote, reasons := s.enqueueable("j0")
			require.Equal(t, policy.Reject, vote)
			require.Equal(t, []policy.Reason{want}, reasons)
			victims, spared, vote := s.reclaimable("j0.1", "j1.0")
			require.Empty(t, victims)
			require.Equal(t, map[string]policy.Reason{"j1.0": want}, spared)
			require.Equal(t, policy.Reject, vote)

			require.Zero(t, s.CompareQueues(s.queue("a"), s.queue("b")))
			require.Zero(t, s.decider.(policy.VictimQueueOrderer).Nearness(s.queue("b"), s.queue("a")))
			_, takesPart := s.Share(s.queue("a"))
			require.False(t, takesPart)
			s.Allocate(s.task("j0.1"))
			s.Deallocate(s.task("j0.0"))
			require.Empty(t, s.Derivation(nil))
			var warned []policy.Warning
			s.Warnings(func(w policy.Warning) { warned = append(warned, w) })
			require.Len(t, warned, 1)
			require.Equal(t, policy.TreeRefused, warned[0].Code)
		})
	}
}

func TestFlatAQueueWithoutJobsIsRefusedNotAFault(t *testing.T) {
	s := cluster{total: ten, queues: []queue{{name: "a"}, {name: "idle"}}, jobs: []job{jobOf("a", pending(small))}}.flat(t)
	var why policy.Reasons
	require.False(t, s.Allocatable(s.queue("idle"), s.request(s.task("j0.0")), policy.InSession, &why, nil))
	require.Equal(t, []policy.Reason{s.because(policy.QueueTakesNoPart, "idle")}, why.List)
	require.False(t, s.Preemptive(s.queue("idle"), s.request(s.task("j0.0")), nil, nil))
}

func TestSevenLevelsBelowTheRootFollowTheSameRules(t *testing.T) {
	queues := []queue{{name: "root"}}
	for i := range 9 {
		parent := "root"
		if i > 0 {
			parent = fmt.Sprint("l", i-1)
		}
		queues = append(queues, queue{name: fmt.Sprint("l", i), parent: parent}, queue{name: fmt.Sprint("x", i), parent: parent})
	}
	queues[1].capability = amounts{"cpu": 1000}
	s := cluster{total: ten, queues: queues, jobs: []job{jobOf("l8", running(small), pending(small)), jobOf("x8", pending(small))}}.tree(t)
	for _, uid := range []string{"j0.1", "j1.0"} {
		ok, _ := s.allocatable(uid, policy.InSession)
		require.False(t, ok, "the capability of the first level is used up")
	}
	require.Len(t, s.share("x8").Ancestors, 9)
	require.InDelta(t, 1000, s.share("l3").Allocated.V[resource.CPU], 0)
	require.Zero(t, s.share("x3").Allocated.V[resource.CPU])
}
