package asfair_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
)

func quota(nominal int64, borrowing, lending *int64) *apportionv1.KueueQuota {
	return &apportionv1.KueueQuota{Name: "cpu", Nominal: nominal, BorrowingLimit: borrowing, LendingLimit: lending}
}

func queue(name, cohort string, flavors ...*apportionv1.KueueFlavorQuotas) *apportionv1.Queue {
	return &apportionv1.Queue{Name: name, Kueue: &apportionv1.KueueQueue{
		Cohort: cohort, Groups: []*apportionv1.KueueResourceGroup{{CoveredResources: []string{"cpu"}, Flavors: flavors}},
	}}
}

func flavor(name string, quotas ...*apportionv1.KueueQuota) *apportionv1.KueueFlavorQuotas {
	return &apportionv1.KueueFlavorQuotas{Name: name, Resources: quotas}
}

func workload(name, queue string, pods int32, cpu int64, selected string) *apportionv1.Job {
	set := &apportionv1.KueuePodSet{Name: "main", Count: pods, Requests: []*apportionv1.KueueAmount{{Name: "cpu", Amount: cpu}}}
	if selected != "" {
		set.SelectorLabels = []*apportionv1.KueueLabel{{Key: "kind", Value: selected}}
	}
	return &apportionv1.Job{Name: name, Queue: queue, Kueue: &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}}}
}

// cluster has two queues in a cohort and one alone, and two flavors.
func cluster(jobs ...*apportionv1.Job) *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Kueue: &apportionv1.KueueSnapshot{Flavors: []*apportionv1.KueueFlavor{
			{Name: "fast", NodeLabels: []*apportionv1.KueueLabel{{Key: "kind", Value: "fast"}}},
			{Name: "slow", NodeLabels: []*apportionv1.KueueLabel{{Key: "kind", Value: "slow"}}},
		}},
		Queues: []*apportionv1.Queue{
			queue("a", "all", flavor("fast", quota(4000, new(int64(2000)), new(int64(1000)))), flavor("slow", quota(6000, new(int64(0)), nil))),
			queue("b", "all", flavor("slow", quota(10_000, nil, nil))),
			queue("alone", "", flavor("fast", quota(8000, nil, nil))),
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
	got, err := asfair.Of(cluster())
	require.NoError(t, err)
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
	run.Kueue.Admission = &apportionv1.KueueAdmission{PodSets: []*apportionv1.KueueAdmittedPodSet{{
		Name: "main", Count: new(int32(2)), Usages: []*apportionv1.KueueFlavoredUsage{{Resource: "cpu", Flavor: "slow", Amount: new(int64(2000))}},
	}}}
	got, err := asfair.Of(cluster(run, workload("picky", "a", 2, 500, "slow")))
	require.NoError(t, err)
	admitted, pending := got.Snapshot.GetJobs()[0], got.Snapshot.GetJobs()[1]
	require.Len(t, admitted.GetGroups()[0].GetTasks(), 2, "as many as were admitted")
	require.Equal(t, uint32(1), admitted.GetMinAvailable())
	require.Equal(t, uint32(1), admitted.GetGroups()[0].GetTasks()[0].GetNode())
	require.Equal(t, apportionv1.JobPhase_JOB_PHASE_RUNNING, admitted.GetPhase())
	require.Equal(t, uint32(2), pending.GetMinAvailable())
	require.Equal(t, "flavors slow", pending.GetGroups()[0].GetNodeSet())
	require.Equal(t, []uint32{1}, got.Snapshot.GetNodeSets()[0].GetNodes())
}

func TestNamesThatAreTakenAndUnlimitedQuotasAreNoted(t *testing.T) {
	s := cluster(workload("w", "a", 1, 7000, ""))
	s.Queues[0].Kueue.Cohort, s.Queues[1].Kueue.Cohort = "a", "a"
	s.Queues[1].Kueue.Groups[0].Flavors[0].Resources[0].Nominal = math.MaxInt64
	got, err := asfair.Of(s)
	require.NoError(t, err)
	require.Equal(t, "cohort-a", got.Snapshot.GetQueues()[0].GetParent())
	require.Contains(t, got.Notes, "Cohort a becomes queue cohort-a, because its name is taken")
	require.InDelta(t, 7000, amount(got.Snapshot.GetNodes()[1].GetAllocatable()), 0)
}

func TestAQueueWithoutItsFlavorOrItsCheckIsClosed(t *testing.T) {
	s := cluster()
	s.Queues[1].Kueue.Groups[0].Flavors[0].Name = "gone"
	s.Queues[2].Kueue.Checks = []string{"quiet"}
	s.Kueue.Checks = []*apportionv1.KueueCheck{{Name: "quiet"}}
	got, err := asfair.Of(s)
	require.NoError(t, err)
	for i, want := range []apportionv1.QueueState{0, apportionv1.QueueState_QUEUE_STATE_CLOSED, apportionv1.QueueState_QUEUE_STATE_CLOSED, 0} {
		require.Equal(t, want, got.Snapshot.GetQueues()[i].GetState(), got.Snapshot.GetQueues()[i].GetName())
	}
	require.Contains(t, got.Notes, "2 queues: closed here, because a flavor or an admission check of them does not exist or is not active, "+
		"so that Kueue admits nothing")
	s.Kueue.Checks[0].Active = true
	got, err = asfair.Of(s)
	require.NoError(t, err)
	require.Zero(t, got.Snapshot.GetQueues()[2].GetState())
}

// TestEitherPolicyAcceptsTheJoinedSnapshot asks both policies about one snapshot.
func TestEitherPolicyAcceptsTheJoinedSnapshot(t *testing.T) {
	s := cluster(workload("w", "a", 1, 1000, ""))
	got, err := asfair.Of(s)
	require.NoError(t, err)
	both := asfair.Both(s, got)
	for _, name := range []string{"kueue", "fair"} {
		policy, _ := client.Preset(name)
		answer, err := client.InProcess().Explain(t.Context(), client.Input{Snapshot: both, Policy: policy}, client.ExplainQuestion{})
		require.NoError(t, err, name)
		require.Equal(t, apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, answer.Answer.GetJobs()[0].GetVerdict(), name)
	}
}
