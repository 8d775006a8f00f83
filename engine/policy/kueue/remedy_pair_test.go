package kueue_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
)

// TestAWorkloadThatTwoChangesAdmitHasARemedy stops queues and takes flavors away, and tries each pair of changes at its most.
func TestAWorkloadThatTwoChangesAdmitHasARemedy(t *testing.T) {
	asked, helped, pairs := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c, s := small(drawn(t)), settings(t)
		for i := range c.Cohorts {
			c.Cohorts[i].Parent = map[int]string{0: "", 1: "r", 2: "r"}[i]
		}
		for i := range c.Queues {
			c.Queues[i].Stopped = rapid.IntRange(0, 2).Draw(t, "stopped") == 0
		}
		c.Flavors = c.Flavors[rapid.IntRange(0, len(c.Flavors)).Draw(t, "flavors"):]
		for i := range c.Workloads {
			c.Workloads[i].PodSets[0].Least = nil
		}
		state := opened(t, c, s)
		for i := range int32(len(c.Workloads)) {
			w := &c.Workloads[i]
			known := slices.ContainsFunc(c.Queues, func(q kueue.Queue) bool { return q.Name == w.Queue })
			if w.Admission != nil || !known || admitted(t, c, s, i) {
				continue
			}
			asked++
			found := state.Remedies(i, nil)
			require.False(t, found.Spent)
			for _, r := range found.List {
				if r.Edits != nil && (r.Edits[0].Field == kueue.StopPolicy || r.Edits[0].Field == kueue.MissingFlavor) && len(r.Edits) > 1 {
					pairs++
					require.True(t, admitted(t, edited(c, r.Edits), s, i), "%+v", r)
				}
			}
			if len(found.List) > 0 {
				helped++
				continue
			}
			for _, first := range firsts(c, i) {
				for _, second := range seconds(c, i) {
					edits := slices.Concat(first, second)
					require.False(t, admitted(t, edited(c, edits), s, i), "%+v", edits)
				}
			}
		}
	})
	require.Positive(t, pairs)
	t.Log(asked, "workloads wait,", helped, "have a remedy;", pairs, "remedies open a queue or make a flavor and change something else")
}

// admitted reports whether a workload fits, and comes behind no other.
func admitted(t *rapid.T, c *kueue.Cluster, s kueue.Settings, workload int32) bool {
	state := opened(t, c, s)
	n, judged := state.Judge(model.JobID(workload))
	return judged && n.Mode == kueue.Fit && state.Behind(workload) < 0
}

// firsts are nothing, and the changes that open the queue of a workload and make its flavors.
func firsts(c *kueue.Cluster, workload int32) [][]kueue.Edit {
	var flavors []kueue.Edit
	for _, name := range []string{"f", "g"} {
		if !slices.ContainsFunc(c.Flavors, func(f kueue.Flavor) bool { return f.Name == name }) {
			flavors = append(flavors, kueue.Edit{Field: kueue.MissingFlavor, Flavor: name})
		}
	}
	return [][]kueue.Edit{nil, flavors, {{Field: kueue.StopPolicy, Queue: c.Workloads[workload].Queue}}}
}

// seconds are nothing, and changes of the quotas and of the pods of a workload at their most.
func seconds(c *kueue.Cluster, workload int32) [][]kueue.Edit {
	w := &c.Workloads[workload]
	all := [][]kueue.Edit{nil, {{Field: kueue.LeastPods, Workload: workload, After: 1}}}
	var smaller []kueue.Edit
	for _, r := range w.PodSets[0].Requests {
		smaller = append(smaller, kueue.Edit{Field: kueue.PodRequest, Workload: workload, Resource: r.Resource, After: min(1, int64(r.Amount))})
	}
	all = append(all, smaller)
	for _, field := range []kueue.Field{kueue.NominalQuota, kueue.BorrowingLimit, kueue.LendingLimit} {
		var edits []kueue.Edit
		for i := range c.Queues {
			q := &c.Queues[i]
			if (q.Name == w.Queue) == (field == kueue.LendingLimit) {
				continue
			}
			for _, f := range q.Groups[0].Flavors {
				for _, of := range f.Resources {
					if field == kueue.BorrowingLimit && of.Borrowing == nil || field == kueue.LendingLimit && of.Lending == nil {
						continue
					}
					edits = append(edits, kueue.Edit{Field: field, Queue: q.Name, Flavor: f.Flavor, Resource: of.Resource, After: math.MaxInt32})
				}
			}
		}
		all = append(all, edits)
	}
	return all
}
