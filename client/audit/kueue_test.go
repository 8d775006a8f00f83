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
		Quotas:     []*apportionv1.Quota{{NodeSet: "default", Nominal: cpu(4000)}},
		Preemption: &apportionv1.KueuePreemption{ReclaimWithinCohort: apportionv1.KueueChoice_KUEUE_CHOICE_ANY},
	}
	if change != nil {
		change(own)
	}
	return client.Queue{Name: name, Kueue: own, Dimensions: []string{"cpu"}}
}

func cpu(amount float64) *apportionv1.Resource {
	return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{amount}}
}

// kueueJob is a Workload of one pod.
func kueueJob(name, resource string, amount float64, change func(*apportionv1.KueuePodSet)) client.Job {
	set := &apportionv1.KueuePodSet{Name: "main", Count: 1, Request: cpu(amount)}
	if change != nil {
		change(set)
	}
	return client.Job{
		Namespace: "n", Name: name, Queue: "a", Dimensions: []string{resource},
		Kueue: &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}},
	}
}

// below puts queues into cohort all.
func below(queues ...client.Queue) []client.Queue {
	for i := range queues {
		queues[i].Parent = "all"
	}
	return queues
}

func TestPitfallsOfKueueAreFound(t *testing.T) {
	flavors := func(names ...string) (list []client.NodeSet) {
		for _, name := range names {
			list = append(list, client.NodeSet{Name: name, Flavor: &apportionv1.KueueFlavor{}})
		}
		return list
	}
	cohort := kueueQueue("all", func(q *apportionv1.KueueQueue) { q.Cohort = true })
	for name, test := range map[string]struct {
		flavors []client.NodeSet
		queues  []client.Queue
		jobs    []client.Job
		rules   []string
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
			[]client.NodeSet{},
			[]client.Queue{kueueQueue("a", nil)},
			[]client.Job{kueueJob("waits", "cpu", 1, nil)},
			[]string{"kueue-inactive-queue"},
		},
		"a queue without quota": {
			[]client.NodeSet{},
			[]client.Queue{kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Quotas = nil })},
			nil,
			[]string{"kueue-no-quota"},
		},
		"a resource that is not covered": {
			nil,
			[]client.Queue{kueueQueue("a", nil)},
			[]client.Job{kueueJob("waits", "nvidia.com/gpu", 1000, nil)},
			[]string{"kueue-uncovered-resource"},
		},
		"more than there can be": {
			nil, []client.Queue{kueueQueue("a", nil)}, []client.Job{kueueJob("waits", "cpu", 4001, nil)}, []string{"kueue-never-fits"},
		},
		"a flavor that pods do not select": {
			[]client.NodeSet{{Name: "default", Flavor: &apportionv1.KueueFlavor{
				NodeLabels: []*apportionv1.KueueLabel{{Key: "zone", Value: "a"}},
			}}},
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
			nil,
			below(kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Quotas[0].BorrowingLimit = cpu(0) }), kueueQueue("b", nil)),
			nil,
			[]string{"kueue-may-not-borrow"},
		},
		"a cohort of one":                       {nil, below(kueueQueue("a", nil)), nil, []string{"kueue-lonely-cohort"}},
		"a cohort of one with quota of its own": {nil, append(below(kueueQueue("a", nil)), cohort), nil, nil},
		"a queue that lends and may not reclaim": {
			nil, below(kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Preemption = nil }), kueueQueue("b", nil)), nil,
			[]string{"kueue-lends-and-cannot-reclaim"},
		},
		"a queue that lends nothing need not reclaim": {
			nil, below(
				kueueQueue("a", func(q *apportionv1.KueueQueue) { q.Preemption, q.Quotas[0].LendingLimit = nil, cpu(0) }), kueueQueue("b", nil),
			), nil, nil,
		},
		"a flavor without quota": {
			flavors("default", "spot"),
			[]client.Queue{kueueQueue("a", nil)},
			nil,
			[]string{"kueue-unused-flavor"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.flavors == nil {
				test.flavors = flavors("default")
			}
			snapshot, err := client.NewSnapshot().NodeSet(test.flavors...).Queue(test.queues...).Job(test.jobs...).Build()
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
