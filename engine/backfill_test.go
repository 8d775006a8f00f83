package engine_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/backfill"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// filledJob is a job whose tasks ask for the same: they run on nodes until an end, or wait and run for a time. 0: not known.
type filledJob struct {
	name    string
	queue   string
	cpu     int
	runs    []int
	waiting int
	end     int64
	runtime int64
	// outside: it has not entered its queue.
	outside bool
}

// filledNow is the time of the snapshots; a unit of time is a nanosecond.
const filledNow = 1_000

// smallLimit is what the queue small may use at most.
const smallLimit = 8

// filledCluster is a session on nodes of so many cpu by priority, gang, capacity and backfill. Jobs are in order of service.
func filledCluster(t require.TestingT, now int64, kind backfill.Kind, nodes []int, jobs []filledJob) *engine.Session {
	return filledClusterUnder(t, engine.Tier{{Plugin: capacity.Plugin{}}}, now, kind, nodes, nil, jobs)
}

// filledClusterUnder is filledCluster with other plugins than capacity, and with reservations of the nodes.
func filledClusterUnder(
	t require.TestingT, sharing engine.Tier, now int64, kind backfill.Kind, nodes []int, kept map[int][]model.ReservationSpec, jobs []filledJob,
) *engine.Session {
	b := model.NewBuilder(now)
	b.Dimensions([]string{"cpu", "gpu"})
	for i, cpu := range nodes {
		b.Node(model.NodeSpec{Name: fmt.Sprint("n", i), Allocatable: enginetest.Amounts(cpu, 0), Reservations: kept[i]})
	}
	b.Queue(model.QueueSpec{Name: "q", Weight: 1, Deserved: enginetest.Amounts(1_000, 1_000)})
	b.Queue(model.QueueSpec{Name: "small", Weight: 1, Capability: enginetest.Amounts(smallLimit, 0), Deserved: enginetest.Amounts(smallLimit, 0)})
	b.Queue(model.QueueSpec{Name: "closed", Weight: 1, State: model.Closed})
	for i, j := range jobs {
		queue := "q"
		if j.queue != "" {
			queue = j.queue
		}
		phase, minimum := model.PhaseInqueue, j.cpu*(len(j.runs)+j.waiting)
		switch {
		case j.outside:
			phase = model.PhasePending
		case j.waiting == 0:
			phase = model.PhaseRunning
		}
		b.Job(model.JobSpec{
			UID: j.name, Queue: queue, Phase: phase, MinResources: enginetest.Amounts(minimum, 0), Priority: int32(len(jobs) - i),
			MinAvailable: uint32(len(j.runs) + j.waiting), ExpectedEnd: j.end, ExpectedRuntime: j.runtime,
		})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(j.cpu, 0)})
		for k, n := range j.runs {
			b.Task(&model.TaskSpec{UID: fmt.Sprintf("%s-r%d", j.name, k), Status: model.Running, Node: model.NodeID(n), Preemptable: true})
		}
		for k := range j.waiting {
			b.Task(&model.TaskSpec{UID: fmt.Sprintf("%s-w%d", j.name, k), Node: model.None, Index: -1})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	plugin := backfill.Default()
	plugin.Kind, plugin.Resolution, plugin.Window = kind, 1, 1_000_000
	tier := slices.Concat(engine.Tier{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}}, sharing, engine.Tier{{Plugin: plugin}})
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{tier}}, nil)
	require.NoError(t, err)
	return s
}

// planned returns when a job starts for which room is kept, since now, and on which nodes; -1 for none.
func planned(s *engine.Session, job string) (int64, []model.NodeID) {
	j, ok := s.View().Job(job)
	if !ok {
		return -1, nil
	}
	kept, ok := s.ReservationOf(j)
	if !ok {
		return -1, nil
	}
	return kept.From - s.View().AsOf, kept.Nodes
}

