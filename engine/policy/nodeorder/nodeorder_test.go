package nodeorder_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/nodeorder"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// amounts are named quantities in the engine's units.
type amounts = policytest.Amounts

var names = []string{"cpu", "memory", "nvidia.com/gpu"}

const (
	mi  = 1 << 20
	gpu = "nvidia.com/gpu"
)

// view returns a cluster whose tasks are numbered as the requests; none is on a node.
func view(t require.TestingT, nodes, requests []amounts) *policy.View {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	for i, n := range nodes {
		b.Node(model.NodeSpec{Name: string(rune('a' + i)), Allocatable: policytest.Sparse(names, n)})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{Name: "j", Queue: "q"})
	b.Group(model.GroupSpec{})
	for _, r := range requests {
		b.Task(&model.TaskSpec{Node: model.None, Request: policytest.Sparse(names, r)})
	}
	m, err := b.Build()
	require.NoError(t, err)
	return policy.NewView(m, nil)
}

func open(t require.TestingT, p nodeorder.Plugin, v *policy.View) policy.NodeScorer {
	s, err := p.Open(v)
	require.NoError(t, err)
	return s.(policy.NodeScorer)
}

func TestScores(t *testing.T) {
	least, most := nodeorder.Plugin{LeastRequested: 1}, nodeorder.Plugin{MostRequested: 1}
	balanced := nodeorder.Plugin{BalancedResource: 1}
	large := amounts{"cpu": 4000, "memory": 1000 * mi}
	for name, c := range map[string]struct {
		plugin nodeorder.Plugin
		node   amounts
		// on are the requests of pods on the node.
		on   []amounts
		task amounts
		want float64
	}{
		"least requested is the mean of what stays free":       {least, large, nil, amounts{"cpu": 1000, "memory": 500 * mi}, 62},
		"each dimension is rounded down, then the mean":        {least, amounts{"cpu": 3000, "memory": 3 * mi}, nil, amounts{"cpu": 1000, "memory": 2 * mi}, 49},
		"what a task does not ask for counts as a little":      {least, large, nil, amounts{"cpu": 1000}, 77},
		"so does what pods on the node do not ask for":         {least, large, []amounts{{"cpu": 1000}}, amounts{"cpu": 1000}, 55},
		"best-effort pods count as a little":                   {least, large, []amounts{{}, {}}, amounts{}, 66},
		"more than there is leaves nothing free":               {least, large, []amounts{{"cpu": 4000, "memory": mi}}, amounts{"cpu": 1, "memory": mi}, 49},
		"most requested is the mean of what is asked for":      {most, large, nil, amounts{"cpu": 1000, "memory": 500 * mi}, 37},
		"at most all can be asked for":                         {most, large, []amounts{{"cpu": 4000, "memory": mi}}, amounts{"cpu": 1, "memory": mi}, 50},
		"a dimension that the node lacks is left out":          {most, amounts{"cpu": 4000}, nil, amounts{"cpu": 1000, "memory": mi}, 25},
		"a node without either scores nothing":                 {least, amounts{gpu: 8000}, nil, amounts{"cpu": 1000}, 0},
		"balance is a hundred less half the distance":          {balanced, large, nil, amounts{"cpu": 3000, "memory": 500 * mi}, 87},
		"balance counts what is asked for as it is":            {balanced, large, []amounts{{"cpu": 1000}}, amounts{"cpu": 1000}, 75},
		"balance of more than there is counts all there is":    {balanced, large, []amounts{{"cpu": 4000}}, amounts{"cpu": 1000, "memory": 1000 * mi}, 100},
		"balance of one dimension is full":                     {balanced, amounts{"cpu": 4000}, nil, amounts{"cpu": 3000}, 100},
		"balance of a best-effort task is nothing":             {balanced, large, nil, amounts{}, 0},
		"accelerators count for tasks that ask for them":       {balanced, amounts{"cpu": 4000, "memory": 4000, gpu: 4000}, nil, amounts{"cpu": 2000, "memory": 2000, gpu: 4000}, 76},
		"they do not count for others":                         {balanced, amounts{"cpu": 4000, "memory": 4000, gpu: 4000}, []amounts{{gpu: 4000}}, amounts{"cpu": 2000, "memory": 2000}, 100},
		"a node without accelerators is balanced without them": {balanced, amounts{"cpu": 4000, "memory": 4000}, nil, amounts{"cpu": 2000, gpu: 1000}, 75},
		"the weights of Volcano":                               {nodeorder.Default(), large, nil, amounts{"cpu": 1000, "memory": 500 * mi}, 300 + 62 + 87},
		"weights multiply, below zero too": {
			nodeorder.Plugin{LeastRequested: -2, MostRequested: 3, BalancedResource: 2},
			large, nil,
			amounts{"cpu": 1000, "memory": 500 * mi},
			-2*62 + 3*37 + 2*87,
		},
		"amounts near the limit do not overflow": {least, amounts{"cpu": 1 << 62, "memory": 1 << 62}, nil, amounts{"cpu": 1 << 61, "memory": 1 << 61}, 50},
	} {
		v := view(t, []amounts{c.node}, append(c.on, c.task))
		for i := range c.on {
			v.SetStatus(model.TaskID(i), model.Running, 0)
		}
		out := []float64{-1}
		open(t, c.plugin, v).ScoreNodes(model.TaskID(len(c.on)), []model.NodeID{0}, out)
		require.Equal(t, c.want, out[0], name)
	}
}

