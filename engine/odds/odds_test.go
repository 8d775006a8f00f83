package odds_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/odds"
)

// gpus asks for an amount of the one dimension of these tests.
func gpus(n float64) []float64 { return []float64{n} }

// whole is a gang of tasks.
func whole(tasks int, each float64) []odds.Tasks {
	return []odds.Tasks{{Request: gpus(each), N: tasks}}
}

// on is what a running job holds.
func on(node int, amount float64) []odds.Held { return []odds.Held{{Node: node, Amount: gpus(amount)}} }

// model has two nodes of 8, two queues with the parts 12 and 4, and the given kinds and jobs, of which the last is asked about.
func model(kinds []odds.Kind, jobs ...odds.Job) *odds.Model {
	return &odds.Model{
		Nodes:  [][]float64{gpus(8), gpus(8)},
		Queues: []odds.Queue{{Parent: -1, Part: gpus(12)}, {Parent: -1, Part: gpus(4)}},
		Kinds:  kinds, Jobs: jobs, Asked: len(jobs) - 1, Horizon: 1_000_000, Pause: 1,
	}
}

// runs returns the starts of many runs, sorted.
func runs(m *odds.Model, n int) *odds.Summary {
	base := odds.NewBase(m)
	outcomes := make([]odds.Outcome, n)
	for i := range outcomes {
		outcomes[i] = base.Run(1, i)
	}
	return odds.Summarize(outcomes)
}

// runsUntil is a job that has a whole node until a second.
func runsUntil(node int, end int64) odds.Job {
	return odds.Job{Held: on(node, 8), Running: 1, Ends: end}
}

func waits(kind, rank int, drawn ...int64) odds.Job {
	return odds.Job{Kind: kind, Rank: rank, Ends: odds.Unknown, Drawn: odds.NewSample(drawn, nil), Waits: true}
}

func TestAJobStartsWhenThereIsRoom(t *testing.T) {
	one := []odds.Kind{{Queue: 0, Gang: whole(1, 8)}, {Queue: 0, Gang: whole(2, 8)}, {Queue: 1, Gang: whole(1, 8)}}
	more := append(slices.Clone(one), odds.Kind{Queue: 0, Priority: 5, Gang: whole(1, 8)}, odds.Kind{Queue: 0, More: whole(1, 8)})
	for story, test := range map[string]struct {
		kinds []odds.Kind
		jobs  []odds.Job
		start int64
		cause []int
	}{
		"at once where a node is free":    {one, []odds.Job{runsUntil(0, 50), waits(0, 0)}, 0, nil},
		"when the first job ends":         {one, []odds.Job{runsUntil(0, 50), runsUntil(1, 90), waits(0, 0)}, 50, []int{0}},
		"a gang needs both nodes":         {one, []odds.Job{runsUntil(0, 50), runsUntil(1, 90), waits(1, 0)}, 90, []int{1}},
		"after the job before it":         {one, []odds.Job{runsUntil(0, 50), runsUntil(1, 990), waits(0, 0, 30), waits(0, 1)}, 80, []int{2, 0}},
		"before a gang that does not fit": {one, []odds.Job{runsUntil(0, 50), runsUntil(1, 90), waits(1, 0, 30), waits(0, 1)}, 50, []int{0}},
		"before one of less priority":     {more, []odds.Job{runsUntil(0, 50), runsUntil(1, 90), waits(0, 0, 30), waits(3, 1)}, 50, []int{0}},
		"after a queue that uses less":    {one, []odds.Job{runsUntil(0, 50), runsUntil(1, 990), waits(2, 0, 30), waits(0, 0)}, 80, []int{2, 0}},
		"before the further tasks of a job that runs": {
			more, []odds.Job{runsUntil(0, 50), {Kind: 4, Held: on(1, 8), Running: 1, Ends: 990, Waits: true}, waits(0, 1)}, 50, []int{0},
		},
		"never if no node is as large": {
			[]odds.Kind{{Gang: whole(1, 9)}}, []odds.Job{waits(0, 0)}, odds.Never, nil,
		},
	} {
		found := odds.NewBase(model(test.kinds, test.jobs...)).Run(1, 0)
		require.Equal(t, test.start, found.Start, story)
		require.Equal(t, test.cause, found.Cause, story)
	}
}

func TestALimitHoldsOnTheWholePath(t *testing.T) {
	m := model([]odds.Kind{{Queue: 0, Gang: whole(1, 4)}, {Queue: 2, Gang: whole(1, 4)}}, runsUntil(0, 70), waits(1, 0))
	m.Queues = append(m.Queues, odds.Queue{Parent: 0})
	m.Queues[0].Limit = gpus(8)
	require.Equal(t, int64(70), odds.NewBase(m).Run(1, 0).Start)
	m.Queues[0].Limit = []float64{math.Inf(1)}
	require.Zero(t, odds.NewBase(m).Run(1, 0).Start)
}

func TestTheElapsedTimeConditionsTheRest(t *testing.T) {
	running := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Elapsed: 100, Drawn: odds.NewSample([]int64{10, 50, 90, 150, 300}, nil)}
	m := model([]odds.Kind{{Gang: whole(1, 8)}}, running, runsUntil(1, 5000), waits(0, 0))
	found := runs(m, 200)
	require.Equal(t, []int64{50, 200}, slices.Compact(slices.Clone(found.Starts)), "only runtimes above 100 are left")
	require.InDelta(t, 100, found.Within(50), 25)
	require.Equal(t, []odds.Cause{{Job: 0, Runs: 200}}, found.Causes)

	m.Jobs[0].Limit = 160
	require.Equal(t, []int64{50, 60}, slices.Compact(runs(m, 200).Starts), "a limit bounds what is drawn")
}

