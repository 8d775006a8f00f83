package kueue_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
)

// opened returns the policy opened on a cluster.
func opened(t require.TestingT, c *kueue.Cluster, s kueue.Settings) *kueue.State {
	b := model.NewBuilder(0)
	b.Queue(model.QueueSpec{Name: "any"})
	for i := range c.Workloads {
		b.Job(model.JobSpec{UID: c.Workloads[i].UID, Queue: "any", Phase: model.PhasePending})
	}
	m, err := b.Build()
	require.NoError(t, err)
	view := policy.NewView(m, nil)
	view.Work = policy.NewWork(100 * policy.DefaultWork)
	plugin := kueue.Plugin{Settings: s, Cluster: func(*model.Model) (*kueue.Cluster, error) { return c, nil }}
	state, err := plugin.Open(view)
	require.NoError(t, err)
	of, ok := state.(*kueue.State)
	require.True(t, ok)
	return of
}

// remedy returns the remedy of a kind of the last workload of a cluster.
func remedy(t *testing.T, c *kueue.Cluster, kind kueue.RemedyKind) kueue.Remedy {
	t.Helper()
	found := opened(t, c, kueue.Default()).Remedies(int32(len(c.Workloads)-1), []kueue.RemedyKind{kind})
	require.Len(t, found.List, 1)
	return found.List[0]
}

func TestTheLeastChangeOfEachKindIsFound(t *testing.T) {
	limited := func(nominal kueue.Amount, borrowing, lending *kueue.Amount) []kueue.Group {
		g := queue("", "", nominal).Groups
		g[0].Flavors[0].Resources[0].Borrowing, g[0].Flavors[0].Resources[0].Lending = borrowing, lending
		return g
	}
	of := func(a kueue.Amount) *kueue.Amount { return &a }
	a, b := queue("a", "root", 4000), queue("b", "root", 4000)
	a.Groups, b.Groups = limited(4000, of(1000), nil), limited(4000, nil, of(3000))
	c := cluster([]kueue.Queue{a, b}, running("r", "b", 500), waiting("w", "a", 6000))

	nominal := remedy(t, c, kueue.MoreNominal)
	require.Equal(t, []kueue.Edit{{
		Field: kueue.NominalQuota, Queue: "a", Workload: -1, Flavor: "f", Resource: "cpu", Before: 4000, After: 5000, Given: true,
	}}, nominal.Edits)
	require.Equal(t, kueue.Fit, nominal.Nomination.Mode)
	require.EqualValues(t, 2000, remedy(t, c, kueue.MoreBorrowing).Edits[0].After)
	require.EqualValues(t, 5000, remedy(t, c, kueue.SmallerRequest).Edits[0].After)

	a.Groups = limited(4000, nil, nil)
	b.Groups[0].Flavors[0].Resources[0].Lending = of(1000)
	lending := remedy(t, cluster([]kueue.Queue{a, b}, running("r", "b", 500), waiting("w", "a", 6000)), kueue.MoreLending)
	require.Equal(t, "b", lending.Edits[0].Queue)
	require.EqualValues(t, 2000, lending.Edits[0].After)
}

func TestAStoppedQueueAndAMissingFlavorAreMended(t *testing.T) {
	stopped := queue("a", "", 4000)
	stopped.Stopped = true
	require.Equal(t, kueue.StopPolicy, remedy(t, cluster([]kueue.Queue{stopped}, waiting("w", "a", 1000)), kueue.OpenedQueue).Edits[0].Field)
	c := cluster([]kueue.Queue{queue("a", "", 4000)}, waiting("w", "a", 1000))
	c.Flavors = nil
	require.Equal(t, "f", remedy(t, c, kueue.MadeFlavor).Edits[0].Flavor)
}

