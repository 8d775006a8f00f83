package asfair_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
	"github.com/apportion/apportion/internal/test/raced"
)

// TestALargeClusterIsTranslatedInLinearTime has clusters that a quadratic translation would not get done with.
func TestALargeClusterIsTranslatedInLinearTime(t *testing.T) {
	const many = 20_000
	name := func(i int) string { return fmt.Sprintf("%06d", i) }
	clusters := map[string]*apportionv1.Snapshot{
		"cohorts of which each has the next as parent": {Queues: []*apportionv1.Queue{queue("q", name(0))}},
		"cohorts in one cycle":                         {Queues: []*apportionv1.Queue{queue("q", name(0))}},
		"cohorts without parents":                      {},
		"queues of one cohort at the end of a chain":   {},
		"flavors that are joined one by one":           {},
		"queues with flavors of their own":             {},
		"usages of an admitted workload":               cluster(workload("w", "a", many, 1, "")),
	}
	memory := func(q *apportionv1.Quota) *apportionv1.Quota {
		q.Nominal.Dimensions[0] = 1
		return q
	}
	for i := range many {
		for which, s := range clusters {
			switch which {
			case "cohorts in one cycle":
				s.Queues = append(s.Queues, cohort(name(i), name((i+1)%many)))
			case "cohorts without parents":
				s.Queues = append(s.Queues, cohort(name(i), ""), queue("q"+name(i), name(i)))
			case "cohorts of which each has the next as parent", "queues of one cohort at the end of a chain":
				s.Queues = append(s.Queues, cohort(name(i), name(i+1)))
				if which[0] == 'q' {
					s.Queues = append(s.Queues, queue("q"+name(i), name(0), quota("f", 1, nil, new(0.0))))
				}
			case "flavors that are joined one by one":
				s.Queues = append(s.Queues, queue(name(i), "", quota(name(i+1), 1, nil, nil), memory(quota(name(i), 1, nil, nil))))
			case "queues with flavors of their own":
				s.NodeSets = append(s.NodeSets, flavor(name(i), ""))
				s.Queues = append(s.Queues, queue("q"+name(i), "", quota(name(i), 0, nil, nil)))
			}
		}
	}
	admitted := clusters["usages of an admitted workload"].Jobs[0].Kueue
	admitted.Admitted = true
	for range many {
		admitted.PodSets[0].Uses = append(admitted.PodSets[0].Uses, &apportionv1.FlavorUse{NodeSet: "gone", Used: cpu(0)})
	}
	for which, s := range clusters {
		t.Run(which, func(t *testing.T) {
			got := asfair.Of(s)
			require.GreaterOrEqual(t, len(got.Snapshot.GetQueues()), len(s.GetQueues()))
		})
	}
}

func TestCohortsAddUpAndThoseInOrBelowACycleDoNot(t *testing.T) {
	half := func() *apportionv1.Quota { return quota("fast", 1000, nil, new(400.0)) }
	s := cluster()
	s.Queues = []*apportionv1.Queue{
		queue("a", "low", half()), queue("b", "mid", half()), queue("c", "below", half()), cohort("low", "mid"), cohort("mid", "top", half()),
		cohort("round", "about"), cohort("about", "round"), cohort("below", "round"),
	}
	got := asfair.Of(s)
	deserved, guarantee := map[string]float64{}, map[string]float64{}
	for _, q := range got.Snapshot.GetQueues() {
		deserved[q.GetName()], guarantee[q.GetName()] = amount(q.GetDeserved()), amount(q.GetGuarantee())
	}
	require.InDelta(t, 1000, deserved["low"], 0)
	require.InDelta(t, 600, guarantee["low"], 0)
	require.InDelta(t, 3000, deserved["mid"], 0)
	require.InDelta(t, 1800, guarantee["mid"], 0, "of both queues, and its own")
	require.InDelta(t, 3000, deserved["top"], 0)
	for _, name := range []string{"round", "about", "below"} {
		require.True(t, math.IsNaN(deserved[name]), name)
		require.Contains(t, got.Notes, "Cohort "+name+" is in a cycle, or below one: its queues take no part")
	}
}

// TestAWorkloadHasNoMorePodsThanAreCounted has numbers of pods that are counted as none, or as few.
func TestAWorkloadHasNoMorePodsThanAreCounted(t *testing.T) {
	for name, set := range map[string]*apportionv1.KueuePodSet{
		"reclaimable pods below zero": {Name: "main", Count: 2, Reclaimable: math.MinInt32 + 3},
		"pods below zero":             {Name: "main", Count: -5, Reclaimable: -1 << 30},
		"a minimum below zero":        {Name: "main", Count: 2, MinCount: new(int32(-7))},
		"a minimum above all":         {Name: "main", Count: 2, MinCount: new(int32(math.MaxInt32))},
	} {
		t.Run(name, func(t *testing.T) {
			run := workload("w", "a", 0, 1, "")
			run.Kueue.PodSets[0] = set
			run.Kueue.Admitted, set.AdmittedCount = true, new(int32(math.MaxInt32))
			got := asfair.Of(cluster(run))
			require.Len(t, got.Snapshot.GetJobs()[0].GetGroups()[0].GetTasks(), int(max(0, set.GetCount())))
			require.LessOrEqual(t, got.Snapshot.GetJobs()[0].GetMinAvailable(), uint32(2))
		})
	}
}

func TestWorkloadsForWhichThereIsNoRoomDoNotStopTheOthers(t *testing.T) {
	raced.Skip(t)
	many := func(n int, pods int32, cpu float64) (list []*apportionv1.Job) {
		for i := range n {
			list = append(list, workload(fmt.Sprint("w", i), "a", pods, cpu, ""))
		}
		return list
	}
	for name, tc := range map[string]struct {
		hostile []*apportionv1.Job
		out     int
	}{
		"too many pods of one workload": {many(1, math.MaxInt32, 1), 1},
		"too many pods of a namespace":  {many(1100, 1000, 1), 52},
		"too much of a resource":        {many(1, 1, 1<<60), 1},
		"too much in all":               {many(1000, 1, 1<<50), 745},
		"all that there is room for":    {many(100, 1000, 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, j := range tc.hostile {
				j.Namespace = "evil"
			}
			innocent := workload("train", "a", 100, 10, "")
			innocent.Namespace = "lab"
			s := cluster(append(tc.hostile, innocent)...)
			before := proto.CloneOf(s)
			got := asfair.Of(s)
			require.True(t, proto.Equal(before, s), "it does not change")
			require.Len(t, got.Snapshot.GetJobs(), len(s.GetJobs()), "at their positions")
			require.Len(t, got.Snapshot.GetLeftOuts(), tc.out)
			for _, l := range got.Snapshot.GetLeftOuts() {
				require.Equal(t, "evil", l.GetNamespace())
				require.Contains(t, l.GetDetail(), "with it there would be more than")
			}
			policy, _ := client.Preset("fair")
			answer, err := client.InProcess().Explain(t.Context(), client.Input{Snapshot: got.Snapshot, Policy: policy}, client.ExplainQuestion{
				Jobs: []string{"lab/train"},
			})
			require.NoError(t, err)
			require.Equal(t, apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, answer.Answer.GetJobs()[0].GetVerdict())
		})
	}
}
