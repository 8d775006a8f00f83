package kueue_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/policy/kueue"
)

// queue returns a queue with quota for one flavor and cpu.
func queue(name, cohort string, nominal kueue.Amount) kueue.Queue {
	return kueue.Queue{
		Name: name, Cohort: cohort, Weight: 1, Preemption: kueue.Preemption{Reclaim: kueue.Any, Within: kueue.LowerPriority},
		Groups: []kueue.Group{{Covered: []string{"cpu"}, Flavors: []kueue.FlavorQuota{{
			Flavor: "f", Resources: []kueue.Quota{{Resource: "cpu", Nominal: nominal}},
		}}}},
	}
}

// waiting returns a pending workload of one pod.
func waiting(name, queue string, cpu kueue.Amount) kueue.Workload {
	return kueue.Workload{
		Name: name, UID: name, Queue: queue,
		PodSets: []kueue.PodSet{{Name: "main", Count: 1, Requests: []kueue.Request{{Resource: "cpu", Amount: cpu}}}},
	}
}

// running returns an admitted workload.
func running(name, queue string, cpu kueue.Amount) kueue.Workload {
	w := waiting(name, queue, cpu)
	w.Reserved = new(int64)
	w.Admission = &kueue.Admission{Queue: queue, PodSets: []kueue.AdmittedPodSet{{
		Name: "main", Usage: []kueue.FlavoredUsage{{Resource: "cpu", Flavor: "f", Amount: cpu, Used: true}},
	}}}
	return w
}

func cluster(queues []kueue.Queue, workloads ...kueue.Workload) *kueue.Cluster {
	return &kueue.Cluster{Flavors: []kueue.Flavor{{Name: "f"}}, Queues: queues, Workloads: workloads}
}

func open(t require.TestingT, c *kueue.Cluster, s kueue.Settings) *kueue.Session {
	m, err := kueue.Compile(c, s)
	require.NoError(t, err)
	return m.NewSession()
}

func TestAQueueBorrowsWhatItsSiblingDoesNotUse(t *testing.T) {
	s := open(t, cluster([]kueue.Queue{queue("a", "root", 4000), queue("b", "root", 4000)}, waiting("w", "a", 6000)), kueue.Default())
	a := s.Assign(0, nil)
	require.Equal(t, kueue.Fit, a.Mode)
	require.EqualValues(t, 1, a.Borrows)
	require.Equal(t, []kueue.Use{{FR: 0, Amount: 6000}}, a.Usage)
}

func TestAQueueReclaimsWhatItsSiblingBorrows(t *testing.T) {
	s := open(t, cluster([]kueue.Queue{queue("a", "root", 4000), queue("b", "root", 4000)},
		running("x", "b", 3000), running("y", "b", 3000), waiting("w", "a", 4000)), kueue.Default())
	n := s.Nominate(2)
	require.Equal(t, kueue.Preempt, n.Mode)
	require.Equal(t, []kueue.Victim{{Workload: 0, Reason: kueue.InCohortReclamation}}, n.Victims)
}

func TestCohortsInACycleTakeNoPart(t *testing.T) {
	c := cluster([]kueue.Queue{queue("a", "x", 4000), queue("b", "", 4000)}, waiting("w", "a", 1000), running("r", "a", 1000))
	c.Cohorts = []kueue.Cohort{{Name: "x", Parent: "y"}, {Name: "y", Parent: "z"}, {Name: "z", Parent: "y"}}
	s := open(t, c, kueue.Default())
	require.True(t, s.InCycle(0))
	require.False(t, s.InCycle(1))
	require.Equal(t, kueue.Assignment{}, s.Assign(0, nil))
}

func TestADeepTreeIsRefused(t *testing.T) {
	c := cluster([]kueue.Queue{queue("a", "c0", 1)})
	for i := range 2000 {
		c.Cohorts = append(c.Cohorts, kueue.Cohort{Name: fmt.Sprintf("c%d", i), Parent: fmt.Sprintf("c%d", i+1)})
	}
	_, err := kueue.Compile(c, kueue.Default())
	require.ErrorContains(t, err, "cohorts")
}

