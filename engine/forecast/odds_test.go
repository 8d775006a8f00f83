package forecast_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// oddsNow is the time of the snapshots here, in seconds.
const oddsNow = 100_000

// dividing is the policy of these tests.
func dividing() engine.Policy {
	return engine.Policy{Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}, {Plugin: proportion.Plugin{}}}}}
}

// oddsJob is a job of one task, which runs if it has a node.
type oddsJob struct {
	uid   string
	queue string
	node  model.NodeID
	// end is its expected end, in seconds; 0: not known.
	end      int64
	deadline bool
	cores    int
}

// oddsSession has nodes of 4 cores, queues a and b of equal weight, and jobs that run since 1000 seconds before now or wait.
func oddsSession(tb testing.TB, nodes int, jobs ...oddsJob) *engine.Session {
	tb.Helper()
	b := model.NewBuilder(oddsNow * 1_000_000_000)
	b.Dimensions([]string{"cpu", "memory"})
	for n := range nodes {
		b.Node(model.NodeSpec{Name: fmt.Sprintf("n%04d", n), Allocatable: enginetest.Amounts(4, 0)})
	}
	for _, q := range []string{"a", "b"} {
		b.Queue(model.QueueSpec{Name: q, Weight: 1, Reclaimable: true})
	}
	for _, j := range jobs {
		phase, task := model.PhaseInqueue, model.TaskSpec{UID: j.uid + "-0", Node: j.node, Index: -1, CreateTime: (oddsNow - 1000) * 1_000_000_000}
		if j.node != model.None {
			phase, task.Status = model.PhaseRunning, model.Running
		}
		b.Job(model.JobSpec{
			UID: j.uid, Queue: j.queue, MinAvailable: 1, Phase: phase, CreateTime: (oddsNow - 2000) * 1_000_000_000,
			ExpectedEnd: j.end * 1_000_000_000, EndIsDeadline: j.deadline,
		})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(j.cores, 0)})
		b.Task(&task)
	}
	m, err := b.Build()
	require.NoError(tb, err)
	s, err := engine.Open(m, dividing(), nil)
	require.NoError(tb, err)
	return s
}

// pastOf are past jobs of queue a with a core each, which arrived a day ago and ran so long.
func pastOf(s *engine.Session, q *forecast.OddsQuestion, seconds ...int64) *forecast.OddsQuestion {
	request := resource.NewAccount(s.View().Dims.Len())
	request.Set(0, 4000)
	q.Kinds = []forecast.PastKind{{Queue: 0, Tasks: 1, Min: 1, Request: request}}
	for _, n := range seconds {
		q.Past = append(q.Past, forecast.PastJob{Arrival: -86400, Seconds: n})
	}
	return q
}

func TestOddsAreDrawnFromJobsThatRanLonger(t *testing.T) {
	s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4}, oddsJob{uid: "waits", queue: "a", node: model.None, cores: 4})
	found, err := forecast.ByChance(s, pastOf(s, &forecast.OddsQuestion{Job: 1, Seed: 3}, 500, 900, 1600, 1600, 1600, 2200, 2200, 2200))
	require.NoError(t, err)
	require.True(t, found.Known)
	require.Equal(t, 100, found.Runs)
	require.Equal(t, []int64{600, 1200}, []int64{found.Percentile(10), found.Percentile(90)}, "it has run for 1000 s")
	require.Equal(t, model.JobID(0), found.Jobs[found.Causes[0].Job])
	require.Equal(t, 100, found.Causes[0].Runs)
	require.Equal(t, 1, found.Sources[forecast.FromKind])

	again, err := forecast.ByChance(s, pastOf(s, &forecast.OddsQuestion{Job: 1, Seed: 3}, 500, 900, 1600, 1600, 1600, 2200, 2200, 2200))
	require.NoError(t, err)
	require.Equal(t, found, again)
}

func TestAnEndThatIsStatedIsTakenAndADeadlineIsABound(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4, end: oddsNow + 300, deadline: deadline},
			oddsJob{uid: "waits", queue: "b", node: model.None, cores: 4})
		found, err := forecast.ByChance(s, pastOf(s, &forecast.OddsQuestion{Job: 1}, 1100, 9000))
		require.NoError(t, err)
		require.Equal(t, int64(300), found.Percentile(90))
		if deadline {
			require.Equal(t, int64(100), found.Percentile(10), "one of the two ran for 1100 s")
		}
	}
}

func TestWithoutHistoryThereAreBoundsAndNoOdds(t *testing.T) {
	s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4, end: oddsNow + 300, deadline: true},
		oddsJob{uid: "waits", queue: "b", node: model.None, cores: 4})
	found, err := forecast.ByChance(s, &forecast.OddsQuestion{Job: 1})
	require.NoError(t, err)
	require.False(t, found.Known)
	require.Zero(t, found.Runs)
	require.Equal(t, []int64{60, 300}, []int64{found.Earliest, found.Latest}, "rounds are a minute apart")
}

