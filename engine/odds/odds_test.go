package odds_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// gpus asks for an amount of the one dimension of these tests.
func gpus(n float64) []float64 { return []float64{n} }

// whole is a gang of tasks.
func whole(tasks int, each float64) []odds.Tasks {
	return []odds.Tasks{{Request: gpus(each), N: tasks}}
}

// on is what a running job holds.
func on(node int, amount float64) []odds.Held { return []odds.Held{{Node: node, Amount: gpus(amount)}} }

// twoNodes has two nodes of 8, two queues with the parts 12 and 4, and the given kinds and jobs, of which the last is asked about.
func twoNodes(kinds []odds.Kind, jobs ...odds.Job) *odds.Model {
	return &odds.Model{
		Nodes:  [][]float64{gpus(8), gpus(8)},
		Queues: []odds.Queue{{Parent: -1}, {Parent: -1}}, Course: byParts(12, 4),
		Kinds: kinds, Jobs: jobs, Asked: len(jobs) - 1, Horizon: 1_000_000, Pause: 1,
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
	return odds.Job{Kind: kind, Rank: rank, Ends: odds.Unknown, Drawn: sampleOf(drawn), Waits: true}
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
		found := odds.NewBase(twoNodes(test.kinds, test.jobs...)).Run(1, 0)
		require.Equal(t, test.start, found.Start, story)
		require.Equal(t, test.cause, found.Cause, story)
	}
}

func TestALimitHoldsOnTheWholePath(t *testing.T) {
	m := twoNodes([]odds.Kind{{Queue: 0, Gang: whole(1, 4)}, {Queue: 2, Gang: whole(1, 4)}}, runsUntil(0, 70), waits(1, 0))
	m.Queues, m.Course = append(m.Queues, odds.Queue{Parent: 0}), byParts(12, 4, 4)
	m.Queues[0].Limit = gpus(8)
	require.Equal(t, int64(70), odds.NewBase(m).Run(1, 0).Start)
	m.Queues[0].Limit = []float64{math.Inf(1)}
	require.Zero(t, odds.NewBase(m).Run(1, 0).Start)
}

func TestTheElapsedTimeConditionsTheRest(t *testing.T) {
	running := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Elapsed: 100, Drawn: sampleOf([]int64{10, 50, 90, 150, 300})}
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}}, running, runsUntil(1, 900_000), waits(0, 0))
	found := runs(m, 600)
	require.Zero(t, found.Within(49), "only runtimes above 100 are left")
	// Each of 150, 300 and the times beyond the longest has a third.
	require.InDelta(t, 200, found.Within(50), 50)
	require.Equal(t, found.Within(50), found.Within(199))
	require.InDelta(t, 400, found.Within(200), 50)
	require.Equal(t, []odds.Cause{{Job: 0, Runs: 600}}, found.Causes)

	m.Jobs[0].Limit = 160
	require.Equal(t, []int64{50, 60}, slices.Compact(runs(m, 200).Starts), "a limit bounds what is drawn")
}

// TestAJobThatStillRunsCountsForTheLongerTimes draws from 10 and 90, and from a job that has run for 50: it counts as 90. The times beyond
// the longest count as one job more.
func TestAJobThatStillRunsCountsForTheLongerTimes(t *testing.T) {
	running := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Drawn: sampleOf([]int64{10, 90}, 50)}
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}}, running, runsUntil(1, 900_000), waits(0, 0))
	found := runs(m, 900)
	require.InDelta(t, 225, found.Within(10), 60)
	require.Equal(t, found.Within(10), found.Within(89))
	require.InDelta(t, 675, found.Within(90), 60)
}

// TestASmallSampleIsDrawnInPartFromTheJobsThatItIsLike has a sample of three jobs, which count as much as those that they are like.
func TestASmallSampleIsDrawnInPartFromTheJobsThatItIsLike(t *testing.T) {
	many := make([]int64, 1000)
	for i := range many {
		many[i] = 500
	}
	few := sampleOf([]int64{20, 20, 20})
	few.Like = sampleOf(many)
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}},
		odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Drawn: few}, runsUntil(1, 900_000), waits(0, 0))
	found := runs(m, 1000)
	require.InDelta(t, 500, found.Within(20), 60)
	require.Equal(t, found.Within(20), found.Within(499))
	require.InDelta(t, 1000, found.Within(500), 10)

	m.Jobs[0].Elapsed = 100
	require.Zero(t, runs(m, 100).Within(399), "none of the three ran as long")
}

