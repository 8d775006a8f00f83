package capacity_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

var (
	unlimited = math.Inf(1)
	// small asks for one core and some memory.
	small = amounts{"cpu": 1000, "memory": 1, "pods": 1}
	ten   = amounts{"cpu": 10_000, "memory": 10, "pods": 110}
)

func TestFlatDeservedIsWhatIsWrittenWithinRealCapability(t *testing.T) {
	s := cluster{
		total: amounts{"cpu": 10_000, "memory": 10, "gpu": 4000, "pods": 110},
		queues: []queue{
			{name: "root"},
			{name: "a", deserved: amounts{"cpu": 50_000, "gpu": 9000}},
			{name: "b", guarantee: amounts{"cpu": 8000}},
			{name: "c", capability: amounts{"cpu": 0, "gpu": 3000}, deserved: amounts{"gpu": 4000}},
		},
		jobs: []job{jobOf("a", pending(small)), jobOf("b", running(small)), jobOf("c")},
	}.flat(t)

	a, b, c := s.share("a"), s.share("b"), s.share("c")
	require.Equal(t, amounts{"cpu": 2000, "memory": 0, "gpu": 4000}, s.row(a.Deserved))
	require.Equal(t, amounts{"cpu": 2000, "memory": 10, "gpu": 4000, "pods": 110}, s.row(a.RealCapability))
	require.Equal(t, amounts{"cpu": 0, "memory": 0}, s.row(a.Capability), "no capability is shown as zeros")
	require.Equal(t, amounts{"cpu": 8000, "memory": 0}, s.row(b.Deserved), "the guarantee is deserved")
	require.Equal(t, amounts{"cpu": 10_000, "memory": 10, "gpu": 4000, "pods": 110}, s.row(b.RealCapability))
	require.InDelta(t, 0.125, b.Share, 0)
	require.Equal(t, resource.CPU, b.Dominant)
	require.Equal(t, amounts{"cpu": unlimited, "memory": unlimited, "gpu": 3000}, s.row(c.Capability), "a capability of 0 cpu is none")
	require.Equal(t, amounts{"cpu": 2000, "memory": 10, "gpu": 3000, "pods": 110}, s.row(c.RealCapability))
	require.Equal(t, amounts{"cpu": 0, "memory": 0, "gpu": 3000}, s.row(c.Deserved))

	_, takesPart := s.Share(s.queue("root"))
	require.False(t, takesPart, "without jobs there is no account, and root is an ordinary queue")
}

func TestAQueueThatDeservesNothingButPodsIsServedLast(t *testing.T) {
	s := cluster{
		total:  ten,
		queues: []queue{{name: "a"}, {name: "b", deserved: amounts{"pods": 3}}, {name: "c", deserved: amounts{"cpu": 1000}}, {name: "d"}},
		jobs:   []job{jobOf("a", running(small)), jobOf("b", running(small)), jobOf("c", running(small)), jobOf("d")},
	}.flat(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		require.InDelta(t, 1, s.share(name).Share, 0, name)
	}
	require.Equal(t, -1, s.share("b").Dominant)
	require.Zero(t, s.CompareQueues(s.queue("a"), s.queue("b")))
	require.Positive(t, s.CompareQueues(s.queue("a"), s.queue("c")), "of equal shares the one that deserves something is first")
	require.Negative(t, s.CompareQueues(s.queue("c"), s.queue("b")))
}

func TestATreeIsNotCappedByTheClusterNorBySiblings(t *testing.T) {
	s := cluster{
		total: amounts{"cpu": 10_000, "memory": 10, "gpu": 4000},
		queues: []queue{
			{name: "root"},
			{name: "a", deserved: amounts{"cpu": 50_000, "gpu": 9000}},
			{name: "b", guarantee: amounts{"cpu": 8000}},
		},
		jobs: []job{jobOf("a", pending(small)), jobOf("b", running(small))},
	}.tree(t)

	all := amounts{"cpu": unlimited, "memory": unlimited, "gpu": unlimited}
	root, a := s.share("root"), s.share("a")
	require.Equal(t, amounts{"cpu": 50_000, "memory": 0, "gpu": 9000}, s.row(a.Deserved))
	require.Equal(t, all, s.row(a.Capability))
	require.Equal(t, all, s.row(a.RealCapability))
	require.Equal(t, amounts{"cpu": 58_000, "memory": 0, "gpu": 9000}, s.row(root.Deserved), "the root deserves what its children do")
	require.Equal(t, amounts{"cpu": 8000, "memory": 0}, s.row(root.Guarantee))
	require.Equal(t, amounts{"cpu": 1000, "memory": 1, "pods": 1}, s.row(root.Allocated))
	require.Equal(t, amounts{"cpu": 2000, "memory": 2, "pods": 2}, s.row(root.Request))
	require.Equal(t, []model.QueueID{s.queue("a"), s.queue("b")}, root.Children)
	require.Equal(t, []model.QueueID{s.queue("root")}, a.Ancestors)
	require.InDelta(t, 1000.0/58_000, root.Share, 0)
}