func TestThereAreNoOddsForAJobThatWaitsForNoPlace(t *testing.T) {
	s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4})
	found, err := forecast.ByChance(s, &forecast.OddsQuestion{Job: 0})
	require.NoError(t, err)
	require.Nil(t, found)
}

func TestOddsChangeNothing(t *testing.T) {
	p := dividing()
	for seed := range uint64(200) {
		s, err := engine.Open(enginetest.EndingCluster(t, seed, func(string) bool { return false }), p, nil)
		require.NoError(t, err)
		for _, j := range s.Waiting() {
			q := pastOf(s, &forecast.OddsQuestion{Job: j, Runs: 5, Seed: seed, Arrivals: true}, 10, 1000, 100_000)
			before, err := forecast.ByChance(s, q)
			require.NoError(t, err)
			require.NotEmpty(t, s.Waiting())
			after, err := forecast.ByChance(s, q)
			require.NoError(t, err)
			require.Equal(t, before, after)
		}
	}
}

// manyNodes is a cluster of 1,000 nodes with 10,000 jobs, of which 4,000 run, and a history of as many.
func manyNodes(tb testing.TB, work *policy.Work) (engine.Host, *forecast.OddsQuestion) {
	tb.Helper()
	jobs := make([]oddsJob, 10_000)
	for i := range jobs {
		jobs[i] = oddsJob{uid: fmt.Sprintf("j%05d", i), queue: []string{"a", "b"}[i%2], node: model.None, cores: 1}
		if i < 4000 {
			jobs[i].node = model.NodeID(i / 4)
		}
	}
	s := oddsSession(tb, 1000, jobs...)
	host, err := engine.OpenHost(s.View().Model, dividing(), nil, work)
	require.NoError(tb, err)
	q := &forecast.OddsQuestion{Job: 9999, Arrivals: true}
	for i := range 10_000 {
		q.Past = append(q.Past, forecast.PastJob{Arrival: -int64(i+1) * 60, Seconds: 1200 + int64(i*7919%20_000)})
	}
	pastOf(s, q)
	return host, q
}

func TestOddsOfABigClusterAreWithinTheirWorkAndStop(t *testing.T) {
	host, q := manyNodes(t, policy.NewWork(policy.DefaultWork))
	q.Runs = 3
	found, err := forecast.ByChance(host.Session, q)
	require.NoError(t, err)
	require.Zero(t, found.Cut)
	require.Less(t, found.Percentile(90), odds.Never)

	asked := 0
	host.Stop(func() bool { asked++; return asked > 3 })
	_, err = forecast.ByChance(host.Session, q)
	require.ErrorIs(t, err, policy.ErrStopped)
}

func TestOddsThatCostTooMuchAreRefusedOrCut(t *testing.T) {
	host, q := manyNodes(t, policy.NewWork(2_500_000))
	q.Runs = 10
	found, err := forecast.ByChance(host.Session, q)
	if _, refused := errors.AsType[*policy.WorkError](err); !refused {
		require.NoError(t, err)
		require.Equal(t, 10, found.Cut)
	}
}

// TestRunsAreRefusedWhereNotAUnitOfWorkIsLeftForEach leaves less work than there are runs: each would have none, which means no bound.
func TestRunsAreRefusedWhereNotAUnitOfWorkIsLeftForEach(t *testing.T) {
	const runs = 1000
	s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4}, oddsJob{uid: "waits", queue: "b", node: model.None, cores: 4})
	refused, ran := 0, false
	q := pastOf(s, &forecast.OddsQuestion{Job: 1, Runs: runs, Beside: func(int, func(int)) { ran = true }}, 1100, 9000)
	for units := int64(0); !ran; units++ {
		host, err := engine.OpenHost(s.View().Model, dividing(), nil, policy.NewWork(units))
		if err != nil {
			continue
		}
		_, err = forecast.ByChance(host.Session, q)
		if failed, over := errors.AsType[*policy.WorkError](err); over && !ran && failed.N == runs {
			refused++
		}
	}
	require.Equal(t, runs, refused)
}

// BenchmarkOdds measures 100 runs about the last job of a cluster of 1,000 nodes with 10,000 jobs: as the model says, and corrected by what
// came of forecasts about moments of the past, at which jobs waited.
func BenchmarkOdds(b *testing.B) {
	for name, ask := range map[string]func(testing.TB) (engine.Host, *forecast.OddsQuestion){
		"corrected=false": func(tb testing.TB) (engine.Host, *forecast.OddsQuestion) { tb.Helper(); return manyNodes(tb, nil) },
		"corrected=true":  corrected,
		"corrected=true,beside": func(tb testing.TB) (engine.Host, *forecast.OddsQuestion) {
			tb.Helper()
			host, q := corrected(tb)
			q.Beside = processors
			return host, q
		},
	} {
		b.Run(name, func(b *testing.B) {
			host, q := ask(b)
			for b.Loop() {
				found, err := forecast.ByChance(host.Session, q)
				require.NoError(b, err)
				require.Equal(b, name != "corrected=false", found.Hindcasts > 0)
			}
		})
	}
}