func TestTooManyAccountsAreRefused(t *testing.T) {
	c := &kueue.Cluster{}
	for i := range 1500 {
		q := queue(fmt.Sprint("q", i), "root", 1)
		q.Groups[0].Flavors[0].Flavor = fmt.Sprint("f", i)
		c.Queues = append(c.Queues, q)
	}
	_, err := kueue.Compile(c, kueue.Default())
	require.ErrorContains(t, err, "accounts")
}

func TestUnlimitedStaysUnlimited(t *testing.T) {
	s := open(t, cluster([]kueue.Queue{queue("a", "root", kueue.Unlimited), queue("b", "root", 5)},
		running("r", "b", math.MaxInt64-1), running("s", "b", math.MaxInt64-1), waiting("w", "b", math.MaxInt64-1)), kueue.Default())
	for _, a := range s.Accounts(1) {
		require.Equal(t, kueue.Unlimited, a.Potential)
	}
	require.NotPanics(t, func() { s.Nominate(2); s.Cycle() })
}

func TestUsageOfALocalQueueDecays(t *testing.T) {
	u := &kueue.UsageSharing{HalfLife: 100, Interval: 100}
	require.InDelta(t, 0.5, u.Alpha(100), 1e-12)
	require.InDelta(t, 6, u.Decay(8, 4, 100), 1e-12)
	require.InDelta(t, 2, u.EntryPenalty(4), 1e-12)
	require.Zero(t, (&kueue.UsageSharing{}).Alpha(100))
}

func TestLessUsageIsServedFirstAndLosesLast(t *testing.T) {
	settings := kueue.Default()
	settings.Usage = &kueue.UsageSharing{Weights: []kueue.ResourceWeight{{Resource: "cpu", Weight: 2}}}
	heavy := &kueue.LocalQueue{Name: "heavy", Weight: 1, Consumed: []kueue.Usage{{Resource: "cpu", Amount: 9}}}
	light := &kueue.LocalQueue{Name: "light", Weight: 1, Consumed: []kueue.Usage{{Resource: "cpu", Amount: 1}}}
	q := queue("a", "", 4000)
	q.UsageBased = true
	with := func(w kueue.Workload, local *kueue.LocalQueue, priority int64) kueue.Workload {
		w.LocalQueue, w.Priority = local, priority
		return w
	}
	s := open(t, cluster([]kueue.Queue{q}, with(running("r-light", "a", 2000), light, 0), with(running("r-heavy", "a", 2000), heavy, 1),
		with(waiting("w-heavy", "a", 1000), heavy, 5), with(waiting("w-light", "a", 1000), light, 4)), settings)
	require.Equal(t, []int32{3, 2}, s.Pending(0))
	require.Equal(t, []kueue.Victim{{Workload: 1, Reason: kueue.InQueue}}, s.Nominate(3).Victims)
}