func TestAChildMayBeGivenMoreThanItsParentHas(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "root"},
			{name: "a", capability: amounts{"cpu": 2000}, deserved: amounts{"cpu": 1000}, guarantee: amounts{"cpu": 1000}},
			{name: "a1", parent: "a", capability: amounts{"cpu": 5000}, deserved: amounts{"cpu": 4000}, guarantee: amounts{"cpu": 3000}},
		},
	}.tree(t)
	a1 := s.share("a1")
	require.Equal(t, amounts{"cpu": 5000, "memory": unlimited, "pods": unlimited}, s.row(a1.Capability))
	require.Equal(t, amounts{"cpu": 3000, "memory": unlimited, "pods": unlimited}, s.row(a1.RealCapability))
	require.Equal(t, amounts{"cpu": 4000, "memory": 0}, s.row(a1.Deserved))
	require.Equal(t, amounts{"cpu": 2000, "memory": unlimited, "pods": unlimited}, s.row(s.share("a").RealCapability))

	var codes []policy.WarningCode
	s.Warnings(func(w policy.Warning) { codes = append(codes, w.Code) })
	require.Equal(t, []policy.WarningCode{
		policy.ChildExceedsParent, policy.ChildExceedsParent, policy.ChildExceedsParent,
	}, codes)
}

func TestWhatTheRootsCapabilityLeavesOutIsZeroEverywhere(t *testing.T) {
	s := cluster{
		total: amounts{"cpu": 10_000, "memory": 10, "gpu": 4000},
		queues: []queue{
			{name: "root", capability: amounts{"cpu": 40_000}},
			{name: "a", deserved: amounts{"cpu": 5000, "memory": 5}},
			{name: "b", capability: amounts{"gpu": 2000, "memory": 3}},
		},
		jobs: []job{{queue: "a", min: small, tasks: []task{pending(small)}}, jobOf("b", pending(amounts{"gpu": 1000}))},
	}.tree(t)
	require.Equal(t, amounts{"cpu": 40_000, "memory": 0}, s.row(s.share("a").RealCapability))
	require.Equal(t, amounts{"cpu": 40_000, "memory": 3, "gpu": 2000}, s.row(s.share("b").Capability))
	require.Equal(t, amounts{"cpu": 40_000, "memory": 0}, s.row(s.share("b").RealCapability))

	ok, why := s.allocatable("j0.0", policy.InSession)
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "a", "memory", 0, 1, 0)}, why)
	ok, why = s.allocatable("j1.0", policy.InSession)
	require.False(t, ok)
	require.Equal(t, []policy.Reason{s.why(policy.AboveRealCapability, "b", "gpu", 0, 1000, 0)}, why)
	vote, _ := s.enqueueable("j0")
	require.Equal(t, policy.Reject, vote)

	var codes []policy.WarningCode
	s.Warnings(func(w policy.Warning) { codes = append(codes, w.Code) })
	require.Equal(t, []policy.WarningCode{policy.PartialRootCapability, policy.ChildExceedsParent}, codes[:2])
}

func TestARootCapabilityOfNothingButPodsIsNoCapability(t *testing.T) {
	s := cluster{total: ten, queues: []queue{{name: "root", capability: amounts{"cpu": 0, "pods": 3}}}}.tree(t)
	require.Equal(t, amounts{"cpu": unlimited, "memory": unlimited, "pods": unlimited}, s.row(s.share("root").RealCapability))
}

func TestEventsChangeTheOwnShareButNotTheAncestors(t *testing.T) {
	s := cluster{
		total: ten,
		queues: []queue{
			{name: "root"},
			{name: "a", deserved: amounts{"cpu": 4000}},
			{name: "a1", parent: "a", deserved: amounts{"cpu": 4000}},
			{name: "b", deserved: amounts{"cpu": 4000}},
			{name: "b1", parent: "b", deserved: amounts{"cpu": 4000}},
		},
		jobs: []job{jobOf("a1", times(3, pending(small))...), jobOf("b1", pending(small))},
	}.tree(t)
	for i, want := range []float64{0.25, 0.5, 0.75} {
		s.Allocate(s.task([]string{"j0.0", "j0.1", "j0.2"}[i]))
		require.InDelta(t, want, s.share("a1").Share, 0)
		require.Zero(t, s.share("a").Share)
	}
	require.Equal(t, amounts{"cpu": 3000, "memory": 3, "pods": 3}, s.row(s.share("root").Allocated))
	require.Zero(t, s.CompareQueues(s.queue("a1"), s.queue("b1")), "the order between subtrees stays that of session open")
	require.Equal(t, amounts{"cpu": 3000, "memory": 3, "pods": 3}, s.row(s.share("a").Request), "request is that of session open")
}

