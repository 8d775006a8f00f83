package kueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy/kueue"
)

// TestAccountsThatAreTooManyAreRefusedBeforeTheyAreMade has queues whose accounts would take all memory there is.
func TestAccountsThatAreTooManyAreRefusedBeforeTheyAreMade(t *testing.T) {
	const many = 200_000
	group := kueue.Group{}
	for i := range many {
		group.Covered = append(group.Covered, fmt.Sprint("r", i))
		group.Flavors = append(group.Flavors, kueue.FlavorQuota{Flavor: fmt.Sprint("f", i)})
	}
	small := kueue.Group{Covered: group.Covered[:1000], Flavors: group.Flavors[:1000]}
	several := make([]kueue.Queue, 1000)
	for i := range several {
		several[i] = kueue.Queue{Name: fmt.Sprint("q", i), Cohort: "c", Groups: []kueue.Group{small}}
	}
	for name, c := range map[string]*kueue.Cluster{
		"one queue":          {Queues: []kueue.Queue{{Name: "q", Groups: []kueue.Group{group}}}},
		"one in a cycle":     {Queues: []kueue.Queue{{Name: "q", Cohort: "c", Groups: []kueue.Group{group}}}, Cohorts: []kueue.Cohort{{Name: "c", Parent: "c"}}},
		"one in two groups":  {Queues: []kueue.Queue{{Name: "q", Groups: []kueue.Group{small, small}}}},
		"many of one cohort": {Queues: several},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kueue.Compile(c, kueue.Default())
			require.ErrorContains(t, err, "more than 1048576 accounts")
		})
	}
}

// TestWorkloadsOfManyResourcesAreJudged has a workload that holds as many resources as accounts may be, and one that waits for them.
func TestWorkloadsOfManyResourcesAreJudged(t *testing.T) {
	const many = 100_000
	q := kueue.Queue{Name: "q", Weight: 1, Groups: []kueue.Group{{Flavors: []kueue.FlavorQuota{{Flavor: "f"}}}}}
	group := &q.Groups[0]
	holds, waits := kueue.AdmittedPodSet{Name: "main"}, kueue.PodSet{Name: "main", Count: 1}
	for i := range many {
		name := fmt.Sprint("r", i)
		group.Covered = append(group.Covered, name)
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.Quota{Resource: name, Nominal: 2})
		holds.Usage = append(holds.Usage, kueue.FlavoredUsage{Resource: name, Flavor: "f", Used: true, Amount: 1})
		waits.Requests = append(waits.Requests, kueue.Request{Resource: name, Amount: 1})
	}
	compiled, err := kueue.Compile(&kueue.Cluster{
		Flavors: []kueue.Flavor{{Name: "f"}}, Queues: []kueue.Queue{q},
		Workloads: []kueue.Workload{
			{Name: "holds", UID: "h", Queue: "q", Reserved: new(int64(1)), Admission: &kueue.Admission{Queue: "q", PodSets: []kueue.AdmittedPodSet{holds}}},
			{Name: "waits", UID: "w", Queue: "q", PodSets: []kueue.PodSet{waits}},
		},
	}, kueue.Default())
	require.NoError(t, err)
	accounts := compiled.NewSession().Accounts(0)
	require.Len(t, accounts, many)
	for i := range accounts {
		require.Equal(t, kueue.Amount(1), accounts[i].Usage)
	}
}