func TestTwoKindsAreChangedTogetherWhereNeitherIsEnough(t *testing.T) {
	of := func(a kueue.Amount) *kueue.Amount { return &a }
	remedies := func(c *kueue.Cluster) map[kueue.RemedyKind][]kueue.Edit {
		found := map[kueue.RemedyKind][]kueue.Edit{}
		for _, r := range opened(t, c, kueue.Default()).Remedies(int32(len(c.Workloads)-1), nil).List {
			found[r.Kind] = r.Edits
		}
		return found
	}
	quota := func(field kueue.Field, queue string, before, after int64) kueue.Edit {
		return kueue.Edit{Field: field, Queue: queue, Workload: -1, Flavor: "f", Resource: "cpu", Before: before, After: after, Given: true}
	}

	a, b := queue("a", "root", 4000), queue("b", "root", 4000)
	a.Groups[0].Flavors[0].Resources[0].Borrowing, b.Groups[0].Flavors[0].Resources[0].Lending = of(1000), of(1500)
	found := remedies(cluster([]kueue.Queue{a, b}, waiting("w", "a", 7000)))
	require.NotContains(t, found, kueue.MoreBorrowing, "the other queue lends too little")
	require.Equal(t, []kueue.Edit{
		quota(kueue.BorrowingLimit, "a", 1000, 3000), quota(kueue.LendingLimit, "b", 1500, 3000),
	}, found[kueue.MoreLending])
	require.Len(t, found[kueue.MoreNominal], 1)

	stopped := queue("a", "", 4000)
	stopped.Stopped = true
	found = remedies(cluster([]kueue.Queue{stopped}, waiting("w", "a", 7000)))
	require.NotContains(t, found, kueue.OpenedQueue)
	require.Equal(t, []kueue.Edit{
		{Field: kueue.StopPolicy, Queue: "a", Workload: -1}, quota(kueue.NominalQuota, "a", 4000, 7000),
	}, found[kueue.MoreNominal])
	require.Equal(t, []kueue.Edit{
		{Field: kueue.StopPolicy, Queue: "a", Workload: -1},
		{Field: kueue.PodRequest, Workload: 0, Resource: "cpu", Before: 7000, After: 4000, Given: true},
	}, found[kueue.SmallerRequest])

	w := waiting("w", "a", 1000)
	w.PodSets[0].Count = 8
	require.Equal(t, []kueue.Edit{
		{Field: kueue.StopPolicy, Queue: "a", Workload: -1}, {Field: kueue.LeastPods, Workload: 0, Before: 8, After: 4, Given: true},
	}, remedies(cluster([]kueue.Queue{stopped}, w))[kueue.FewerPods])

	c := cluster([]kueue.Queue{queue("a", "", 4000)}, waiting("w", "a", 7000))
	c.Flavors = nil
	require.Equal(t, []kueue.Edit{
		{Field: kueue.MissingFlavor, Flavor: "f", Workload: -1}, quota(kueue.NominalQuota, "a", 4000, 7000),
	}, remedies(c)[kueue.MoreNominal])
}

func TestFewerPodsAndAHigherPriority(t *testing.T) {
	w := waiting("w", "a", 1000)
	w.PodSets[0].Count = 8
	pods := remedy(t, cluster([]kueue.Queue{queue("a", "", 5000)}, w), kueue.FewerPods)
	require.EqualValues(t, 5, pods.Edits[0].After)
	require.True(t, pods.Nomination.Partial)
	r := running("r", "a", 4000)
	r.Priority = 7
	raised := remedy(t, cluster([]kueue.Queue{queue("a", "", 4000)}, r, waiting("w", "a", 1000)), kueue.HigherPriority)
	require.EqualValues(t, 8, raised.Edits[0].After)
	require.Equal(t, []kueue.Victim{{Workload: 0, Reason: kueue.InQueue}}, raised.Nomination.Victims)
}

func TestTheFewestHoldersOfLowPriorityEnd(t *testing.T) {
	high := running("high", "a", 2000)
	high.Priority = 5
	ended := remedy(t, cluster([]kueue.Queue{queue("a", "", 4000)}, high, running("low", "a", 2000), waiting("w", "a", 2000)), kueue.EndedHolders)
	require.Len(t, ended.Edits, 1)
	require.EqualValues(t, 1, ended.Edits[0].Workload)
}

