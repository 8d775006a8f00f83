package asfair_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
)

// cpu is an amount of dimension 0.
func cpu(amount float64) *apportionv1.Resource {
	return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{amount}}
}

// quota is one of cpu in a flavor; limits of a nil pointer are absent.
func quota(flavor string, nominal float64, borrowing, lending *float64) *apportionv1.Quota {
	q := &apportionv1.Quota{NodeSet: flavor, Nominal: cpu(nominal)}
	if borrowing != nil {
		q.BorrowingLimit = cpu(*borrowing)
	}
	if lending != nil {
		q.LendingLimit = cpu(*lending)
	}
	return q
}

func queue(name, cohort string, quotas ...*apportionv1.Quota) *apportionv1.Queue {
	return &apportionv1.Queue{Name: name, Parent: cohort, Kueue: &apportionv1.KueueQueue{Quotas: quotas}}
}

func cohort(name, parent string, quotas ...*apportionv1.Quota) *apportionv1.Queue {
	return &apportionv1.Queue{Name: name, Parent: parent, Kueue: &apportionv1.KueueQueue{Cohort: true, Quotas: quotas}}
}

func flavor(name, kind string) *apportionv1.NodeSet {
	f := &apportionv1.KueueFlavor{}
	if kind != "" {
		f.NodeLabels = []*apportionv1.KueueLabel{{Key: "kind", Value: kind}}
	}
	return &apportionv1.NodeSet{Name: name, Flavor: f}
}

func workload(name, queue string, pods int32, amount float64, selected string) *apportionv1.Job {
	set := &apportionv1.KueuePodSet{Name: "main", Count: pods, Request: cpu(amount)}
	if selected != "" {
		set.SelectorLabels = []*apportionv1.KueueLabel{{Key: "kind", Value: selected}}
	}
	return &apportionv1.Job{Name: name, Queue: queue, Kueue: &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}}}
}

// cluster has two queues in a cohort and one alone, and two flavors.
func cluster(jobs ...*apportionv1.Job) *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"}, NodeSets: []*apportionv1.NodeSet{flavor("fast", "fast"), flavor("slow", "slow")},
		Queues: []*apportionv1.Queue{
			queue("a", "all", quota("fast", 4000, new(2000.0), new(1000.0)), quota("slow", 6000, new(0.0), nil)),
			queue("b", "all", quota("slow", 10_000, nil, nil)),
			queue("alone", "", quota("fast", 8000, nil, nil)),
		},
		Jobs: jobs,
	}
}

func amount(r *apportionv1.Resource) float64 {
	for i, d := range r.GetDimensions() {
		if d == 0 {
			return r.GetAmounts()[i]
		}
	}
	return math.NaN()
}

func TestQuotasBecomeDeservedGuaranteeAndCapability(t *testing.T) {
	got := asfair.Of(cluster())
	queues := got.Snapshot.GetQueues()
	require.Len(t, queues, 4)
	a, b, alone, all := queues[0], queues[1], queues[2], queues[3]
	require.Equal(t, []string{"a", "b", "alone", "all"}, []string{a.GetName(), b.GetName(), alone.GetName(), all.GetName()})
	require.Equal(t, []string{"all", "all", "", ""}, []string{a.GetParent(), b.GetParent(), alone.GetParent(), all.GetParent()})
	require.InDelta(t, 10_000, amount(a.GetDeserved()), 0)
	require.InDelta(t, 3000, amount(a.GetGuarantee()), 0, "what is not lent")
	require.InDelta(t, 12_000, amount(a.GetCapability()), 0, "nominal quota and the borrowing limits")
	require.True(t, math.IsNaN(amount(b.GetCapability())), "no borrowing limit")
	require.InDelta(t, 8000, amount(alone.GetGuarantee()), 0, "a queue alone does not lend")
	require.InDelta(t, 8000, amount(alone.GetCapability()), 0, "and does not borrow")
	require.InDelta(t, 20_000, amount(all.GetCapability()), 0, "trees do not lend to each other")
	require.Equal(t, "flavor-fast", got.Snapshot.GetNodes()[0].GetName())
	require.InDelta(t, 12_000, amount(got.Snapshot.GetNodes()[0].GetAllocatable()), 0)
}