// startable returns the nodes on which the first waiting task of a job may start now.
func startable(s *engine.Session, job string) (nodes []int, why policy.Reasons) {
	j, _ := s.View().Job(job)
	for t := s.View().Jobs.At(j).FirstTask; t < s.View().Jobs.At(j).EndTask; t++ {
		if s.View().Status(t) != model.Pending {
			continue
		}
		if !s.Allocatable([]model.TaskID{t}, policy.InSession, &why, nil) {
			return nil, why
		}
		for _, n := range s.View().NodeOrder {
			if s.Nodes().Fits(t, n, &why) && s.Nodes().HasRoom(t, n, nil) {
				nodes = append(nodes, int(n))
			}
		}
		return nodes, why
	}
	return nil, why
}

func TestRoomIsKeptForTheFirstJobThatCannotStart(t *testing.T) {
	running := filledJob{name: "runs", cpu: 6, runs: []int{0}, end: 1_500}
	big := filledJob{name: "big", cpu: 8, waiting: 1, runtime: 300}
	for name, c := range map[string]struct {
		job   filledJob
		nodes []int
		fits  []int
	}{
		"what ends before starts":                 {filledJob{cpu: 4, runtime: 500}, []int{10}, []int{0}},
		"what ends later does not":                {filledJob{cpu: 4, runtime: 501}, []int{10}, nil},
		"nor what has no known end":               {filledJob{cpu: 4}, []int{10}, nil},
		"what has room beside starts":             {filledJob{cpu: 2}, []int{10}, []int{0}},
		"what is too large has no room anyway":    {filledJob{cpu: 5, runtime: 1}, []int{10}, nil},
		"another node is free":                    {filledJob{cpu: 4}, []int{10, 5}, []int{1}},
		"with another node there is no need kept": {filledJob{cpu: 4}, []int{10, 5}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.job.name, c.job.waiting = "late", 1
			s := filledCluster(t, filledNow, backfill.EASY, c.nodes, []filledJob{running, big, c.job})
			at, nodes := planned(s, "big")
			require.Equal(t, int64(500), at)
			require.Equal(t, []model.NodeID{0}, nodes)
			fits, why := startable(s, "late")
			require.Equal(t, c.fits, fits)
			if len(fits) == 0 && c.job.cpu < 5 {
				require.Equal(t, policy.Reserved, why.List[0].Code)
				require.Equal(t, "big", why.List[0].Detail)
			}
			fits, _ = startable(s, "big")
			require.Empty(t, fits, "there is no room yet")
		})
	}
}

func TestConservativeBackfillKeepsRoomForEachJob(t *testing.T) {
	jobs := []filledJob{
		{name: "runs", cpu: 8, runs: []int{0}, end: 1_500},
		{name: "first", cpu: 10, waiting: 1, runtime: 100},
		{name: "second", cpu: 10, waiting: 1, runtime: 200},
		{name: "short", cpu: 2, waiting: 1, runtime: 500},
		{name: "long", cpu: 2, waiting: 1, runtime: 501},
		{name: "endless", cpu: 1, waiting: 1},
		{name: "never", cpu: 11, waiting: 1, runtime: 1},
	}
	for name, want := range map[backfill.Kind]map[string]int64{
		backfill.EASY:         {"first": 500, "second": -1, "short": -1, "long": -1, "endless": -1, "never": -1},
		backfill.Conservative: {"first": 500, "second": 600, "short": 0, "long": 800, "endless": 800, "never": -1},
	} {
		s := filledCluster(t, filledNow, name, []int{10}, jobs)
		for job, start := range want {
			at, _ := planned(s, job)
			require.Equal(t, start, at, job)
		}
		fits, _ := startable(s, "short")
		require.Equal(t, []int{0}, fits)
		fits, why := startable(s, "long")
		require.Empty(t, fits)
		require.Equal(t, policy.Reserved, why.List[0].Code)
	}
}