func TestAWorkloadBehindAnotherComesFirstWithAHigherPriority(t *testing.T) {
	q := queue("a", "", 4000)
	q.Strict = true
	first, w := waiting("first", "a", 9000), waiting("w", "a", 1000)
	first.Priority = 3
	raised := remedy(t, cluster([]kueue.Queue{q}, first, w), kueue.HigherPriority)
	require.EqualValues(t, 4, raised.Edits[0].After)
	require.Equal(t, kueue.Fit, raised.Nomination.Mode)
}

// TestARemedyIsWhatItSays draws clusters and makes each remedy in them by hand: the workload is admitted then, and not with one step less
// of any edit. No two remedies change the same.
func TestARemedyIsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := small(drawn(t)), settings(t)
		// One tree without cycles, and partial admission in half of the clusters: most workloads wait.
		for i := range c.Cohorts {
			c.Cohorts[i].Parent = map[int]string{0: "", 1: "r", 2: "r"}[i]
		}
		for i := range c.Queues {
			c.Queues[i].Cohort = c.Cohorts[i%3].Name
		}
		partial := rapid.Bool().Draw(t, "partial")
		for i := range c.Workloads {
			if set := &c.Workloads[i].PodSets[0]; !partial {
				set.Least = nil
			} else {
				set.Least = new(max(set.Count/2, 1))
			}
		}
		devices(t, c)
		// Another tree has a resource that comes first by its name.
		c.Queues = append(c.Queues, queue("other", "", 1))
		c.Queues[len(c.Queues)-1].Groups[0].Covered, c.Queues[len(c.Queues)-1].Groups[0].Flavors[0].Resources[0].Resource = []string{"a"}, "a"
		state := opened(t, c, s)
		for i := range int32(len(c.Workloads)) {
			n, judged := state.Judge(model.JobID(i))
			if !judged || n.Mode == kueue.Fit {
				continue
			}
			found := state.Remedies(i, []kueue.RemedyKind{kueue.MoreNominal, kueue.MoreBorrowing, kueue.MoreLending, kueue.EndedHolders})
			named := map[string]bool{}
			for _, r := range found.List {
				require.False(t, named[subjects(r.Edits)], "one change twice: %+v", found.List)
				named[subjects(r.Edits)] = true
				require.Equal(t, kueue.Fit, r.Nomination.Mode)
				changed := open(t, edited(c, r.Edits), s)
				admitted := changed.Nominate(i)
				require.Equal(t, kueue.Fit, admitted.Mode, "%+v", r)
				for k, set := range admitted.PodSets {
					for f, of := range set.Flavors {
						told := r.Nomination.PodSets[k].Flavors[f]
						require.Equal(t, changed.FlavorName(of.Flavor), state.FlavorName(told.Flavor))
						require.Equal(t, changed.ResourceName(of.Resource), state.ResourceName(told.Resource))
						require.Equal(t, of.Amount, told.Amount)
					}
				}
				for k := range r.Edits {
					less := slices.Clone(r.Edits)
					if less[k].After--; less[k].Field == kueue.HolderEnds || less[k].After <= less[k].Before {
						less = slices.Delete(less, k, k+1)
					}
					require.NotEqual(t, kueue.Fit, open(t, edited(c, less), s).Nominate(i).Mode, "%d of %+v", k, r)
				}
			}
			require.Equal(t, n, state.Nominate(i), "a question leaves nothing behind")
		}
	})
}

