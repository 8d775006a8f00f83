package rehearsal

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	adapter "github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	engine "github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
)

// kueueQueue is a ClusterQueue of a cohort with a nominal quota of GPUs; settings are further lines of its spec.
func kueueQueue(name string, gpus int, settings string) string {
	return fmt.Sprintf(`---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: %s}
spec:
  cohort: all
  namespaceSelector: {}
%s
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: %d}]}]
`, name, settings, gpus)
}

const (
	kueueFlavor = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: a100}\n"
	reclaims    = "  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}"
)

// underKueue is a variant under the policy kueue.
func underKueue(t require.TestingT, manifests ...string) *Variant {
	source := objects.Source{Name: "cluster.yaml", Data: []byte(kueueFlavor)}
	for _, m := range manifests {
		source.Data = append(source.Data, m...)
	}
	cluster, err := adapter.Read([]objects.Source{source}, time.Unix(0, 0))
	require.NoError(t, err)
	translation := asfair.Of(cluster.Snapshot)
	return &Variant{
		Name: "kueue", Snapshot: asfair.Both(cluster.Snapshot, translation),
		Policy: &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
			{Plugin: &apportionv1.Plugin_Kueue{Kueue: &apportionv1.Kueue{}}},
		}}}},
	}
}

func rehearsed(t *testing.T, v *Variant, jobs ...trace.Job) (*Result, *run) {
	t.Helper()
	r, err := start(t.Context(), v, &trace.Trace{Jobs: jobs}, exact(t))
	require.NoError(t, err)
	result, err := r.toEnd(t.Context())
	require.NoError(t, err)
	return result, r
}

func TestKueueLendsQuotaAndTakesItBack(t *testing.T) {
	v := underKueue(t, kueueQueue("a", 8, reclaims), kueueQueue("b", 8, reclaims))
	result, r := rehearsed(t, v,
		worker("first", "a", 0, 8, 8, 1, 1000), worker("borrowed", "a", 0, 8, 8, 1, 1000), worker("own", "b", 400, 8, 8, 1, 300))
	first, borrowed, own := r.jobs[0], r.jobs[1], r.jobs[2]
	require.Equal(t, []int64{0, 0, 400}, []int64{first.began, borrowed.began, own.began}, "the owner of the quota begins at once")
	require.Equal(t, Evictions{Total: 8, Reclaimed: 8}, result.Evictions)
	require.Equal(t, 8*400/3600.0, result.Use[0].Lost)
	require.Equal(t, int64(700+1000), borrowed.end, "it comes back when the owner has ended, and begins anew")
	require.Equal(t, int64(1000), first.end)
}

func TestAWorkloadThatDoesNotFitBlocksAStrictQueueOnly(t *testing.T) {
	jobs := []trace.Job{
		worker("running", "a", 0, 4, 4, 1, 1000), worker("large", "a", 10, 8, 8, 1, 100), worker("small", "a", 20, 2, 2, 1, 100),
	}
	_, r := rehearsed(t, underKueue(t, kueueQueue("a", 8, "  queueingStrategy: StrictFIFO")), jobs...)
	require.Equal(t, []int64{0, 1000, 1100}, []int64{r.jobs[0].began, r.jobs[1].began, r.jobs[2].began})
	_, r = rehearsed(t, underKueue(t, kueueQueue("a", 8, "  queueingStrategy: BestEffortFIFO")), jobs...)
	require.Equal(t, []int64{0, 1000, 20}, []int64{r.jobs[0].began, r.jobs[1].began, r.jobs[2].began})
}

func TestAJobOfOneGroupIsAdmittedWithItsMinimumByKueue(t *testing.T) {
	_, r := rehearsed(t, underKueue(t, kueueQueue("a", 8, "")), worker("half", "a", 0, 16, 4, 1, 100))
	require.Equal(t, int64(200), r.jobs[0].end, "8 of 16 pods work for twice as long")
}

func TestAnEvictedWorkloadWaitsUntilTheNextRound(t *testing.T) {
	v := underKueue(t, kueueQueue("a", 8, reclaims))
	jobs := []trace.Job{worker("low", "a", 0, 8, 8, 1, 1000), worker("high", "a", 100, 4, 4, 1, 500)}
	jobs[1].Priority = 1
	result, r := rehearsed(t, v, jobs...)
	require.Equal(t, Evictions{Total: 8, Preempted: 8}, result.Evictions)
	require.Equal(t, int64(100), r.jobs[1].began)
	require.Equal(t, int64(600+1000), r.jobs[0].end)
}