func TestRoomThatIsKeptIsFreeOnceItsJobHasStartedElsewhere(t *testing.T) {
	s := filledCluster(t, filledNow, backfill.EASY, []int{10, 10}, []filledJob{
		{name: "runs", cpu: 6, runs: []int{0}, end: 1_500},
		{name: "other", cpu: 6, runs: []int{1}, end: 1_900},
		{name: "big", cpu: 8, waiting: 1, runtime: 300},
		{name: "late", cpu: 4, waiting: 1},
	})
	fits, _ := startable(s, "late")
	require.Equal(t, []int{1}, fits)
	other, _ := s.View().Task("other-r0")
	big, _ := s.View().Task("big-w0")
	mark := s.Mark()
	require.NoError(t, s.Deallocate(other, model.Releasing))
	s.SetStatus(other, model.Succeeded)
	require.NoError(t, s.Allocate(big, 1))
	fits, _ = startable(s, "late")
	require.Equal(t, []int{0}, fits)
	require.NoError(t, s.Rollback(mark))
	fits, _ = startable(s, "late")
	require.Equal(t, []int{1}, fits)
}

func TestAQueueKeepsItsShareForTheJobThatItWaitsWith(t *testing.T) {
	s := filledCluster(t, filledNow, backfill.EASY, []int{10, 10}, []filledJob{
		{name: "runs", cpu: 9, runs: []int{0}, end: 1_500},
		{name: "also", cpu: 4, runs: []int{1}, end: 1_600},
		{name: "big", queue: "small", cpu: 7, waiting: 1, runtime: 300},
		{name: "long", queue: "small", cpu: 2, waiting: 1, runtime: 5_000},
		{name: "short", queue: "small", cpu: 2, waiting: 1, runtime: 500},
		{name: "beside", cpu: 2, waiting: 1, runtime: 5_000},
	})
	at, _ := planned(s, "big")
	require.Equal(t, int64(500), at)
	fits, why := startable(s, "long")
	require.Empty(t, fits)
	require.Equal(t, "big", why.List[0].Detail)
	fits, _ = startable(s, "short")
	require.Equal(t, []int{1}, fits)
	fits, _ = startable(s, "beside")
	require.Equal(t, []int{1}, fits)
}

// drawnFill draws jobs of a queue that run, of which together no node has more than it offers, and jobs that wait.
func drawnFill(t *rapid.T) (nodes []int, jobs []filledJob) {
	nodes = rapid.SliceOfN(rapid.IntRange(1, 6), 1, 4).Draw(t, "nodes")
	left, queue := slices.Clone(nodes), rapid.SampledFrom([]string{"q", "small"}).Draw(t, "queue")
	for i := range rapid.IntRange(0, 4).Draw(t, "running") {
		j := filledJob{name: fmt.Sprint("r", i), queue: queue, cpu: rapid.IntRange(1, 4).Draw(t, "cpu"), end: rapid.Int64Range(0, 9).Draw(t, "end")}
		if j.end > 0 {
			j.end += filledNow
		}
		n := rapid.IntRange(0, len(nodes)-1).Draw(t, "node")
		if left[n] >= j.cpu {
			left[n] -= j.cpu
			j.runs = []int{n}
			jobs = append(jobs, j)
		}
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "waiting") {
		jobs = append(jobs, filledJob{
			name: fmt.Sprint("w", i), cpu: rapid.IntRange(1, 6).Draw(t, "asks"), waiting: rapid.IntRange(1, 3).Draw(t, "tasks"),
			runtime: rapid.Int64Range(0, 8).Draw(t, "runtime"), queue: queue,
		})
	}
	return nodes, jobs
}

// plainPlan plans the waiting jobs moment by moment: use[n][t] is what of a node is used at each moment from now on, small what the queue of
// this name uses.
func plainPlan(kind backfill.Kind, nodes []int, jobs []filledJob) map[string]int64 {
	const moments = 120
	use, small := make([][moments]int, len(nodes)), [moments]int{}
	occupy := func(n int, j *filledJob, from, until int64) {
		for at := from; at < min(until, moments); at++ {
			if use[n][at] += j.cpu; j.queue == "small" {
				small[at] += j.cpu
			}
		}
	}
	lasts := func(time int64) int64 {
		if time == 0 {
			return moments
		}
		return time
	}
	for _, j := range jobs {
		for _, n := range j.runs {
			end := int64(moments)
			if j.end > filledNow {
				end = j.end - filledNow
			}
			if j.end > 0 && j.end <= filledNow {
				end = 1
			}
			occupy(n, &j, 0, end)
		}
	}
	starts := map[string]int64{}
	for _, j := range jobs {
		if j.waiting == 0 {
			continue
		}
		for at := range int64(moments / 2) {
			var on []int
			for n := range nodes {
				most := slices.Max(use[n][at:min(at+lasts(j.runtime), moments)])
				for k := most + j.cpu; k <= nodes[n] && len(on) < j.waiting; k += j.cpu {
					on = append(on, n)
				}
			}
			limited := j.queue == "small" && slices.Max(small[at:min(at+lasts(j.runtime), moments)])+j.cpu*j.waiting > smallLimit
			if len(on) < j.waiting || limited {
				continue
			}
			starts[j.name] = at
			for _, n := range on {
				occupy(n, &j, at, at+lasts(j.runtime))
			}
			break
		}
		if starts[j.name] > 0 && kind == backfill.EASY {
			break
		}
	}
	return starts
}

