package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// apply carries a plan out; its tasks run and its victims wait again.
func apply(t require.TestingT, s *engine.Session, plan *plan.Plan) {
	if plan.Enters {
		require.True(t, s.Job(plan.Job).Enqueue(nil))
	}
	for i := range plan.Victims {
		require.NoError(t, s.Deallocate(plan.Victims[i].Task, model.Pending))
	}
	for i, task := range plan.Tasks {
		require.NoError(t, s.Allocate(task, plan.Nodes[i]))
		s.SetStatus(task, model.Running)
	}
}

// nextPlan returns the first plan for a waiting job in order of service: without evictions if there is such a plan, nil if no job has a
// plan.
func nextPlan(t require.TestingT, s *engine.Session) *plan.Plan {
	for _, means := range []plan.Means{plan.PlaceOnly, plan.ByAny} {
		for _, j := range s.Waiting() {
			if made := ask(t, s, j, means); made.Outcome == plan.Made {
				return made
			}
		}
	}
	return nil
}

func TestRunsOfPlansUnderFairEnd(t *testing.T) {
	plans, evictions := 0, 0
	for i := range *enginetest.Runs {
		seed := *enginetest.Seed + uint64(i)
		s, err := engine.Open(enginetest.PlanCluster(t, seed, seed%3 == 0), enginetest.Policies()["fair"], nil)
		require.NoError(t, err)
		seen := map[string]bool{}
		for plan := nextPlan(t, s); plan != nil; plan = nextPlan(t, s) {
			state := make([]byte, 0, 2*s.View().Tasks.Len())
			for task := range model.TaskID(s.View().Tasks.Len()) {
				state = append(state, byte(s.View().Status(task)), byte(s.View().NodeOf(task)))
			}
			require.False(t, seen[string(state)], "%d: a state repeats", seed)
			seen[string(state)] = true
			require.Less(t, len(seen), 10_000, "%d: the run does not end", seed)
			plans++
			evictions += len(plan.Victims)
			apply(t, s, plan)
		}
	}
	t.Log(plans, "plans with", evictions, "evictions")
	require.Greater(t, evictions, *enginetest.Runs/20)
}

// loop is a cluster of one node on which queues a and b are known, under some scheduler, to take tasks from each other for ever. Amounts
// are cores and GiB.
type loop struct {
	name     string
	policy   engine.Policy
	offered  [2]float64
	deserved [2][2]float64
	// a and b are running tasks of jobs of their own, waits is the task of b that waits.
	a, b  [][2]float64
	waits [2]float64
	// returns is the plan's forecast for its victims; 0: the policy evicts no task for it.
	returns plan.Return
}

func two(x [2]float64) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{1000 * x[0], x[1] * (1 << 30)}}
}

// session opens the cluster.
func (l *loop) session(t *testing.T, p engine.Policy) *engine.Session {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "memory"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: two(l.offered)})
	for i, name := range []string{"a", "b"} {
		spec := model.QueueSpec{Name: name, Weight: 1, Reclaimable: true}
		if l.deserved[i] != [2]float64{} {
			spec.Deserved = two(l.deserved[i])
		}
		b.Queue(spec)
	}
	job := func(uid, queue string, request [2]float64, status model.Status, n model.NodeID) {
		b.Job(model.JobSpec{UID: uid, Queue: queue, Phase: model.PhaseInqueue, MinAvailable: 1})
		b.Group(model.GroupSpec{Request: two(request)})
		b.Task(&model.TaskSpec{UID: uid, Status: status, Node: n, Index: -1, Preemptable: true})
	}
	for i, x := range l.a {
		job(fmt.Sprintf("a%d", i), "a", x, model.Running, 0)
	}
	for i, x := range l.b {
		job(fmt.Sprintf("b%d", i), "b", x, model.Running, 0)
	}
	job("waits", "b", l.waits, model.Pending, model.None)
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, p, nil)
	require.NoError(t, err)
	return s
}