func TestPreferencesAreComparedWithTheHighestAmongTheNodes(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	for _, n := range []string{"a", "b", "c", "d"} {
		b.Node(model.NodeSpec{Name: n})
	}
	b.NodeSet(model.NodeSetSpec{Name: "soft", Nodes: []uint32{0, 1, 2, 3}, Preferences: []model.PreferenceSpec{
		{Untolerated: 3, Affinity: 30, Nodes: []uint32{0}}, {Untolerated: 1, Affinity: 80, Nodes: []uint32{1, 2}},
	}})
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{Name: "j", Queue: "q"})
	b.Group(model.GroupSpec{NodeSet: "soft"})
	b.Task(&model.TaskSpec{Node: model.None})
	m, err := b.Build()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		plugin nodeorder.Plugin
		nodes  []model.NodeID
		want   []float64
	}{
		"soft taints":     {nodeorder.Plugin{TaintToleration: 2}, []model.NodeID{0, 1, 3}, []float64{0, 134, 200}},
		"fewer of them":   {nodeorder.Plugin{TaintToleration: 1}, []model.NodeID{3, 2}, []float64{100, 0}},
		"preferred terms": {nodeorder.Plugin{NodeAffinity: 2}, []model.NodeID{0, 1, 3}, []float64{74, 200, 0}},
		"none of them":    {nodeorder.Plugin{NodeAffinity: 2, TaintToleration: 3}, []model.NodeID{3}, []float64{300}},
	} {
		out := make([]float64, len(c.nodes))
		open(t, c.plugin, policy.NewView(m, nil)).ScoreNodes(0, c.nodes, out)
		require.Equal(t, c.want, out, name)
	}
}

func TestContainersThatStateNoRequestCountEach(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	b.Node(model.NodeSpec{Name: "a", Allocatable: policytest.Sparse(names, amounts{"cpu": 4000, "memory": 4000 * mi})})
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{Name: "j", Queue: "q"})
	b.Group(model.GroupSpec{
		Request: policytest.Sparse(names, amounts{"cpu": 500, "memory": 600 * mi}), Unstated: model.Unstated{CPU: 5, Memory: 2},
	})
	b.Task(&model.TaskSpec{Node: 0, Status: model.Running})
	b.Task(&model.TaskSpec{Node: model.None})
	m, err := b.Build()
	require.NoError(t, err)
	out := []float64{0}
	open(t, nodeorder.Plugin{MostRequested: 1}, policy.NewView(m, nil)).ScoreNodes(1, []model.NodeID{0}, out)
	require.Equal(t, 50.0, out[0], "2 x (500m + 5 x 100m) and 2 x (600Mi + 2 x 200Mi)")
}

// book is a policy.NodeBook of one node.
type book struct{ cpu, memory float64 }

func (b book) Requested(_ model.NodeID, d int) float64 { return []float64{b.cpu, b.memory, 0}[d] }

func (b book) Stated(model.NodeID) (cpu, memory float64) { return b.cpu + 500, b.memory }

func TestTheBookOfTheCallerCounts(t *testing.T) {
	v := view(t, []amounts{{"cpu": 4000, "memory": 1000 * mi}}, []amounts{{"cpu": 1000, "memory": 500 * mi}})
	v.Book = book{500, 0}
	out := []float64{-1}
	open(t, nodeorder.Plugin{LeastRequested: 1}, v).ScoreNodes(0, []model.NodeID{0}, out)
	require.Equal(t, 50.0, out[0])
	open(t, nodeorder.Plugin{BalancedResource: 1}, v).ScoreNodes(0, []model.NodeID{0}, out)
	require.Equal(t, 93.0, out[0])
}

// Scores after tasks have moved, and after that is undone, are those of a plugin that is opened then.
func TestScoresFollowTheTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []amounts{{"cpu": 8000, "memory": 4000 * mi}, {"cpu": 4000, "memory": 8000 * mi}}
		requests := rapid.SliceOfN(rapid.SampledFrom([]amounts{{}, {"cpu": 500}, {"memory": 300 * mi}, {"cpu": 100, "memory": mi}}), 2, 6).
			Draw(t, "requests")
		v := view(t, nodes, requests)
		scorer := open(t, nodeorder.Plugin{LeastRequested: 1, MostRequested: 1000, BalancedResource: 1000000}, v)
		scores := func(s policy.NodeScorer) []float64 {
			out := make([]float64, 2)
			s.ScoreNodes(0, []model.NodeID{0, 1}, out)
			return out
		}
		fresh := func() []float64 {
			return scores(open(t, nodeorder.Plugin{LeastRequested: 1, MostRequested: 1000, BalancedResource: 1000000}, v))
		}
		move := func() {
			task := model.TaskID(rapid.IntRange(0, len(requests)-1).Draw(t, "task"))
			from, node := v.Status(task), v.NodeOf(task)
			to := rapid.SampledFrom([]model.Status{model.Pending, model.Pipelined, model.Running, model.Releasing, model.Succeeded}).
				Draw(t, "status")
			v.SetStatus(task, to, model.NodeID(rapid.IntRange(0, 1).Draw(t, "node")))
			scorer.(policy.StatusHandler).Moved(task, from, node)
			if rapid.Bool().Draw(t, "ask") {
				require.Equal(t, fresh(), scores(scorer))
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			move()
		}
		before := fresh()
		at := v.Journal.Mark()
		for range rapid.IntRange(0, 6).Draw(t, "moves") {
			move()
		}
		v.Journal.Rollback(at)
		require.Equal(t, before, scores(scorer))
		v.Journal.Release()
	})
}

func TestScoringAllocatesNothing(t *testing.T) {
	v := view(t, []amounts{{"cpu": 4000, "memory": 1000 * mi}}, []amounts{{"cpu": 1000}})
	scorer, out := open(t, nodeorder.Default(), v), []float64{0}
	nodes := []model.NodeID{0}
	require.Zero(t, testing.AllocsPerRun(100, func() { scorer.ScoreNodes(0, nodes, out) }))
}