// devices gives the queues of some clusters a second group, of one or two flavors, for devices that the workloads ask for, too.
func devices(t *rapid.T, c *kueue.Cluster) {
	amount := rapid.Int64Range(0, 8)
	flavors := []string{"h", "i"}[:rapid.IntRange(0, 2).Draw(t, "device flavors")]
	if len(flavors) == 0 {
		return
	}
	for i := range c.Queues {
		group := kueue.Group{Covered: []string{"gpu"}}
		for _, name := range flavors {
			quota := kueue.Quota{Resource: "gpu", Nominal: kueue.Amount(amount.Draw(t, "devices"))}
			if rapid.Bool().Draw(t, "lends") {
				quota.Lending = new(kueue.Amount(amount.Draw(t, "lent")))
			}
			group.Flavors = append(group.Flavors, kueue.FlavorQuota{Flavor: name, Resources: []kueue.Quota{quota}})
		}
		c.Queues[i].Groups = append(c.Queues[i].Groups, group)
	}
	for _, name := range flavors {
		c.Flavors = append(c.Flavors, kueue.Flavor{Name: name})
	}
	for i := range c.Workloads {
		set := &c.Workloads[i].PodSets[0]
		each := kueue.Amount(amount.Draw(t, "asked"))
		set.Requests = append(set.Requests, kueue.Request{Resource: "gpu", Amount: each})
		if a := c.Workloads[i].Admission; a != nil {
			a.PodSets[0].Usage = append(a.PodSets[0].Usage, kueue.FlavoredUsage{
				Resource: "gpu", Flavor: flavors[0], Amount: each * kueue.Amount(set.Count), Used: true,
			})
		}
	}
}

// subjects says what edits change, whatever the amounts and the order.
func subjects(edits []kueue.Edit) string {
	var all []string
	for _, e := range edits {
		e.After = 0
		all = append(all, fmt.Sprint(e))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// edited makes edits in a copy of a cluster, quota by quota.
func edited(c *kueue.Cluster, edits []kueue.Edit) *kueue.Cluster {
	out := *c
	out.Queues, out.Workloads = append([]kueue.Queue{}, c.Queues...), append([]kueue.Workload{}, c.Workloads...)
	for i := range out.Queues {
		groups := []kueue.Group{}
		for _, g := range out.Queues[i].Groups {
			flavors := []kueue.FlavorQuota{}
			for _, f := range g.Flavors {
				f.Resources = append([]kueue.Quota{}, f.Resources...)
				flavors = append(flavors, f)
			}
			g.Flavors = flavors
			groups = append(groups, g)
		}
		out.Queues[i].Groups = groups
	}
	for _, e := range edits {
		switch e.Field {
		case kueue.HolderEnds:
			out.Workloads[e.Workload].Admission, out.Workloads[e.Workload].Queue = nil, ""
		case kueue.MissingFlavor:
			out.Flavors = append(slices.Clone(out.Flavors), kueue.Flavor{Name: e.Flavor})
		case kueue.PodRequest, kueue.LeastPods:
			set := out.Workloads[e.Workload].PodSets[0]
			set.Requests = slices.Clone(set.Requests)
			for k := range set.Requests {
				if e.Field == kueue.PodRequest && set.Requests[k].Resource == e.Resource {
					set.Requests[k].Amount = kueue.Amount(e.After)
				}
			}
			if e.Field == kueue.LeastPods {
				set.Least = new(int32(e.After))
			}
			out.Workloads[e.Workload].PodSets = []kueue.PodSet{set}
		default:
		}
		for i := range out.Queues {
			if e.Field == kueue.StopPolicy && out.Queues[i].Name == e.Queue {
				out.Queues[i].Stopped = false
			}
			for _, g := range out.Queues[i].Groups {
				for _, f := range g.Flavors {
					for k := range f.Resources {
						if out.Queues[i].Name != e.Queue || f.Flavor != e.Flavor || f.Resources[k].Resource != e.Resource {
							continue
						}
						amount := kueue.Amount(min(e.After, math.MaxInt64-1))
						switch e.Field {
						case kueue.NominalQuota:
							f.Resources[k].Nominal = amount
						case kueue.BorrowingLimit:
							f.Resources[k].Borrowing = &amount
						case kueue.LendingLimit:
							f.Resources[k].Lending = &amount
						default:
						}
					}
				}
			}
		}
	}
	return &out
}
