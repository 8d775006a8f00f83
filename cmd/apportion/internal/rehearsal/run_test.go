package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/internal/test/raced"
)

// worker is a job of equal tasks with so many GPUs each.
func worker(name, queue string, arrival int64, tasks, minimumRequest int, gpus float64, seconds int64) trace.Job {
	return trace.Job{
		Name: name, Queue: queue, Arrival: arrival, Min: minimumRequest, Seconds: seconds,
		Groups: []trace.Group{{Role: "task", Tasks: tasks, Request: []trace.Amount{
			{Resource: "cpu", Amount: 1000}, {Resource: "nvidia.com/gpu", Amount: gpus * 1000},
		}}},
	}
}

func lived(t *testing.T, policy string, o *Options, jobs ...trace.Job) (*Result, *run) {
	t.Helper()
	v := &Variant{Name: policy, Snapshot: cluster(2, 1, 1), Policy: preset(t, policy)}
	history := &trace.Trace{Jobs: jobs}
	r, err := start(t.Context(), v, history, o)
	require.NoError(t, err)
	result, err := r.toEnd(t.Context())
	require.NoError(t, err)
	return result, r
}

func exact(t *testing.T) *Options {
	t.Helper()
	o := options(t)
	o.Every = 1
	return o
}

func TestAJobTakesAsLongAsItSays(t *testing.T) {
	for _, policy := range []string{"proportion", "capacity", "fair"} {
		_, r := lived(t, policy, exact(t), worker("only", "a", 100, 4, 4, 2, 600))
		require.Equal(t, int64(100), r.jobs[0].began, policy)
		require.Equal(t, int64(700), r.jobs[0].end, policy)
	}
}

func TestAnElasticJobTakesTwiceAsLongWithHalfItsTasks(t *testing.T) {
	_, r := lived(t, "fair", exact(t), worker("sweep", "a", 0, 32, 1, 1, 600))
	require.Equal(t, int64(1200), r.jobs[0].end)
}

func TestAGangWaitsUntilAllOfItFits(t *testing.T) {
	result, r := lived(t, "fair", exact(t), worker("first", "a", 0, 2, 2, 6, 600), worker("second", "a", 10, 2, 2, 6, 600))
	require.Equal(t, int64(600), r.jobs[1].began)
	require.Equal(t, int64(590), r.jobs[1].waited)
	require.Equal(t, 1.0, result.Use[0].All*16/12)
}

func TestAnEvictedTaskLosesWhatItHasDone(t *testing.T) {
	greedy, late := worker("greedy", "a", 0, 16, 1, 1, 3000), worker("late", "b", 900, 8, 8, 1, 600)
	result, r := lived(t, "fair", exact(t), greedy, late)
	require.Equal(t, int64(900), r.jobs[1].began, "at once")
	require.Equal(t, Evictions{Total: 8, Reclaimed: 8}, result.Evictions)
	require.Equal(t, 2.0, result.Use[0].Lost, "eight GPUs for 900 seconds")
	// 48,000 seconds of work and 7,200 lost ones: 900 with 16 tasks, 600 with 8, the rest with 16 again.
	require.Equal(t, int64(900+600+(48000+7200-16*900-8*600)/16), r.jobs[0].end)

	o := exact(t)
	o.Checkpoint = 600
	result, r = lived(t, "fair", o, greedy, late)
	require.Equal(t, 8*300/3600.0, result.Use[0].Lost, "what was done since the last checkpoint")
	require.Equal(t, int64(900+600+(48000+2400-16*900-8*600)/16), r.jobs[0].end)
}

func TestAProtectedJobIsNotEvicted(t *testing.T) {
	greedy, late := worker("greedy", "a", 0, 16, 1, 1, 3000), worker("late", "b", 900, 8, 8, 1, 600)
	greedy.Protected = true
	result, r := lived(t, "fair", exact(t), greedy, late)
	require.Equal(t, int64(3000), r.jobs[1].began)
	require.Zero(t, result.Evictions.Total)
}

func TestARunEndsWhenItIsNoLongerWanted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := &Variant{Name: "fair", Snapshot: cluster(2, 1, 1), Policy: preset(t, "fair")}
	_, err := Run(ctx, v, drawn(1, 100, 2, 16, 3600, 1), options(t))
	require.Error(t, err)
}

// TestJobsThatAreDoneLeaveTheSession lets many short jobs pass, of which few run at a time.
func TestJobsThatAreDoneLeaveTheSession(t *testing.T) {
	raced.Skip(t)
	history := &trace.Trace{}
	for i := range 4300 {
		history.Jobs = append(history.Jobs, worker(fmt.Sprint("j", i), "a", int64(i)*100, 1, 1, 1, 100))
	}
	v := &Variant{Name: "proportion", Snapshot: cluster(2, 1, 1), Policy: preset(t, "proportion")}
	r, err := start(t.Context(), v, history, exact(t))
	require.NoError(t, err)
	most := 0
	r.watch = func() { most = max(most, r.session.View().Tasks.Len()) }
	result, err := r.toEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4300, result.Finished)
	require.Less(t, most, 4200, "numbers of tasks that are gone are let go of")
	require.Less(t, len(r.live), 3)
}

func TestAGangThatLosesATaskStops(t *testing.T) {
	j := &job{Job: &trace.Job{Min: 3, Seconds: 100, Groups: []trace.Group{{Tasks: 3}}}, total: 300, began: never, end: never}
	j.arrive(10)
	for i := range 3 {
		j.place(i, 20)
	}
	require.Equal(t, int64(120), j.ending(20))
	lost := j.evict(1, 60, 0)
	for _, task := range []int{0, 2} {
		lost += j.evict(task, 60, 0)
	}
	j.stop(60)
	require.Equal(t, int64(120), lost)
	require.Zero(t, j.done)
	require.Equal(t, never, j.ending(60))
	for i := range 3 {
		j.place(i, 70)
	}
	require.Equal(t, int64(170), j.ending(70))
	require.Equal(t, int64(20), j.waited)
}

