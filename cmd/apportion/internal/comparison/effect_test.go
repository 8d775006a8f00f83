package comparison_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
)

func TestEffectsAreWhatDiffersByKindAndName(t *testing.T) {
	amounts := func(cpu float64) map[string]float64 { return map[string]float64{"cpu": cpu} }
	was := &comparison.Outcome{
		Queues: map[string]*comparison.Queue{
			"a": {Deserved: amounts(4000), Guarantee: amounts(2000), Rank: 1, Evictable: map[string]bool{"x": true}},
			"b": {Deserved: amounts(4000), Overused: true, Rank: 2}, "gone": {Rank: 3},
		},
		Jobs: map[string]*comparison.Job{
			"ns/kept": {Queue: "a", Admission: "yes", Allocation: "no"}, "ns/ended": {Queue: "b"},
		},
	}
	is := &comparison.Outcome{
		Queues: map[string]*comparison.Queue{
			"a":   {Deserved: amounts(1000), Guarantee: amounts(2000), Rank: 3, Evictable: map[string]bool{"x": true, "y": true}},
			"b":   {Deserved: amounts(4000 + 1e-9), Rank: 1},
			"new": {Rank: 2},
		},
		Jobs: map[string]*comparison.Job{
			"ns/kept": {Queue: "b", Admission: "no", AdmissionWhy: "full", Allocation: "yes"}, "ns/came": {Queue: "b"},
		},
	}
	require.Equal(t, []comparison.Effect{
		{Kind: comparison.QueueRemoved, Queue: "gone", Was: "exists", Is: "-"},
		{Kind: comparison.QueueAdded, Queue: "new", Was: "-", Is: "exists"},
		{Kind: comparison.JobRemoved, Job: "ns/ended", Was: "in queue b", Is: "-"},
		{Kind: comparison.JobAdded, Job: "ns/came", Was: "-", Is: "in queue b"},
		{Kind: comparison.Moved, Job: "ns/kept", Was: "queue a", Is: "queue b"},
		{
			Kind: comparison.BelowGuarantee, Queue: "a", Resource: "cpu", Was: "4", Is: "1", Amounts: []float64{4000, 1000, 2000},
			Why: "guarantee 2",
		},
		{Kind: comparison.LessDeserved, Queue: "a", Resource: "cpu", Was: "4", Is: "1", Amounts: []float64{4000, 1000}},
		{Kind: comparison.NoLongerOverused, Queue: "b", Was: "yes", Is: "no"},
		{Kind: comparison.LaterInOrder, Queue: "a", Was: "1", Is: "2"},
		{Kind: comparison.EarlierInOrder, Queue: "b", Was: "2", Is: "1"},
		{Kind: comparison.NoLongerAdmitted, Job: "ns/kept", Was: "yes", Is: "no", Why: "full"},
		{Kind: comparison.Allocated, Job: "ns/kept", Was: "no", Is: "yes"},
		{Kind: comparison.MoreEvictions, Queue: "a", Was: "1", Is: "2", Tasks: []string{"y"}},
	}, comparison.Effects(was, is, func(string) bool { return true }))
	require.Empty(t, comparison.Effects(was, was, func(string) bool { return true }))
}