// drawn is a random cluster with trees, limits, preemption and several flavors.
func drawn(t *rapid.T) *kueue.Cluster {
	c := &kueue.Cluster{Flavors: []kueue.Flavor{{Name: "f"}, {Name: "g"}}}
	amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1}))
	limit := func(name string) *kueue.Amount {
		if !rapid.Bool().Draw(t, name) {
			return nil
		}
		return new(kueue.Amount(amount.Draw(t, name)))
	}
	names := []string{"", "r", "s", "t"}
	for _, name := range names[1:] {
		c.Cohorts = append(c.Cohorts, kueue.Cohort{
			Name: name, Parent: rapid.SampledFrom(names).Draw(t, "parent"), Weight: rapid.Float64Range(0, 2).Draw(t, "weight"),
		})
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "queues") {
		q := kueue.Queue{
			Name: fmt.Sprint("q", i), Cohort: rapid.SampledFrom(names).Draw(t, "cohort"), Weight: rapid.Float64Range(0, 2).Draw(t, "weight"),
			Preemption: kueue.Preemption{
				Reclaim: kueue.Choice(rapid.IntRange(0, 4).Draw(t, "reclaim")), Within: kueue.Choice(rapid.IntRange(0, 4).Draw(t, "within")),
				Borrow: rapid.Bool().Draw(t, "borrow"),
			},
			Fungibility: kueue.Fungibility{
				BorrowNext: rapid.Bool().Draw(t, "next"), PreemptStop: rapid.Bool().Draw(t, "stop"),
				PreferPreemption: rapid.Bool().Draw(t, "prefer"),
			},
			Groups: []kueue.Group{{Covered: []string{"cpu", "pods"}}},
		}
		for _, f := range []string{"f", "g"} {
			q.Groups[0].Flavors = append(q.Groups[0].Flavors, kueue.FlavorQuota{Flavor: f, Resources: []kueue.Quota{
				{Resource: "cpu", Nominal: kueue.Amount(amount.Draw(t, "nominal")), Borrowing: limit("borrowing"), Lending: limit("lending")},
				{Resource: "pods", Nominal: 10},
			}})
		}
		c.Queues = append(c.Queues, q)
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "workloads") {
		w := waiting(fmt.Sprint("w", i), fmt.Sprint("q", rapid.IntRange(0, 5).Draw(t, "queue")), kueue.Amount(amount.Draw(t, "request")))
		if rapid.Bool().Draw(t, "running") {
			w = running(w.Name, w.Queue, w.PodSets[0].Requests[0].Amount)
		}
		w.Priority = rapid.Int64Range(0, 3).Draw(t, "priority")
		w.PodSets[0].Count, w.PodSets[0].Least = rapid.Int32Range(0, 5).Draw(t, "count"), new(int32)
		c.Workloads = append(c.Workloads, w)
	}
	return c
}

func settings(t *rapid.T) kueue.Settings {
	s := kueue.Default()
	s.Fair = rapid.Bool().Draw(t, "fair")
	s.RecomputeAssignmentUponPreemptionTargetsOverlap = rapid.Bool().Draw(t, "recompute")
	return s
}

// small bounds the amounts of workloads.
func small(c *kueue.Cluster) *kueue.Cluster {
	for i := range c.Workloads {
		w := &c.Workloads[i]
		w.PodSets[0].Requests[0].Amount = min(w.PodSets[0].Requests[0].Amount, 1000)
		if w.Admission != nil {
			w.Admission.PodSets[0].Usage[0].Amount = min(w.Admission.PodSets[0].Usage[0].Amount, 1000)
		}
	}
	return c
}

// TestAQuestionLeavesNothingBehind asks everything twice and in another order: the answers and the accounts stay the same. Amounts near the
// largest are left out, since what saturates cannot be taken back, in Kueue neither.
func TestAQuestionLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small(drawn(t))
		s := open(t, c, settings(t))
		state := func() (all []any) {
			for n := range int32(s.Queues() + s.Cohorts()) {
				if !s.InCycle(n) {
					all = append(all, s.Accounts(n), s.Share(n))
				}
			}
			return all
		}
		before := state()
		first := make([]kueue.Nomination, len(c.Workloads))
		for i := range c.Workloads {
			first[i] = s.Nominate(int32(i))
		}
		cycle := s.Cycle()
		for i, nominated := range slices.Backward(first) {
			require.Equal(t, nominated, s.Nominate(int32(i)))
		}
		require.Equal(t, cycle, s.Cycle())
		require.Equal(t, before, state())
	})
}

// TestAnAdmissionKeepsWithinTheQuota holds for each queue that fits: after the admission it has not more than it could ever have.
func TestAnAdmissionKeepsWithinTheQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		s := open(t, c, settings(t))
		for i := range int32(len(c.Workloads)) {
			if a := s.Assign(i, nil); a.Mode == kueue.Fit {
				for _, u := range a.Usage {
					flavor, resource := s.FlavorResource(s.QueueOf(i), u.FR)
					for _, account := range s.Accounts(s.QueueOf(i)) {
						if account.Flavor == flavor && account.Resource == resource {
							require.LessOrEqual(t, u.Amount, account.Potential)
						}
					}
				}
			}
		}
	})
}