func TestPlansOfBackfillAreThoseOfAPlainPlanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, jobs := drawnFill(t)
		kind := backfill.Kind(rapid.IntRange(0, 1).Draw(t, "kind"))
		s := filledCluster(t, filledNow, kind, nodes, jobs)
		want := plainPlan(kind, nodes, jobs)
		for _, j := range jobs {
			if j.waiting == 0 {
				continue
			}
			at, _ := planned(s, j.name)
			start, ok := want[j.name]
			if !ok {
				start = -1
			}
			require.Equal(t, start, at, j.name)
		}
	})
}

// next lets every job start that may, in order of service, and time pass until something ends or starts. It returns the jobs then.
func (s filledState) next(t require.TestingT) filledState {
	session := filledClusterUnder(t, s.sharing, s.now, s.kind, s.nodes, nil, s.jobs)
	for _, id := range session.Order().Pending() {
		if session.Job(id).Enqueue(nil) {
			uid := session.View().Jobs.At(id).UID
			s.jobs[slices.IndexFunc(s.jobs, func(j filledJob) bool { return j.name == uid })].outside = false
		}
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		if j.waiting > 0 && !j.outside && s.start(t, session, j) {
			if j.runtime > 0 {
				j.end = s.now + j.runtime
			}
		}
	}
	for _, j := range s.jobs {
		at, _ := planned(session, j.name)
		if j.waiting > 0 && at >= 0 {
			s.starts[j.name] = s.now + at
		}
	}
	s.now++
	s.jobs = slices.DeleteFunc(slices.Clone(s.jobs), func(j filledJob) bool { return len(j.runs) > 0 && j.end == s.now })
	return s
}

// filledState is a cluster at a time.
type filledState struct {
	now     int64
	kind    backfill.Kind
	sharing engine.Tier
	nodes   []int
	jobs    []filledJob
	// starts has when room is kept for each job.
	starts map[string]int64
	// elsewhere lets tasks start on the last node with room in place of the first.
	elsewhere bool
}

// start starts a job, task by task, if it may; otherwise nothing has changed.
func (s filledState) start(t require.TestingT, session *engine.Session, j *filledJob) bool {
	var on []int
	mark := session.Mark()
	for range j.waiting {
		fits, _ := startable(session, j.name)
		if len(fits) == 0 {
			require.NoError(t, session.Rollback(mark))
			return false
		}
		n := fits[0]
		if s.elsewhere {
			n = fits[len(fits)-1]
		}
		id, _ := session.View().Job(j.name)
		for task := session.View().Jobs.At(id).FirstTask; ; task++ {
			if session.View().Status(task) == model.Pending {
				require.NoError(t, session.Allocate(task, model.NodeID(n)))
				break
			}
		}
		on = append(on, n)
	}
	j.runs, j.waiting = on, 0
	return true
}

