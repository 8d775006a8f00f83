package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// kueueQueue is a ClusterQueue with quota of CPUs in the flavor default.
func kueueQueue(name string, change func(*apportionv1.KueueQueue)) client.Queue {
	own := &apportionv1.KueueQueue{
		Groups: []*apportionv1.KueueResourceGroup{{CoveredResources: []string{"cpu"}, Flavors: []*apportionv1.KueueFlavorQuotas{
			{Name: "default", Resources: []*apportionv1.KueueQuota{{Name: "cpu", Nominal: 4000}}},
		}}},
		Preemption: &apportionv1.KueuePreemption{ReclaimWithinCohort: apportionv1.KueueChoice_KUEUE_CHOICE_ANY},
	}
	if change != nil {
		change(own)
	}
	return client.Queue{Name: name, Kueue: own}
}

// kueueJob is a Workload of one pod.
func kueueJob(name, resource string, amount int64, change func(*apportionv1.KueuePodSet)) client.Job {
	set := &apportionv1.KueuePodSet{Name: "main", Count: 1, Requests: []*apportionv1.KueueAmount{{Name: resource, Amount: amount}}}
	if change != nil {
		change(set)
	}
	return client.Job{Namespace: "n", Name: name, Queue: "a", Kueue: &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}}}
}

func TestPitfallsOfKueueAreFound(t *testing.T) {
	cohort := func(change func(*apportionv1.KueueQueue)) func(*apportionv1.KueueQueue) {
		return func(q *apportionv1.KueueQueue) {
			q.Cohort = "all"
			if change != nil {
				change(q)
			}
		}
	}
	quota := func(q *apportionv1.KueueQueue) *apportionv1.KueueQuota { return q.Groups[0].Flavors[0].Resources[0] }
	for name, test := range map[string]struct {
		kueue  *apportionv1.KueueSnapshot
		queues []client.Queue
		jobs   []client.Job
		rules  []string
	}{
		"nothing": {nil, []client.Queue{kueueQueue("a", nil)}, []client.Job{kueueJob("fits", "cpu", 4000, nil)}, nil},
		"what waits for quota in use is no pitfall": {
			nil, []client.Queue{kueueQueue("a", nil)}, []client.Job{kueueJob("fits", "cpu", 4000, nil), kueueJob("next", "cpu", 4000, nil)}, nil,
		},
		"a queue that is stopped": {
			nil,
			[]client.Queue{kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Stopped = true })},
			[]client.Job{kueueJob("waits", "cpu", 1, nil)},
			[]string{"kueue-inactive-queue"},
		},
		"a queue that is stopped and empty": {
			nil, []client.Queue{kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Stopped = true })}, nil, nil,
		},
		"a flavor that does not exist": {
			&apportionv1.KueueSnapshot{},
			[]client.Queue{kueueQueue("a", nil)},
			[]client.Job{kueueJob("waits", "cpu", 1, nil)},
			[]string{"kueue-inactive-queue"},
		},
		"a queue without quota": {
			&apportionv1.KueueSnapshot{},
			[]client.Queue{kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Groups = nil })},
			nil,
			[]string{"kueue-no-quota"},
		},
		"a resource that is not covered": {
			nil,
			[]client.Queue{kueueQueue("a", nil)},
			[]client.Job{kueueJob("waits", "nvidia.com/gpu", 1, nil)},
			[]string{"kueue-uncovered-resource"},
		},
		"more than there can be": {
			nil, []client.Queue{kueueQueue("a", nil)}, []client.Job{kueueJob("waits", "cpu", 4001, nil)}, []string{"kueue-never-fits"},
		},
		"a flavor that pods do not select": {
			&apportionv1.KueueSnapshot{Flavors: []*apportionv1.KueueFlavor{
				{Name: "default", NodeLabels: []*apportionv1.KueueLabel{{Key: "zone", Value: "a"}}},
			}},
			[]client.Queue{kueueQueue("a", nil)},
			[]client.Job{kueueJob("waits", "cpu", 1, func(p *apportionv1.KueuePodSet) {
				p.SelectorLabels = []*apportionv1.KueueLabel{{Key: "zone", Value: "b"}}
			})},
			[]string{"kueue-no-flavor-suits"},
		},
		"the first of a strict queue never fits": {
			nil,
			[]client.Queue{kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Strict = true })},
			[]client.Job{kueueJob("1", "cpu", 9000, nil), kueueJob("2", "cpu", 1000, nil)},
			[]string{"kueue-never-fits", "kueue-strict-queue-is-stuck"},
		},
		"a queue that may borrow nothing": {
			nil, []client.Queue{
				kueueQueue("a", cohort(func(q *apportionv1.KueueQueue) { quota(q).BorrowingLimit = new(int64(0)) })), kueueQueue("b", cohort(nil)),
			}, nil, []string{"kueue-may-not-borrow"},
		},
		"a cohort of one": {nil, []client.Queue{kueueQueue("a", cohort(nil))}, nil, []string{"kueue-lonely-cohort"}},
		"a cohort of one with quota of its own": {
			&apportionv1.KueueSnapshot{
				Flavors: []*apportionv1.KueueFlavor{{Name: "default"}},
				Cohorts: []*apportionv1.KueueCohort{{Name: "all", Groups: kueueQueue("", nil).Kueue.Groups}},
			}, []client.Queue{kueueQueue("a", cohort(nil))}, nil, nil,
		},
		"a queue that lends and may not reclaim": {
			nil, []client.Queue{
				kueueQueue("a", cohort(func(q *apportionv1.KueueQueue) { q.Preemption = nil })), kueueQueue("b", cohort(nil)),
			}, nil, []string{"kueue-lends-and-cannot-reclaim"},
		},
		"a queue that lends nothing need not reclaim": {
			nil, []client.Queue{
				kueueQueue("a", cohort(func(q *apportionv1.KueueQueue) { q.Preemption, quota(q).LendingLimit = nil, new(int64(0)) })),
				kueueQueue("b", cohort(nil)),
			}, nil, nil,
		},
		"a flavor without quota": {
			&apportionv1.KueueSnapshot{Flavors: []*apportionv1.KueueFlavor{{Name: "default"}, {Name: "spot"}}},
			[]client.Queue{kueueQueue("a", nil)},
			nil,
			[]string{"kueue-unused-flavor"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.kueue == nil {
				test.kueue = &apportionv1.KueueSnapshot{Flavors: []*apportionv1.KueueFlavor{{Name: "default"}}}
			}
			snapshot, err := client.NewSnapshot().Kueue(test.kueue).Queue(test.queues...).Job(test.jobs...).Build()
			require.NoError(t, err)
			policy, _ := client.Preset("kueue")
			found, report, err := audit.Check(t.Context(), client.InProcess(), client.Input{Snapshot: snapshot, Policy: policy}, audit.Limits{})
			require.NoError(t, err)
			require.False(t, report.Unjudged)
			var rules []string
			for _, f := range found {
				rules = append(rules, f.Rule)
				require.NotEmpty(t, f.Witness)
			}
			require.ElementsMatch(t, test.rules, rules, "%v", found)
		})
	}
}