func TestAJobThatNoNodeCanHoldIsNeverDone(t *testing.T) {
	result, _ := lived(t, "fair", exact(t), worker("wide", "a", 0, 1, 1, 9, 60), worker("small", "a", 5, 1, 1, 1, 60))
	require.Equal(t, 1, result.Unfinished)
	require.Equal(t, 1, result.Finished)
}

func TestQueuesThatTheClusterDoesNotHaveAreNamed(t *testing.T) {
	v := &Variant{Snapshot: cluster(1, 1), Policy: preset(t, "fair")}
	_, err := Run(t.Context(), v, &trace.Trace{Jobs: []trace.Job{worker("j", "nowhere", 0, 1, 1, 1, 60)}}, exact(t))
	require.EqualError(t, err, "the trace has jobs of queues that the cluster does not have: nowhere; there are a")
}

// TestTheFastLoopDecidesAsThePlainOne compares runs that follow changes, and remember refusals, with runs that open a new session on the whole
// present in each round and ask about every job.
func TestTheFastLoopDecidesAsThePlainOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		policy := rapid.SampledFrom([]string{"proportion", "capacity", "fair"}).Draw(rt, "policy")
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		history := drawn(seed, rapid.IntRange(1, 40).Draw(rt, "jobs"), 3, 8*nodes, 6*3600, rapid.SampledFrom([]float64{.5, 1, 2}).Draw(rt, "load"))
		o := options(t)
		o.Every = rapid.SampledFrom([]int64{1, 60, 900}).Draw(rt, "every")
		o.Checkpoint = rapid.SampledFrom([]int64{0, 600}).Draw(rt, "checkpoint")
		v := &Variant{Name: policy, Snapshot: cluster(nodes, 3, 2, 1), Policy: preset(t, policy)}
		fast, err := Run(t.Context(), v, history, o)
		require.NoError(rt, err)
		plain := *o
		plain.plain = true
		slow, err := Run(t.Context(), v, history, &plain)
		require.NoError(rt, err)
		require.Equal(rt, text(slow), text(fast))
	})
}

func text(r *Result) string {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// TestNothingIsGivenTwiceAndNoWorkIsLostUncounted checks after every round of random days that no node holds more than it has, and at the end
// that every job has done its work and waited as long as it did not work.
func TestNothingIsGivenTwiceAndNoWorkIsLostUncounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := rapid.SampledFrom([]string{"proportion", "capacity", "fair"}).Draw(rt, "policy")
		history := drawn(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 40).Draw(rt, "jobs"), 3, 24, 6*3600, 1.5)
		v := &Variant{Name: policy, Snapshot: cluster(3, 3, 2, 1), Policy: preset(t, policy)}
		r, err := start(t.Context(), v, history, options(t))
		require.NoError(rt, err)
		r.watch = func() {
			used := map[int32]float64{}
			for _, j := range r.live {
				for task, started := range j.started {
					if started != idle {
						used[int32(j.nodes[task])] += j.rows[0][r.measured]
					}
				}
			}
			for node, gpus := range used {
				require.LessOrEqual(rt, gpus, 8000.0, "node %d at %d", node, r.now)
			}
		}
		result, err := r.toEnd(t.Context())
		require.NoError(rt, err)
		require.Equal(rt, len(history.Jobs), result.Finished+result.Unfinished)
		hours, asked := 0.0, 0.0
		for _, j := range r.jobs {
			require.GreaterOrEqual(rt, j.waited, int64(0))
			if j.end == never || j.working {
				continue
			}
			require.GreaterOrEqual(rt, j.done, j.total)
			require.Less(rt, j.done, j.total+int64(j.Tasks()), "less than a second of all tasks too much")
			require.GreaterOrEqual(rt, j.end-j.Arrival, j.waited+j.Seconds, "no job works faster than with all its tasks")
			asked += j.rows[0][r.measured] / 1000 * float64(j.done)
		}
		for _, q := range result.Queues {
			hours += q.Hours - q.Lost
		}
		if result.Unfinished == 0 {
			require.InDelta(rt, asked/3600, hours, 1e-6, "what was used is what was asked for, and what was lost")
		}
		for _, x := range []float64{result.Kept, result.Fairness, result.Use[0].All} {
			require.GreaterOrEqual(rt, x, 0.0)
			require.LessOrEqual(rt, x, 1.0+1e-9)
		}
	})
}

func TestFairnessIsOneWhereAllHaveTheSamePart(t *testing.T) {
	require.Equal(t, 1.0, jain(0, 0, 0))
	require.Equal(t, 1.0, jain(0, 0, 3))
	require.Equal(t, 1.0, jain(1.5, .75, 3))
	require.InDelta(t, 1.0/3, jain(1, 1, 3), 1e-15, "one has all")
}

func TestEqualInputsHaveEqualResults(t *testing.T) {
	history := drawn(7, 60, 3, 24, 6*3600, 1.2)
	v := &Variant{Name: "fair", Snapshot: cluster(3, 3, 2, 1), Policy: preset(t, "fair")}
	first := ""
	for i := range 3 {
		result, err := Run(t.Context(), v, history, options(t))
		require.NoError(t, err)
		if now := text(result); i == 0 {
			first = now
		} else {
			require.Equal(t, first, now, fmt.Sprint(i))
		}
	}
}
