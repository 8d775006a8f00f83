package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/test/raced"
)

// twoNodes are 16 GPUs for two queues of equal right.
func twoNodes() *Cluster {
	return &Cluster{
		Nodes:  Nodes{Count: 2, Each: Room{CPU: 64, MemoryGiB: 512, GPU: 8}},
		Queues: []Queue{{Name: "a", Weight: 1, Deserved: 8}, {Name: "b", Weight: 1, Deserved: 8}},
	}
}

func job(name, queue string, arrival int64, tasks, minimum int, gpus, seconds int64) Submission {
	return Submission{
		Name: name, Queue: queue, Arrival: arrival, Tasks: tasks, Min: minimum,
		Each: Room{CPU: gpus, MemoryGiB: gpus, GPU: gpus}, Seconds: seconds,
	}
}

func simulate(t *testing.T, policy string, trace ...Submission) *Result {
	t.Helper()
	named, err := policyNamed(policy)
	require.NoError(t, err)
	result, err := Simulate(t.Context(), client.InProcess(), twoNodes(), trace, named)
	require.NoError(t, err)
	return result
}

func TestAJobTakesAsLongAsItSays(t *testing.T) {
	for _, policy := range policyNames() {
		alone := simulate(t, policy, job("only", "a", 100, 4, 4, 2, 600)).Jobs[0]
		require.Equal(t, int64(100), alone.Began, policy)
		require.Equal(t, int64(700), alone.Ended, policy)
	}
}

func TestAnElasticJobTakesTwiceAsLongWithHalfItsTasks(t *testing.T) {
	elastic := simulate(t, "proportion", job("sweep", "a", 0, 32, 1, 1, 600)).Jobs[0]
	require.Equal(t, int64(1200), elastic.Ended)
}

func TestAGangWaitsUntilAllOfItFits(t *testing.T) {
	result := simulate(t, "drf", job("first", "a", 0, 2, 2, 6, 600), job("second", "a", 10, 2, 2, 6, 600))
	require.Equal(t, int64(600), result.Jobs[1].Began)
	for _, sample := range result.Samples {
		require.Contains(t, []int64{0, 12}, sample.Queues[0].Used, "never half a gang")
	}
}

// greedy fills the cluster from queue a; late comes for the half that is queue b's.
var greedy, late = job("greedy", "a", 0, 16, 1, 1, 3000), job("late", "b", 900, 8, 8, 1, 600)

func TestReclaimGivesAQueueItsHalf(t *testing.T) {
	for _, policy := range []string{"proportion", "capacity"} {
		result := simulate(t, policy, greedy, late)
		require.Equal(t, int64(900), result.Jobs[1].Began, "%s: at once", policy)
		require.Len(t, result.Evictions, 8, policy)
		require.Equal(t, Eviction{At: 900, Queue: "a", LostSeconds: 300, GPUs: 1}, result.Evictions[0], "since the last checkpoint")
		// 48,000 seconds of work and 2,400 lost ones: 900 with 16 tasks, 600 with 8, the rest with 16 again.
		require.Equal(t, int64(900+600+(48000+2400-16*900-8*600)/16), result.Jobs[0].Ended, policy)
	}
}

func TestHierarchicalDrfStopsJustBelowTheHalf(t *testing.T) {
	require.Equal(t, int64(3000), simulate(t, "hierarchical-drf", greedy, late).Jobs[1].Began, "the eighth GPU would make them equal")
	seven := job("late", "b", 900, 7, 7, 1, 600)
	require.Equal(t, int64(900), simulate(t, "hierarchical-drf", greedy, seven).Jobs[1].Began)
}

func TestWithinAQueueTheUrgentJobPreempts(t *testing.T) {
	urgent := job("urgent", "a", 900, 2, 2, 4, 600)
	urgent.Priority = 10
	// The other queue's job keeps it from reclaiming there.
	result := simulate(t, "proportion", job("sweep", "a", 0, 8, 1, 1, 3000), job("other", "b", 0, 8, 8, 1, 3000), urgent)
	require.Equal(t, int64(3000), result.Jobs[2].Began, "a gang's last task is never taken, so 7 GPUs are the most")

	smaller := job("urgent", "a", 900, 1, 1, 4, 600)
	smaller.Priority = 10
	result = simulate(t, "proportion", job("sweep", "a", 0, 8, 1, 1, 3000), job("other", "b", 0, 8, 8, 1, 3000), smaller)
	require.Equal(t, int64(900), result.Jobs[2].Began)
	require.Len(t, result.Evictions, 4)
	require.True(t, result.Evictions[0].Within)
}

func TestNobodyIsEverGivenMoreThanThereIs(t *testing.T) {
	raced.Skip(t)
	cluster, err := readCluster(strings.NewReader(string(defaultCluster)))
	require.NoError(t, err)
	trace := generateTrace(11)[:30]
	for _, name := range policyNames() {
		policy, err := policyNamed(name)
		require.NoError(t, err)
		result, err := Simulate(t.Context(), client.InProcess(), cluster, trace, policy)
		require.NoError(t, err)
		for _, sample := range result.Samples {
			used := int64(0)
			for _, holding := range sample.Queues {
				require.LessOrEqual(t, holding.Used, holding.Wanted)
				used += holding.Used
			}
			require.LessOrEqual(t, used, cluster.gpus())
		}
		for _, job := range result.Jobs {
			require.GreaterOrEqual(t, job.Began, job.Arrival)
			require.GreaterOrEqual(t, job.Ended, job.Began+job.Seconds, "no job runs faster than with all its tasks")
		}
	}
}

func TestATraceThatCanNeverEndIsRefused(t *testing.T) {
	policy, err := policyNamed("proportion")
	require.NoError(t, err)
	cluster := twoNodes()
	wide := job("wide", "a", 0, 20, 20, 1, 60)
	_, err = Simulate(t.Context(), client.InProcess(), cluster, []Submission{wide}, policy)
	require.EqualError(t, err, "the rest of the jobs will never run")
}