// TestAJobStartsAfterItIsAdmitted has a gang of both nodes, which is admitted and waits, and a job of one node behind it.
func TestAJobStartsAfterItIsAdmitted(t *testing.T) {
	kinds := []odds.Kind{{Gang: whole(2, 8), Min: gpus(16)}, {Gang: whole(1, 8), Min: gpus(8)}, {Gang: whole(1, 8)}}
	long := runsUntil(1, 990)
	long.Booked = gpus(8)
	gang := odds.Job{Kind: 0, Ends: odds.Unknown, Drawn: sampleOf([]int64{30}), Waits: true, Booked: gpus(16)}
	for story, test := range map[string]struct {
		kind   int
		admits []float64
		limit  []float64
		start  int64
	}{
		"at once where the bound leaves room":                 {1, gpus(40), nil, 50},
		"once what runs and is promised leaves room":          {1, gpus(32), nil, 50},
		"only after a gang that takes all of the bound":       {1, gpus(20), nil, 1020},
		"at once without a minimum":                           {2, gpus(20), nil, 50},
		"only after the gang where the queue has no more":     {1, nil, gpus(31), 1020},
		"at once where the limit of the queue leaves it room": {1, nil, gpus(32), 50},
	} {
		asked := waits(test.kind, 1)
		asked.Pending = true
		m := twoNodes(kinds, runsUntil(0, 50), long, gang, asked)
		m.Jobs[2].Drawn = nil
		m.Jobs[2].Limit = 30
		m.Admission, m.Admits, m.Queues[0].Limit = true, test.admits, test.limit
		require.Equal(t, test.start, odds.NewBase(m).Run(1, 0).Start, story)
		m.Admission = false
		if test.limit == nil {
			require.Equal(t, int64(50), odds.NewBase(m).Run(1, 0).Start, story)
		}
	}
}

func TestAQueueDeservesItsGuaranteeAndNoMoreThanItsLimit(t *testing.T) {
	for story, test := range map[string]struct {
		guarantee, limit []float64
		start            int64
	}{
		"half by weight is too little for a gang":   {nil, nil, odds.Never},
		"a guarantee is enough":                     {gpus(12), nil, 0},
		"what the other cannot use is there":        {nil, gpus(4), 0},
		"a guarantee that is too little is as none": {gpus(9), nil, odds.Never},
	} {
		m := twoNodes([]odds.Kind{{Queue: 0, Gang: whole(3, 4)}, {Queue: 1, Gang: whole(9, 4)}}, waits(1, 0), waits(0, 1))
		m.Course = dividing(t, proportion.Plugin{}, m, 16, func(q int, spec *model.QueueSpec) {
			if q == 0 && test.guarantee != nil {
				spec.Guarantee = cores(test.guarantee[0])
			}
			if q == 1 && test.limit != nil {
				spec.Capability = cores(test.limit[0])
			}
		})
		require.Equal(t, test.start, odds.NewBase(m).Run(1, 0).Start, story)
	}
}

