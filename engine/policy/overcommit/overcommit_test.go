package overcommit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// amounts are named quantities in the engine's units.
type amounts = policytest.Amounts

// names are the dimensions of every test cluster, in the order of the snapshot.
var names = []string{"gpu", "cpu", "pods", "memory", "ephemeral-storage"}

func sparse(a amounts) *model.Amounts { return policytest.Sparse(names, a) }

type node struct{ allocatable, used amounts }

type job struct {
	phase        model.Phase
	minAvailable uint32
	minimum      amounts
	running      []amounts
	gated        []amounts
}

func open(t require.TestingT, p overcommit.Plugin, nodes []node, jobs []job) (*policy.View, state) {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	for i, n := range nodes {
		b.Node(model.NodeSpec{Name: string(rune('a' + i)), Allocatable: sparse(n.allocatable), UsedByOthers: sparse(n.used)})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	for i, j := range jobs {
		b.Job(model.JobSpec{
			Name: string(rune('a' + i)), Queue: "q", Phase: j.phase, MinAvailable: j.minAvailable, MinResources: sparse(j.minimum),
		})
		b.Group(model.GroupSpec{})
		for _, r := range j.running {
			b.Task(&model.TaskSpec{Status: model.Running, Node: model.None, Request: sparse(r)})
		}
		for _, r := range j.gated {
			b.Task(&model.TaskSpec{Status: model.Pending, Gate: model.GateOther, Node: model.None, Request: sparse(r)})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	v := policy.NewView(m, nil)
	s, err := p.Open(v)
	require.NoError(t, err)
	require.Implements(t, (*state)(nil), s)
	return v, s.(state)
}

type state interface {
	policy.Enqueuer
	policy.EnqueuedHandler
}

// room returns how much cpu a job may ask for at least and still be admitted, searched in steps of 0.5.
func room(t *testing.T, p overcommit.Plugin, n node, others ...job) float64 {
	t.Helper()
	for cpu := 0.5; cpu < 40; cpu += 0.5 {
		_, s := open(t, p, []node{n}, append([]job{{minimum: amounts{"cpu": cpu}}}, others...))
		if s.Enqueueable(0, nil) == policy.Reject {
			return cpu - 0.5
		}
	}
	return math.Inf(1)
}

func TestRoom(t *testing.T) {
	ten := node{allocatable: amounts{"cpu": 10, "memory": 10}}
	half := node{allocatable: amounts{"cpu": 10, "memory": 10}, used: amounts{"cpu": 5}}
	for _, story := range []struct {
		name   string
		plugin overcommit.Plugin
		node   node
		other  job
		want   float64
	}{
		{"1.2 of the cluster by default", overcommit.Default(), ten, job{}, 12},
		{"as much as the factor says", overcommit.Plugin{Factor: 2}, ten, job{}, 20},
		{"a factor below 1 is 1.2", overcommit.Plugin{Factor: 0.5}, ten, job{}, 12},
		{"a factor that is no number is 1.2", overcommit.Plugin{Factor: math.NaN()}, ten, job{}, 12},
		{"a factor without bound is 1.2", overcommit.Plugin{Factor: math.Inf(1)}, ten, job{}, 12},
		{"usage is taken off after the factor", overcommit.Default(), half, job{}, 7},
		{"nothing if more is used than the factor gives", overcommit.Plugin{Factor: 1}, node{amounts{"cpu": 1}, amounts{"cpu": 5}}, job{}, 0},
		{"a job in the queue holds its minimum", overcommit.Plugin{Factor: 1}, ten, job{phase: model.PhaseInqueue, minimum: amounts{"cpu": 4}}, 6},
		{
			"even what it has got of it already",
			overcommit.Plugin{Factor: 1},
			ten,
			job{phase: model.PhaseInqueue, minimum: amounts{"cpu": 4}, running: []amounts{{"cpu": 3}}},
			6,
		},
		{
			"a running job holds what it lacks",
			overcommit.Plugin{Factor: 1},
			ten,
			job{phase: model.PhaseRunning, minimum: amounts{"cpu": 4}, running: []amounts{{"cpu": 3}}},
			9,
		},
		{
			"but nothing with fewer tasks than it needs",
			overcommit.Plugin{Factor: 1},
			ten,
			job{phase: model.PhaseRunning, minAvailable: 2, minimum: amounts{"cpu": 4}, running: []amounts{{"cpu": 3}}},
			10,
		},
		{"a pending job holds nothing", overcommit.Plugin{Factor: 1}, ten, job{minimum: amounts{"cpu": 4}}, 10},
		{"a job without a minimum holds nothing", overcommit.Plugin{Factor: 1}, ten, job{phase: model.PhaseInqueue}, 10},
		{
			"gated tasks are taken off",
			overcommit.Plugin{Factor: 1},
			ten,
			job{phase: model.PhaseInqueue, minimum: amounts{"cpu": 4}, gated: []amounts{{"cpu": 1}}},
			7,
		},
	} {
		t.Run(story.name, func(t *testing.T) {
			require.InDelta(t, story.want, room(t, story.plugin, story.node, story.other), 0)
		})
	}
}

func TestVote(t *testing.T) {
	gpuNode := node{allocatable: amounts{"cpu": 10, "gpu": 2, "pods": 3}, used: amounts{"cpu": 50}}
	for _, story := range []struct {
		name    string
		minimum amounts
		want    policy.Vote
	}{
		{"a job without a minimum is admitted", nil, policy.Permit},
		{"a minimum of nothing is admitted though too much is used", amounts{"cpu": 0}, policy.Permit},
		{"the whole of a dimension is admitted though another has no room", amounts{"gpu": 2}, policy.Permit},
		{"more than that is refused", amounts{"gpu": 2.01}, policy.Reject},
		{"what no node offers is refused", amounts{"ephemeral-storage": 1}, policy.Reject},
		{"pods do not count", amounts{"pods": 1000}, policy.Permit},
	} {
		t.Run(story.name, func(t *testing.T) {
			_, s := open(t, overcommit.Plugin{Factor: 1}, []node{gpuNode}, []job{{minimum: story.minimum}})
			require.Equal(t, story.want, s.Enqueueable(0, nil))
		})
	}
}

func TestReasonsGiveTheNumbersOfEachDimension(t *testing.T) {
	_, s := open(t, overcommit.Plugin{Factor: 1.5}, []node{{amounts{"cpu": 10, "memory": 4, "gpu": 9}, amounts{"cpu": 1}}}, []job{
		{minimum: amounts{"cpu": 12, "memory": 7, "gpu": 1}},
		{phase: model.PhaseInqueue, minimum: amounts{"cpu": 3}},
	})
	var why policy.Reasons
	require.Equal(t, policy.Reject, s.Enqueueable(0, &why))
	require.Equal(t, []policy.Reason{
		{Plugin: "overcommit", Code: policy.AboveOvercommit, Queue: 0, Dimension: 0, Have: 3, Need: 12, Limit: 14},
		{Plugin: "overcommit", Code: policy.AboveOvercommit, Queue: 0, Dimension: 1, Have: 0, Need: 7, Limit: 6},
	}, why.List)
}

func TestOnlyAdmittedJobsAreBookedAndUndoneAsAWhole(t *testing.T) {
	v, s := open(t, overcommit.Plugin{Factor: 1}, []node{{allocatable: amounts{"cpu": 10}}}, []job{
		{minimum: amounts{"cpu": 6}}, {minimum: amounts{"cpu": 6}}, {},
	})
	require.Equal(t, policy.Permit, s.Enqueueable(0, nil))
	require.Equal(t, policy.Permit, s.Enqueueable(1, nil))
	p := v.Journal.Mark()
	s.Enqueued(2)
	s.Enqueued(0)
	require.Equal(t, policy.Reject, s.Enqueueable(1, nil))
	v.Journal.Rollback(p)
	require.Equal(t, policy.Permit, s.Enqueueable(1, nil))
}

func TestSummingLetsOthersGoOn(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	for i := range 2000 {
		b.Node(model.NodeSpec{Name: string(rune('a' + i))})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{Name: "j", Queue: "q", MinResources: sparse(amounts{"cpu": 1})})
	m, err := b.Build()
	require.NoError(t, err)
	asked := 0
	s, err := overcommit.Default().Open(policy.NewView(m, func() bool { asked++; return false }))
	require.NoError(t, err)
	require.Zero(t, asked, "opening sums nothing")
	require.Equal(t, policy.Reject, s.(state).Enqueueable(0, nil))
	require.Positive(t, asked)
}

// TestSumsAreThoseOfTheOpening compares a state that is asked at once with one that is asked after the cluster has changed.
func TestSumsAreThoseOfTheOpening(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.MapOf(rapid.SampledFrom(names), rapid.Map(rapid.IntRange(0, 40), func(n int) float64 { return float64(n) / 10 }))
		b := model.NewBuilder(0)
		b.Dimensions(names)
		nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
		for i := range nodes {
			b.Node(model.NodeSpec{
				Name: string(rune('a' + i)), Allocatable: sparse(drawn.Draw(t, "allocatable")), UsedByOthers: sparse(drawn.Draw(t, "used")),
			})
		}
		b.Queue(model.QueueSpec{Name: "q"})
		phases := []model.Phase{model.PhasePending, model.PhaseInqueue, model.PhaseRunning}
		statuses := []model.Status{model.Pending, model.Running, model.Releasing, model.Allocated}
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			b.Job(model.JobSpec{
				Name: string(rune('a' + i)), Queue: "q", Phase: rapid.SampledFrom(phases).Draw(t, "phase"), MinResources: sparse(drawn.Draw(t, "minimum")),
			})
			b.Group(model.GroupSpec{Request: sparse(drawn.Draw(t, "request"))})
			for range rapid.IntRange(0, 3).Draw(t, "tasks") {
				b.Task(&model.TaskSpec{
					Status: rapid.SampledFrom(statuses).Draw(t, "status"), Node: model.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "node")),
				})
			}
		}
		m, err := b.Build()
		require.NoError(t, err)
		v := policy.NewView(m, nil)
		first, err := overcommit.Default().Open(v)
		require.NoError(t, err)
		later, err := overcommit.Default().Open(v)
		require.NoError(t, err)
		agree := func() {
			for j := range m.Jobs.Len() {
				var l, r policy.Reasons
				require.Equal(t, first.(state).Enqueueable(model.JobID(j), &l), later.(state).Enqueueable(model.JobID(j), &r))
				require.Equal(t, l, r)
			}
		}
		for j := range m.Jobs.Len() {
			first.(state).Enqueueable(model.JobID(j), nil)
		}
		mark := v.Journal.Mark()
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			if n := m.Tasks.Len(); n > 0 {
				task := model.TaskID(rapid.IntRange(0, n-1).Draw(t, "task"))
				v.SetStatus(task, rapid.SampledFrom(statuses).Draw(t, "to"), model.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "on")))
			}
			job := model.JobID(rapid.IntRange(0, m.Jobs.Len()-1).Draw(t, "job"))
			v.SetPhase(job, rapid.SampledFrom(phases).Draw(t, "becomes"))
		}
		admitted := model.JobID(rapid.IntRange(0, m.Jobs.Len()-1).Draw(t, "admitted"))
		first.(state).Enqueued(admitted)
		later.(state).Enqueued(admitted)
		agree()
		v.Journal.Rollback(mark)
		agree()
	})
}