func TestAWorkloadIsAGangOnTheFlavorsThatSuitIt(t *testing.T) {
	run := workload("run", "b", 3, 1000, "")
	run.Kueue.PodSets[0].MinCount = new(int32(1))
	run.Kueue.Admitted, run.Kueue.PodSets[0].AdmittedCount = true, new(int32(2))
	run.Kueue.PodSets[0].Uses = []*apportionv1.FlavorUse{{NodeSet: "slow", Used: cpu(2000)}}
	got := asfair.Of(cluster(run, workload("picky", "a", 2, 500, "slow")))
	admitted, pending := got.Snapshot.GetJobs()[0], got.Snapshot.GetJobs()[1]
	require.Len(t, admitted.GetGroups()[0].GetTasks(), 2, "as many as were admitted")
	require.Equal(t, uint32(1), admitted.GetMinAvailable())
	require.Equal(t, uint32(1), admitted.GetGroups()[0].GetTasks()[0].GetNode())
	require.Equal(t, apportionv1.JobPhase_JOB_PHASE_RUNNING, admitted.GetPhase())
	require.Equal(t, uint32(2), pending.GetMinAvailable())
	require.Equal(t, "flavors slow", pending.GetGroups()[0].GetNodeSet())
	require.Equal(t, []uint32{1}, got.Snapshot.GetNodeSets()[0].GetNodes())
}

func TestUnlimitedQuotasAreAsMuchAsIsWanted(t *testing.T) {
	s := cluster(workload("w", "a", 1, 7000, ""))
	s.Queues[1].Kueue.Quotas[0].Nominal = cpu(math.Inf(1))
	got := asfair.Of(s)
	require.Contains(t, got.Notes, "an unlimited quota is as much as all workloads request: fair divides what there is")
	require.InDelta(t, 7000, amount(got.Snapshot.GetNodes()[1].GetAllocatable()), 0)
}

func TestAQueueWithoutItsFlavorOrItsCheckIsClosed(t *testing.T) {
	s := cluster()
	s.Queues[1].Kueue.Quotas[0].NodeSet = "gone"
	check := &apportionv1.KueueCheck{Name: "quiet", Active: new(false)}
	s.Queues[2].Kueue.Checks = []*apportionv1.KueueCheck{check}
	got := asfair.Of(s)
	for i, want := range []apportionv1.QueueState{0, apportionv1.QueueState_QUEUE_STATE_CLOSED, apportionv1.QueueState_QUEUE_STATE_CLOSED, 0} {
		require.Equal(t, want, got.Snapshot.GetQueues()[i].GetState(), got.Snapshot.GetQueues()[i].GetName())
	}
	require.Contains(t, got.Notes, "2 queues: closed here, because a flavor or an admission check of them does not exist or is not active, "+
		"so that Kueue admits nothing")
	check.Active = nil
	require.Equal(t, apportionv1.QueueState_QUEUE_STATE_CLOSED, asfair.Of(s).Snapshot.GetQueues()[2].GetState(), "there is none")
	check.Active = new(true)
	require.Zero(t, asfair.Of(s).Snapshot.GetQueues()[2].GetState())
}

// TestEitherPolicyAcceptsTheJoinedSnapshot asks both policies about one snapshot.
func TestEitherPolicyAcceptsTheJoinedSnapshot(t *testing.T) {
	s := cluster(workload("w", "a", 1, 1000, ""))
	got := asfair.Of(s)
	both := asfair.Both(s, got)
	for _, name := range []string{"kueue", "fair"} {
		policy, _ := client.Preset(name)
		answer, err := client.InProcess().Explain(t.Context(), client.Input{Snapshot: both, Policy: policy}, client.ExplainQuestion{})
		require.NoError(t, err, name)
		require.Equal(t, apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, answer.Answer.GetJobs()[0].GetVerdict(), name)
	}
}