func TestNoStartDelaysAJobForWhichRoomIsKept(t *testing.T) {
	policies := admitting()
	// Of jobs that are inside of their queues, such a policy lets each use more than the queue's limit.
	delete(policies, onlyAdmits)
	rapid.Check(t, func(t *rapid.T) {
		s := filledState{now: filledNow, kind: backfill.Kind(rapid.IntRange(0, 1).Draw(t, "kind"))}
		s.nodes, s.jobs = drawnFill(t)
		s.sharing = policies[rapid.SampledFrom(slices.Sorted(maps.Keys(policies))).Draw(t, "policy")]
		for i := range s.jobs {
			s.jobs[i].outside = s.jobs[i].waiting > 0 && rapid.Bool().Draw(t, "outside")
		}
		s.elsewhere = rapid.Bool().Draw(t, "elsewhere")
		for range 24 {
			// Jobs that run too long have no end that is known.
			s.jobs = slices.DeleteFunc(s.jobs, func(j filledJob) bool { return len(j.runs) > 0 && j.end > 0 && j.end <= s.now })
			before, waited := s.starts, map[string]bool{}
			for _, j := range s.jobs {
				waited[j.name] = j.waiting > 0
			}
			s.starts = map[string]int64{}
			s = s.next(t)
			for i, j := range s.jobs {
				was, had := before[j.name]
				if !had || j.waiting == 0 {
					continue
				}
				is, has := s.starts[j.name]
				first := !slices.ContainsFunc(s.jobs[:i], func(j filledJob) bool {
					_, had := before[j.name]
					if had {
						return j.waiting > 0
					}
					// It could never start, and can now that others started elsewhere than planned.
					_, has := s.starts[j.name]
					return waited[j.name] && (has || len(j.runs) > 0)
				})
				if first || !s.elsewhere {
					require.True(t, has && is <= was, "%s starts at %d, later than %d", j.name, is, was)
				}
			}
		}
	})
}

func TestAnExplanationNamesTheJobForWhichRoomIsKept(t *testing.T) {
	s := filledCluster(t, filledNow, backfill.EASY, []int{10}, []filledJob{
		{name: "runs", cpu: 6, runs: []int{0}, end: 1_500},
		{name: "big", cpu: 8, waiting: 1, runtime: 300},
		{name: "late", cpu: 4, waiting: 1},
	})
	late, _ := s.View().Job("late")
	require.NoError(t, explain.Jobs(s, []model.JobID{late}, true, func(e *explain.Explanation) error {
		require.Equal(t, judge.CheckShare, e.Findings[e.Blocking].Check)
		require.Equal(t, "big", e.Findings[e.Blocking].Reasons[0].Detail)
		for _, f := range e.Findings {
			for _, c := range f.NodeCounts {
				require.Equal(t, place.NodeCount{N: 1, Code: policy.Reserved, Free: 1}, c)
			}
		}
		return nil
	}))
}

func TestBackfillStandsTimesAtTheEndsOfWhatCanBeExpressed(t *testing.T) {
	times := []int64{math.MinInt64, -1, 0, 1, filledNow, math.MaxInt64 - 1, math.MaxInt64}
	rapid.Check(t, func(t *rapid.T) {
		nodes, jobs := drawnFill(t)
		for i := range jobs {
			jobs[i].end = rapid.SampledFrom(times).Draw(t, "end")
			jobs[i].runtime = max(0, rapid.SampledFrom(times).Draw(t, "runtime"))
		}
		kind := backfill.Kind(rapid.IntRange(0, 1).Draw(t, "kind"))
		s := filledCluster(t, rapid.SampledFrom(times).Draw(t, "now"), kind, nodes, jobs)
		for _, j := range jobs {
			startable(s, j.name)
		}
	})
}

func TestBackfillSpendsItsWork(t *testing.T) {
	jobs := []filledJob{{name: "runs", cpu: 8, runs: []int{0}, end: 1_500}, {name: "first", cpu: 10, waiting: 1, runtime: 100}}
	m := filledCluster(t, filledNow, backfill.EASY, []int{10}, jobs).View().Model
	spent := func(p engine.Policy) int64 {
		work := policy.NewWork(policy.DefaultWork)
		_, err := engine.OpenHost(m, p, nil, work)
		require.NoError(t, err)
		return work.Spent()
	}
	with := engine.Policy{Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}, {Plugin: backfill.Default()}}}}
	needed := spent(with)
	require.Greater(t, needed, spent(engine.Policy{Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}}}})+50)
	for less := range needed {
		_, err := engine.OpenHost(m, with, nil, policy.NewWork(less))
		require.Error(t, err, less)
	}
}