// TestARehearsalUnderKueueHoldsItsQuotas runs random jobs on random queues: what is used is never above what there is, all jobs that could
// ever fit are done in the end, and a second run has the same result.
func TestARehearsalUnderKueueHoldsItsQuotas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var manifests []string
		most := 0
		choices := []string{"", "  queueingStrategy: StrictFIFO", reclaims, reclaims + "\n  fairSharing: {weight: 2}"}
		queues := rapid.IntRange(1, 4).Draw(rt, "queues")
		for q := range queues {
			gpus := rapid.IntRange(0, 8).Draw(rt, "gpus")
			most += gpus
			manifests = append(manifests, kueueQueue(fmt.Sprint("q", q), gpus, rapid.SampledFrom(choices).Draw(rt, "settings")))
		}
		var history trace.Trace
		arrival := int64(0)
		for i := range rapid.IntRange(1, 30).Draw(rt, "jobs") {
			arrival += rapid.Int64Range(0, 60).Draw(rt, "after")
			tasks := rapid.IntRange(1, 8).Draw(rt, "tasks")
			j := worker(fmt.Sprint("j", i), fmt.Sprint("q", rapid.IntRange(0, queues-1).Draw(rt, "queue")), arrival, tasks,
				rapid.IntRange(1, tasks).Draw(rt, "minimum"), 1, rapid.Int64Range(1, 200).Draw(rt, "seconds"))
			j.Priority = rapid.Int32Range(0, 2).Draw(rt, "priority")
			history.Jobs = append(history.Jobs, j)
		}
		v, o := underKueue(rt, manifests...), exact(t)
		o.Every = rapid.Int64Range(1, 50).Draw(rt, "every")
		var texts []string
		for range 2 {
			r, err := start(t.Context(), v, &history, o)
			require.NoError(rt, err)
			r.watch = func() {
				used := 0
				for _, j := range r.live {
					used += j.running
					require.Equal(rt, j.running > 0, j.workload.Admission != nil)
				}
				require.LessOrEqual(rt, used, most)
			}
			result, err := r.toEnd(t.Context())
			require.NoError(rt, err)
			fit := !slices.ContainsFunc(r.jobs, func(j *job) bool { return j.Min > most })
			require.True(rt, !fit || len(r.live) == 0, "what fits is done in the end")
			for _, j := range r.live {
				require.Zero(rt, j.running)
			}
			text, err := json.Marshal(result)
			require.NoError(rt, err)
			texts = append(texts, string(text))
		}
		require.Equal(rt, texts[0], texts[1])
	})
}

// TestUnderUsageSharingTheLocalQueueThatUsedLessComesFirst lets one local queue use the quota for a day before both ask for it.
func TestUnderUsageSharingTheLocalQueueThatUsedLessComesFirst(t *testing.T) {
	const day = 24 * 3600
	jobs := []trace.Job{
		worker("greedy", "a", 0, 8, 8, 1, day), worker("again", "a", 10, 8, 8, 1, 600), worker("modest", "a", 20, 8, 8, 1, 600),
		worker("once more", "a", 30, 8, 8, 1, 600), worker("heavy", "a", 40, 8, 8, 1, 600),
	}
	for i, owner := range []string{"team/greedy", "team/greedy", "team/modest", "team/modest", "team/heavy"} {
		jobs[i].Owner = owner
	}
	order := func(halfLife time.Duration, mode string) []string {
		v := underKueue(t, kueueQueue("a", 8, mode), `---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: heavy, namespace: team}
spec: {clusterQueue: a}
status: {fairSharing: {admissionFairSharingStatus: {consumedResources: {nvidia.com/gpu: "1000"}}}}
`)
		v.Policy.Tiers[0].Plugins[0].GetKueue().UsageSharing = &apportionv1.KueueUsageSharing{}
		v.LocalHalfLife = halfLife
		_, r := rehearsed(t, v, jobs...)
		slices.SortFunc(r.jobs, func(a, b *job) int { return int(a.began - b.began) })
		var names []string
		for _, j := range r.jobs {
			names = append(names, j.Name)
		}
		return names
	}
	const usageBased = "  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}"
	byTime := []string{"greedy", "again", "modest", "once more", "heavy"}
	require.Equal(t, []string{"greedy", "modest", "once more", "again", "heavy"}, order(100*time.Hour, usageBased))
	require.Equal(t, byTime, order(0, usageBased), "usage does not count")
	require.Equal(t, byTime, order(100*time.Hour, ""), "the queue is not by usage")
}

func TestTheUsageOfALocalQueueDecaysAndAdmissionsHaveAPenalty(t *testing.T) {
	l := &localQueues{byKey: map[localKey]*localQueue{}}
	l.sharing.HalfLife, l.sharing.Interval = int64(time.Hour), int64(time.Hour)
	held := &engine.Admission{PodSets: []engine.AdmittedPodSet{{Usage: []engine.FlavoredUsage{{Resource: "cpu", Flavor: "f", Amount: 8000}}}}}
	consumed := func(now time.Duration) float64 { return l.of("a", "b", int64(now)).Consumed[0].Amount }
	l.change("a", "b", held, 0, 1)
	require.InDelta(t, 4, consumed(0), 1e-9, "half of 8 cpu, by the entry penalty")
	require.InDelta(t, 6, consumed(time.Hour), 1e-9, "half of 4, and half of the 8 that are held")
	l.change("a", "b", held, int64(time.Hour), -1)
	require.InDelta(t, 1.5, consumed(3*time.Hour), 1e-9)
}