// TestAQueueThatIsEntitledToWhatItAsksForIsServedFirst lets a node become free at 50, of 8 of the 12 that there are. The first queue of
// weight 3 holds 4 and wants 4 more. The second of weight 1 holds nothing and wants it all for 30.
func TestAQueueThatIsEntitledToWhatItAsksForIsServedFirst(t *testing.T) {
	kinds := []odds.Kind{{Queue: 0, Gang: whole(1, 4)}, {Queue: 1, Gang: whole(1, 8)}, {Queue: 3, Gang: whole(1, 100)}}
	long := odds.Job{Held: on(1, 4), Running: 1, Ends: 990}
	other := odds.Job{Kind: 1, Ends: odds.Unknown, Limit: 30, Waits: true}
	for story, test := range map[string]struct {
		entitles bool
		more     []odds.Queue
		start    int64
	}{
		"the one that uses less of its part first": {false, nil, 80},
		"the one that is entitled to it first":     {true, nil, 50},
		"none is, because the two share a half":    {true, []odds.Queue{{Parent: -1}, {Parent: -1}}, 80},
	} {
		m := twoNodes(kinds, runsUntil(0, 50), long, other, waits(0, 1))
		m.Nodes[1] = gpus(4)
		if m.Queues = append(m.Queues, test.more...); test.more != nil {
			m.Queues[0].Parent, m.Queues[1].Parent, m.Asked = 2, 2, 3
			m.Jobs = append(m.Jobs, odds.Job{Kind: 2, Ends: odds.Unknown, Waits: true})
		} else {
			m.Kinds = kinds[:2]
		}
		if test.entitles {
			m.Course = dividing(t, fair.Plugin{}, m, 12, func(q int, spec *model.QueueSpec) {
				if q == 0 {
					spec.Weight = 3
				}
			})
		}
		require.Equal(t, test.start, odds.NewBase(m).Run(1, 0).Start, story)
	}
}

// TestWithoutARuntimeAsLongAJobRunsAsLongAgainHalfTheTime draws from no past job.
func TestWithoutARuntimeAsLongAJobRunsAsLongAgainHalfTheTime(t *testing.T) {
	running := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Elapsed: 1000, Drawn: sampleOf([]int64{10})}
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}}, running, runsUntil(1, 900_000), waits(0, 0))
	require.InDelta(t, 500, runs(m, 1000).Within(1000), 60)
}

func TestArrivalsAreThoseOfAPastDay(t *testing.T) {
	m := twoNodes([]odds.Kind{{Queue: 1, Gang: whole(1, 8)}, {Queue: 0, Gang: whole(1, 8)}}, runsUntil(0, 50), runsUntil(1, 990), waits(1, 0))
	// The queue of the arrival uses less of its part, so that it is served first.
	m.Jobs[0].Kind, m.Jobs[1].Kind = 1, 1
	m.Past = []odds.Past{{Arrival: -86400, Seconds: 300, Kind: 0}}
	require.Equal(t, int64(50), odds.NewBase(m).Run(1, 0).Start, "without arrivals")
	m.Arrivals = true
	require.Equal(t, int64(350), odds.NewBase(m).Run(1, 0).Start)
}

func TestBoundsNeedNoHistory(t *testing.T) {
	limited := odds.Job{Held: on(0, 8), Running: 1, Ends: odds.Unknown, Elapsed: 100, Limit: 700}
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}}, limited, odds.Job{Held: on(1, 8), Running: 1, Ends: odds.Unknown}, waits(0, 0))
	base := odds.NewBase(m)
	require.Equal(t, int64(1), base.Bound(odds.Shortest).Start)
	require.Equal(t, int64(600), base.Bound(odds.Longest).Start)
	m.Jobs[0].Limit = 0
	require.Equal(t, odds.Never, odds.NewBase(m).Bound(odds.Longest).Start)
}

func TestARunEndsAtItsBoundOnWork(t *testing.T) {
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}}, runsUntil(0, 50), runsUntil(1, 990), waits(0, 0))
	m.Work = 5
	found := odds.NewBase(m).Run(1, 0)
	require.True(t, found.Cut)
	require.Equal(t, odds.Never, found.Start)
	require.Equal(t, int64(5), found.Work)
}