// knownLoops are loops that users of Volcano, Kueue and YuniKorn reported, and one of each kind that the rules of Volcano allow. Gang does
// not choose victims, as if it were disabled for that: else it keeps the last task of every job.
func knownLoops() []loop {
	gangs := engine.Entry{Plugin: gang.Plugin{}, Disabled: engine.DecisionsOf(engine.Reclaimable, engine.Preemptable)}
	with := func(p policy.Plugin) engine.Policy {
		return engine.Policy{Walk: engine.Volcano, Tiers: []engine.Tier{{{Plugin: priority.Plugin{}}, gangs}, {{Plugin: p}}}}
	}
	return []loop{
		{
			name: "volcano 4947, the evicted task is served first because its queue has nothing left", policy: with(capacity.Plugin{}),
			offered: [2]float64{5, 5}, deserved: [2][2]float64{{3, 3}, {5, 5}},
			a: [][2]float64{{4, 4}}, b: [][2]float64{{1, 1}}, waits: [2]float64{4, 4}, returns: plan.ServedFirst,
		},
		{
			name: "volcano 3729, two queues that deserve 5 of 11 cores with tasks of 2", policy: with(capacity.Plugin{}),
			offered: [2]float64{11, 11}, deserved: [2][2]float64{{5, 5}, {5, 5}},
			a: [][2]float64{{2, 2}, {2, 2}, {2, 2}, {2, 2}, {2, 2}}, waits: [2]float64{2, 2}, returns: plan.NoReturn,
		},
		{
			name: "volcano 561, tasks that do not divide the share", policy: with(proportion.Plugin{}),
			offered: [2]float64{3, 3}, a: [][2]float64{{2, 2}, {1, 1}}, waits: [2]float64{1, 1}, returns: plan.NoReturn,
		},
		{
			name: "capacity, deserved 5 and 3 of 6 cores", policy: with(capacity.Plugin{}),
			offered: [2]float64{6, 6}, deserved: [2][2]float64{{5, 5}, {3, 3}},
			a: [][2]float64{{6, 6}}, waits: [2]float64{3, 3}, returns: plan.ServedFirst,
		},
		{
			name: "capacity, each queue within what it deserves of one resource", policy: with(capacity.Plugin{}),
			offered: [2]float64{2, 2}, deserved: [2][2]float64{{1, 3}, {3, 1}},
			a: [][2]float64{{2, 2}}, waits: [2]float64{2, 2}, returns: plan.TakesBack,
		},
		{
			// A queue above its quota evicts a borrower, which is served first again because its share is smaller.
			// github.com/kubernetes-sigs/kueue, issue 3779, comment of 2025-01-12: quotas of 150m, 150m and 0, tasks of 250m and 50m run,
			// and one of 50m waits.
			name: "kueue 3779, a queue above what it deserves claims from one that deserves nothing", policy: with(capacity.Plugin{}),
			offered: [2]float64{6, 6}, deserved: [2][2]float64{{}, {3, 3}},
			a: [][2]float64{{1, 1}}, b: [][2]float64{{5, 5}}, waits: [2]float64{1, 1},
		},
		{
			// Issue 7101 of the same: 4 gangs of 2 run, and a gang of 3 of a second queue evicts them in turn.
			name: "kueue 7101, tasks of 2 of 8 cores, and one of 3 waits", policy: with(proportion.Plugin{}),
			offered: [2]float64{8, 8}, a: [][2]float64{{2, 2}, {2, 2}, {2, 2}, {2, 2}}, waits: [2]float64{3, 3}, returns: plan.NoReturn,
		},
		{
			// The storm that YUNIKORN-2761 documents (github.com/apache/yunikorn-site, pull request 457): siblings without guarantees of
			// their own.
			name: "yunikorn 2761, siblings that deserve nothing of their own", policy: with(capacity.Plugin{}),
			offered: [2]float64{4, 4}, a: [][2]float64{{2, 2}, {2, 2}}, waits: [2]float64{2, 2},
		},
	}
}

func TestKnownLoopsAreToldBeforehandAndEndUnderFair(t *testing.T) {
	for _, l := range knownLoops() {
		t.Run(l.name, func(t *testing.T) {
			s := l.session(t, l.policy)
			j, _ := s.View().Job("waits")
			made := ask(t, s, j, plan.ByReclaim)
			require.Equal(t, l.returns != 0, made.Outcome == plan.Made)
			for _, v := range made.Victims {
				require.Equal(t, l.returns, v.Returns)
			}
			repeats, warned := l.runs(t, l.policy)
			require.True(t, !repeats || warned, "a run repeats a state, and no plan said so")
			repeats, _ = l.runs(t, enginetest.Policies()["fair"])
			require.False(t, repeats)
		})
	}
}

// runs carries plans out until there is none or a state repeats, and reports whether one does and whether a plan predicted it.
func (l *loop) runs(t *testing.T, p engine.Policy) (repeats, warned bool) {
	t.Helper()
	s := l.session(t, p)
	seen := map[string]bool{}
	for made := nextPlan(t, s); made != nil; made = nextPlan(t, s) {
		state := ""
		for task := range model.TaskID(s.View().Tasks.Len()) {
			state += fmt.Sprint(int(s.View().Status(task)), " ")
		}
		if seen[state] {
			return true, warned
		}
		seen[state] = true
		for _, v := range made.Victims {
			warned = warned || v.Returns != plan.NoReturn
		}
		apply(t, s, made)
	}
	return false, warned
}