// TestAJobThatStillRunsCountsForTheLongerTimes draws from 10 and 90, and from a job that has run for 50: it counts as 90.
func TestAJobThatStillRunsCountsForTheLongerTimes(t *testing.T) {
	running := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Drawn: odds.NewSample([]int64{10, 90}, []int64{50})}
	m := model([]odds.Kind{{Gang: whole(1, 8)}}, running, runsUntil(1, 900_000), waits(0, 0))
	found := runs(m, 900)
	require.InDelta(t, 300, found.Within(10), 60)
	require.Equal(t, 900, found.Within(90))
}

// TestWithoutARuntimeAsLongAJobRunsAsLongAgainHalfTheTime draws from no past job.
func TestWithoutARuntimeAsLongAJobRunsAsLongAgainHalfTheTime(t *testing.T) {
	running := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Elapsed: 1000, Drawn: odds.NewSample([]int64{10}, nil)}
	m := model([]odds.Kind{{Gang: whole(1, 8)}}, running, runsUntil(1, 900_000), waits(0, 0))
	require.InDelta(t, 500, runs(m, 1000).Within(1000), 60)
}

func TestArrivalsAreThoseOfAPastDay(t *testing.T) {
	m := model([]odds.Kind{{Queue: 1, Gang: whole(1, 8)}, {Queue: 0, Gang: whole(1, 8)}}, runsUntil(0, 50), runsUntil(1, 990), waits(1, 0))
	// The queue of the arrival uses less of its part, so that it is served first.
	m.Jobs[0].Kind, m.Jobs[1].Kind = 1, 1
	m.Past = []odds.Past{{Arrival: -86400, Seconds: 300, Kind: 0}}
	require.Equal(t, int64(50), odds.NewBase(m).Run(1, 0).Start, "without arrivals")
	m.Arrivals = true
	require.Equal(t, int64(350), odds.NewBase(m).Run(1, 0).Start)
}

func TestBoundsNeedNoHistory(t *testing.T) {
	limited := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Elapsed: 100, Limit: 700}
	m := model([]odds.Kind{{Gang: whole(1, 8)}}, limited, odds.Job{Held: on(1, 8), Running: 1, Ends: odds.Unknown}, waits(0, 0))
	base := odds.NewBase(m)
	require.Equal(t, int64(1), base.Bound(odds.Shortest).Start)
	require.Equal(t, int64(600), base.Bound(odds.Longest).Start)
	m.Jobs[0].Limit = 0
	require.Equal(t, odds.Never, odds.NewBase(m).Bound(odds.Longest).Start)
}

func TestARunEndsAtItsBoundOnWork(t *testing.T) {
	m := model([]odds.Kind{{Gang: whole(1, 8)}}, runsUntil(0, 50), runsUntil(1, 990), waits(0, 0))
	m.Work = 5
	found := odds.NewBase(m).Run(1, 0)
	require.True(t, found.Cut)
	require.Equal(t, odds.Never, found.Start)
	require.Equal(t, int64(5), found.Work)
}

// TestEqualQuestionsHaveEqualAnswers also checks that a run leaves the model as it was, that no start is before now or after the horizon,
// and that what a run finds does not depend on the runs before it.
func TestEqualQuestionsHaveEqualAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		base := odds.NewBase(m)
		first := make([]odds.Outcome, 5)
		for i := range first {
			first[i] = base.Run(7, i)
		}
		again := odds.NewBase(m)
		for i := range slices.Backward(first) {
			require.Equal(t, first[i], again.Run(7, i))
			require.True(t, first[i].Start == odds.Never || first[i].Start >= 0 && first[i].Start <= m.Horizon+m.Pause)
		}
	})
}

func drawModel(t *rapid.T) *odds.Model {
	m := &odds.Model{
		Nodes:    [][]float64{gpus(8), gpus(8), gpus(4)},
		Queues:   []odds.Queue{{Parent: -1, Part: gpus(10)}, {Parent: 0, Part: gpus(5), Limit: gpus(12)}, {Parent: -1}},
		Horizon:  5000,
		Pause:    rapid.Int64Range(1, 60).Draw(t, "pause"),
		Arrivals: rapid.Bool().Draw(t, "arrivals"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "kinds") {
		kind := odds.Kind{Queue: rapid.IntRange(0, 2).Draw(t, "queue"), Priority: rapid.Int32Range(0, 1).Draw(t, "priority")}
		kind.Gang = whole(rapid.IntRange(1, 3).Draw(t, "gang"), rapid.Float64Range(0, 8).Draw(t, "each"))
		if rapid.Bool().Draw(t, "elastic") {
			kind.More = whole(rapid.IntRange(1, 3).Draw(t, "more"), kind.Gang[0].Request[0])
		}
		m.Kinds = append(m.Kinds, kind)
	}
	kind := rapid.IntRange(0, len(m.Kinds)-1)
	for i := range rapid.IntRange(0, 6).Draw(t, "running") {
		m.Jobs = append(m.Jobs, odds.Job{
			Kind: kind.Draw(t, "kind"), Held: on(i%3, 2), Running: 1, Elapsed: rapid.Int64Range(0, 100).Draw(t, "elapsed"), Ends: odds.Unknown,
			Drawn: odds.NewSample([]int64{20, 70, 400}, nil), Waits: false,
		})
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "waiting") {
		m.Jobs = append(m.Jobs, waits(kind.Draw(t, "kind"), i, 5, 50, 500))
	}
	m.Asked = len(m.Jobs) - 1
	for at := int64(-5000); at < 0; at += rapid.Int64Range(100, 2000).Draw(t, "gap") {
		m.Past = append(m.Past, odds.Past{Arrival: at, Seconds: 60, Kind: kind.Draw(t, "kind")})
	}
	return m
}