func TestRollbackPutsEveryBitBack(t *testing.T) {
	s := cluster{
		total:  ten,
		queues: []queue{{name: "root"}, {name: "a", deserved: amounts{"cpu": 0.3}}},
		jobs: []job{
			jobOf("a", running(amounts{"cpu": 0.1}), running(amounts{"cpu": 0.2}), pending(amounts{"cpu": 0.3, "gpu": 1})),
			{queue: "a", min: amounts{"cpu": 0.7, "gpu": 0}},
		},
	}.tree(t)
	look := func() []any {
		return []any{s.row(s.share("a").Allocated), s.row(s.share("root").Inqueue), s.share("a").Share, s.share("a").Dominant}
	}
	before := look()
	mark := s.v.Journal.Mark()
	s.Deallocate(s.task("j0.0"))
	s.Allocate(s.task("j0.2"))
	vote, _ := s.enqueueable("j1")
	require.Equal(t, policy.Permit, vote)
	require.NotEqual(t, before[1], s.row(s.share("root").Inqueue))
	require.NotEqual(t, before[2], s.share("a").Share)
	s.v.Journal.Rollback(mark)
	require.Equal(t, before, look())
}

func TestDerivationShowsHowEachLevelGotItsNumbers(t *testing.T) {
	c := cluster{
		total: ten,
		queues: []queue{
			{name: "b", parent: "a", guarantee: amounts{"cpu": 1000}},
			{name: "a", capability: amounts{"cpu": 4000}},
			{name: "root"},
			{name: "c", parent: "a", guarantee: amounts{"cpu": 2000}, deserved: amounts{"cpu": 1000}},
		},
		jobs: []job{jobOf("b"), jobOf("c")},
	}
	s := c.tree(t)
	levels := s.Derivation(nil)
	order := []model.QueueID{}
	for _, l := range levels {
		order = append(order, l.Queue)
	}
	require.Equal(t, []model.QueueID{s.queue("root"), s.queue("a"), s.queue("b"), s.queue("c")}, order)
	require.Equal(t, model.QueueID(model.None), levels[0].Parent)
	require.True(t, levels[0].ParentRealCapability.Absent())

	b := levels[2]
	require.Equal(t, 2, b.Depth)
	require.Equal(t, s.queue("a"), b.Parent)
	require.True(t, b.Capability.Absent())
	require.Equal(t, amounts{"cpu": 4000, "memory": unlimited, "pods": unlimited}, s.row(b.ResolvedCapability))
	require.Equal(t, amounts{"cpu": 4000, "memory": unlimited, "pods": unlimited}, s.row(b.ParentRealCapability))
	require.Equal(t, amounts{"cpu": 3000, "memory": 0}, s.row(b.SiblingGuarantee))
	require.Equal(t, amounts{"cpu": 2000, "memory": unlimited, "pods": unlimited}, s.row(b.RealCapability))
	c2 := s.Derivation([]model.QueueID{s.queue("c")})
	require.Len(t, c2, 1)
	require.Equal(t, amounts{"cpu": 1000}, s.row(c2[0].WrittenDeserved))
	require.Equal(t, amounts{"cpu": 2000, "memory": 0}, s.row(c2[0].Deserved))

	flat := c.flat(t)
	level := flat.Derivation(nil)
	require.Len(t, level, 2, "flat, only queues with jobs have an account")
	require.Equal(t, ten, flat.row(level[0].ParentRealCapability))
	require.Equal(t, amounts{"cpu": 3000, "memory": 0}, flat.row(level[0].SiblingGuarantee))
	require.Equal(t, model.QueueID(model.None), level[0].Parent)
}

func TestFlatWarnings(t *testing.T) {
	s := cluster{
		total: amounts{"cpu": 10_000, "memory": 10, "gpu": 4000},
		queues: []queue{
			{name: "a", guarantee: amounts{"cpu": 6000, "gpu": 4000}, capability: amounts{"cpu": 5000, "memory": 0}},
			{name: "idle", guarantee: amounts{"cpu": 6000}},
		},
		jobs: []job{jobOf("a")},
	}.flat(t)
	got := map[policy.WarningCode]string{}
	s.Warnings(func(w policy.Warning) { got[w.Code] = w.Path })
	require.Equal(t, map[policy.WarningCode]string{
		policy.GuaranteesExceedTotal: "queues", policy.ScalarGuaranteedAway: "queues", policy.IdleGuarantee: "queues[1].guarantee",
		policy.GuaranteeAboveCapability: "queues[0].guarantee", policy.ZeroCapabilityIsUnlimited: "queues[0].capability",
	}, got)
}

func TestEveryZeroCapabilityIsWarnedOf(t *testing.T) {
	s := cluster{
		total:  amounts{"cpu": 10_000, "memory": 10},
		queues: []queue{{name: "a", capability: amounts{"cpu": 0, "memory": 0}}},
		jobs:   []job{jobOf("a")},
	}.flat(t)
	var texts []string
	s.Warnings(func(w policy.Warning) { texts = append(texts, w.Text) })
	require.Equal(t, []string{"a capability of 0 cpu counts as unlimited", "a capability of 0 memory counts as unlimited"}, texts)
}
