package client_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// largeKueue returns 10,000 workloads, of which half hold quota, on 1,000 queues in 100 cohorts of one tree.
func largeKueue() *apportionv1.Snapshot {
	cpu := func(amount float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{amount}}
	}
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"}, NodeSets: []*apportionv1.NodeSet{{Name: "f", Flavor: &apportionv1.KueueFlavor{}}},
	}
	for i := range 1000 {
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: fmt.Sprint("q", i), Parent: fmt.Sprint("c", i/10), Kueue: &apportionv1.KueueQueue{
			Quotas: []*apportionv1.Quota{{NodeSet: "f", Nominal: cpu(8000)}},
		}})
	}
	for i := range 100 {
		s.Queues = append(s.Queues, &apportionv1.Queue{
			Name: fmt.Sprint("c", i), Parent: "root", Kueue: &apportionv1.KueueQueue{Cohort: true},
		})
	}
	for i := range 10_000 {
		set := &apportionv1.KueuePodSet{Name: "main", Count: 1, Request: cpu(1000)}
		w := &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}}
		if i < 5000 {
			w.ReserveTime, w.Admitted = new(int64(1)), true
			set.Uses = []*apportionv1.FlavorUse{{NodeSet: "f", Used: cpu(1000)}}
		}
		s.Jobs = append(s.Jobs, &apportionv1.Job{Uid: fmt.Sprint("w", i), Name: fmt.Sprint("w", i), Queue: fmt.Sprint("q", i%1000), Kueue: w})
	}
	return s
}

// BenchmarkKueueShares asks for all shares and how one workload is admitted, with the snapshot in the call.
func BenchmarkKueueShares(b *testing.B) {
	policy, _ := client.Preset("kueue")
	input := client.Input{Snapshot: largeKueue(), Policy: policy}
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: &apportionv1.Selector{Indices: []uint32{9000}}}}},
	}
	for b.Loop() {
		_, err := client.InProcess().Simulate(b.Context(), input, steps...)
		require.NoError(b, err)
	}
}

// BenchmarkKueueList asks a session about 1,000 workloads, without sentences, and reports the time of each.
func BenchmarkKueueList(b *testing.B) {
	policy, _ := client.Preset("kueue")
	input := client.Input{Snapshot: largeKueue(), Policy: policy}
	var asked []uint32
	for i := range uint32(1000) {
		asked = append(asked, 5000+i)
	}
	list := &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
		Jobs: &apportionv1.Selector{Indices: asked},
	}}}
	session, err := client.InProcess().OpenSession(b.Context(), input)
	require.NoError(b, err)
	mark := &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}
	back := &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}}
	_, err = session.Do(b.Context(), mark)
	require.NoError(b, err)
	for b.Loop() {
		_, err := session.Do(b.Context(), list, back)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(asked)), "ns/job")
}