// plain is the vote by the rule, over maps.
func plain(factor float64, nodes []node, inqueue []amounts, minimum amounts) policy.Vote {
	for _, name := range names {
		idle := 0.0
		for _, n := range nodes {
			idle += factor*n.allocatable[name] - n.used[name]
		}
		waiting := 0.0
		for _, m := range inqueue {
			waiting += m[name]
		}
		if name != "pods" && minimum[name] > 0 && waiting+minimum[name] > idle+1e-9 {
			return policy.Reject
		}
	}
	return policy.Permit
}

func TestVotesAreThoseOfTheRuleWhateverWasAdmitted(t *testing.T) {
	drawn := rapid.MapOf(rapid.SampledFrom(names), rapid.Map(rapid.IntRange(0, 12), func(n int) float64 { return float64(n) }))
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]node, rapid.IntRange(1, 3).Draw(t, "nodes"))
		for i := range nodes {
			// Every node has some scalar, because without one usage of scalars is not kept.
			nodes[i] = node{drawn.Draw(t, "allocatable"), drawn.Draw(t, "used")}
			nodes[i].allocatable["pods"] = 9
		}
		jobs := make([]job, rapid.IntRange(1, 6).Draw(t, "jobs"))
		var inqueue []amounts
		for i := range jobs {
			jobs[i].minimum = drawn.Draw(t, "minimum")
			if rapid.Bool().Draw(t, "is in the queue") {
				jobs[i].phase = model.PhaseInqueue
				inqueue = append(inqueue, jobs[i].minimum)
			}
		}
		v, s := open(t, overcommit.Plugin{Factor: 1.5}, nodes, jobs)
		v.Journal.Mark()
		for _, j := range rapid.SliceOf(rapid.IntRange(0, len(jobs)-1)).Draw(t, "asked") {
			vote := s.Enqueueable(model.JobID(j), nil)
			require.Equal(t, plain(1.5, nodes, inqueue, jobs[j].minimum), vote)
			if vote == policy.Permit {
				s.Enqueued(model.JobID(j))
				inqueue = append(inqueue, jobs[j].minimum)
			}
		}
	})
}

func TestVotingAllocatesNothing(t *testing.T) {
	_, s := open(t, overcommit.Default(), []node{{allocatable: amounts{"cpu": 1}}}, []job{{minimum: amounts{"cpu": 6}}, {minimum: amounts{"cpu": 1}}})
	require.Zero(t, testing.AllocsPerRun(10, func() {
		s.Enqueueable(0, nil)
		s.Enqueueable(1, nil)
		s.Enqueued(1)
	}))
}

func BenchmarkVote(b *testing.B) {
	_, s := open(b, overcommit.Default(), []node{{allocatable: amounts{"cpu": 10}}}, []job{{minimum: amounts{"cpu": 6, "memory": 1, "gpu": 1}}})
	for b.Loop() {
		s.Enqueueable(0, nil)
	}
}