// TestWorkCountsWhatIsDrawnForArrivals has a job that waits for ten days, while one arrives each minute.
func TestWorkCountsWhatIsDrawnForArrivals(t *testing.T) {
	m := twoNodes([]odds.Kind{{Gang: whole(1, 8)}}, runsUntil(0, 864_000), runsUntil(1, 864_000), waits(0, 0))
	m.Arrivals = true
	for at := int64(-86_400); at < 0; at += 60 {
		m.Past = append(m.Past, odds.Past{Arrival: at, Elapsed: 1})
	}
	without := odds.NewBase(m).Run(1, 0)
	require.Equal(t, int64(864_000), without.Start)
	seconds := make([]int64, 1000)
	for i := range seconds {
		seconds[i] = int64(i + 1)
	}
	drawn := sampleOf(seconds)
	for i := range m.Past {
		m.Past[i].Drawn = drawn
	}
	found := odds.NewBase(m).Run(1, 0)
	require.Equal(t, without.Start, found.Start)
	// A search among a thousand looks at ten.
	require.Greater(t, found.Work-without.Work, int64(864_000/60*2*9))
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
		Queues:   []odds.Queue{{Parent: -1}, {Parent: 0, Limit: gpus(12)}, {Parent: -1}},
		Horizon:  5000,
		Pause:    rapid.Int64Range(1, 60).Draw(t, "pause"),
		Arrivals: rapid.Bool().Draw(t, "arrivals"), Admission: rapid.Bool().Draw(t, "admission"),
		Course: byParts(10, 5, 1),
	}
	if p := rapid.SampledFrom([]policy.Plugin{nil, proportion.Plugin{}, capacity.Plugin{Hierarchical: true}, fair.Plugin{}}).Draw(t, "policy"); p != nil {
		m.Course = dividing(t, p, m, 20, func(_ int, spec *model.QueueSpec) { spec.Weight = rapid.Uint32Range(1, 3).Draw(t, "weight") })
	}
	if m.Admission && rapid.Bool().Draw(t, "bound") {
		m.Admits = gpus(rapid.Float64Range(0, 40).Draw(t, "admits"))
	}
	for range rapid.IntRange(1, 4).Draw(t, "kinds") {
		kind := odds.Kind{Queue: rapid.IntRange(0, 2).Draw(t, "queue"), Priority: rapid.Int32Range(0, 1).Draw(t, "priority")}
		kind.Gang = whole(rapid.IntRange(1, 3).Draw(t, "gang"), rapid.Float64Range(0, 8).Draw(t, "each"))
		if rapid.Bool().Draw(t, "elastic") {
			kind.More = whole(rapid.IntRange(1, 3).Draw(t, "more"), kind.Gang[0].Request[0])
		}
		if rapid.Bool().Draw(t, "least") {
			kind.Min = gpus(float64(kind.Gang[0].N) * kind.Gang[0].Request[0])
		}
		m.Kinds = append(m.Kinds, kind)
	}
	kind := rapid.IntRange(0, len(m.Kinds)-1)
	for i := range rapid.IntRange(0, 6).Draw(t, "running") {
		m.Jobs = append(m.Jobs, odds.Job{
			Kind: kind.Draw(t, "kind"), Held: on(i%3, 2), Running: 1, Elapsed: rapid.Int64Range(0, 100).Draw(t, "elapsed"), Ends: odds.Unknown,
			Drawn: sampleOf([]int64{20, 70, 400}), Waits: false,
		})
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "waiting") {
		m.Jobs = append(m.Jobs, waits(kind.Draw(t, "kind"), i, 5, 50, 500))
		if job := &m.Jobs[len(m.Jobs)-1]; rapid.Bool().Draw(t, "pending") {
			job.Pending = true
		} else {
			job.Booked = m.Kinds[job.Kind].Min
		}
	}
	m.Asked = len(m.Jobs) - 1
	for at := int64(-5000); at < 0; at += rapid.Int64Range(100, 2000).Draw(t, "gap") {
		m.Past = append(m.Past, odds.Past{Arrival: at, Seconds: 60, Kind: kind.Draw(t, "kind")})
	}
	return m
}

// sampleOf is a sample of jobs that ran so long, and of some that have run so long.
func sampleOf(ended []int64, running ...int64) *odds.Sample {
	var past []odds.Observed
	for _, seconds := range ended {
		past = append(past, odds.Observed{Seconds: seconds, Ended: true})
	}
	for _, seconds := range running {
		past = append(past, odds.Observed{Seconds: seconds})
	}
	return odds.NewSample(past)
}