// corrected is big with a past of which it is known when jobs began, so that moments of it are asked about.
func corrected(tb testing.TB) (engine.Host, *forecast.OddsQuestion) {
	tb.Helper()
	host, q := manyNodes(tb, nil)
	for i := range q.Past {
		q.Past[i].Arrival, q.Past[i].Wait = q.Past[i].Arrival/20, 600+int64(i)*6151%3600
	}
	return host, q
}

// TestRunsBesideEachOtherAnswerAsRecorded compares with a recorded answer, which is the same in any order of the runs and on any processor.
func TestRunsBesideEachOtherAnswerAsRecorded(t *testing.T) {
	host, q := corrected(t)
	q.Runs, q.Seed, q.Past = 12, 7, q.Past[:1000]
	asked := atomic.Int64{}
	host.Stop(func() bool { asked.Add(1); return false })
	digest := func(found *forecast.Odds) string {
		sum := sha256.Sum256(fmt.Append(nil, found.Starts, found.Raw, found.Causes, found.Hindcasts, found.Sources))
		return hex.EncodeToString(sum[:8])
	}
	for name, beside := range map[string]func(n int, run func(i int)){"one after the other": nil, "beside each other": beside} {
		q.Beside = beside
		found, err := forecast.ByChance(host.Session, q)
		require.NoError(t, err)
		require.Positive(t, found.Hindcasts)
		require.Equal(t, "4b9eb848768f771c", digest(found), name)
	}
	host.Stop(func() bool { return asked.Add(-1) < 0 })
	asked.Store(20)
	_, err := forecast.ByChance(host.Session, q)
	require.ErrorIs(t, err, policy.ErrStopped)
}

// processors is beside with a goroutine for each processor.
func processors(n int, run func(i int)) {
	var next atomic.Int64
	beside(runtime.GOMAXPROCS(0), func(int) {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			run(int(i))
		}
	})
}

// beside calls run for each number in a goroutine of its own.
func beside(n int, run func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

func TestAKindOfWhichNoPastJobIsTellsNothing(t *testing.T) {
	s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4}, oddsJob{uid: "waits", queue: "a", node: model.None, cores: 4})
	for _, arrivals := range []bool{false, true} {
		q := pastOf(s, &forecast.OddsQuestion{Job: 1, Seed: 3, Arrivals: arrivals}, 500, 900, 1600, 1600, 1600, 2200, 2200, 2200)
		want, err := forecast.ByChance(s, q)
		require.NoError(t, err)
		unused := q.Kinds[0]
		unused.Owner, unused.Tasks = "absent", 7
		q.Kinds = append(q.Kinds, unused)
		found, err := forecast.ByChance(s, q)
		require.NoError(t, err)
		require.Equal(t, want, found)
		q.Past = nil
		_, err = forecast.ByChance(s, q)
		require.NoError(t, err)
	}
}

// TestAJobRunsAsLongAsThoseThatAreMostAlike has a job of queue a of a size that a has no past jobs of, which has run for 1000 s.
func TestAJobRunsAsLongAsThoseThatAreMostAlike(t *testing.T) {
	for story, test := range map[string]struct {
		// small and middle are the runtimes of jobs of one and two cores in a, and then in b. Those of four cores ran 2000 s in b.
		small, middle [2]int64
		least, most   int64
		from          forecast.Source
	}{
		"of its size, where these are alike in all queues": {[2]int64{40_000, 40_000}, [2]int64{5000, 5000}, 1000, 1000, forecast.FromKind},
		"of its queue, where these are alike":              {[2]int64{40_000, 1500}, [2]int64{40_000, 1500}, 39_000, 39_000, forecast.FromQueue},
	} {
		t.Run(story, func(t *testing.T) {
			s := oddsSession(t, 1, oddsJob{uid: "runs", queue: "a", cores: 4}, oddsJob{uid: "waits", queue: "a", node: model.None, cores: 4})
			q := &forecast.OddsQuestion{Job: 1, Seed: 3}
			past := func(queue model.QueueID, cores float64, seconds int64) {
				request := resource.NewAccount(s.View().Dims.Len())
				request.Set(0, cores*1000)
				for range 20 {
					q.Past = append(q.Past, forecast.PastJob{Kind: len(q.Kinds), Arrival: -86_400, Seconds: seconds})
				}
				q.Kinds = append(q.Kinds, forecast.PastKind{Queue: queue, Tasks: 1, Min: 1, Request: request})
			}
			for queue := range test.small {
				past(model.QueueID(queue), 1, test.small[queue])
				past(model.QueueID(queue), 2, test.middle[queue])
			}
			past(1, 4, 2000)
			found, err := forecast.ByChance(s, q)
			require.NoError(t, err)
			require.InDelta(t, test.least, found.Percentile(20), 60)
			require.InDelta(t, test.most, found.Percentile(80), 60)
			require.Equal(t, 1, found.Sources[test.from])
		})
	}
}
