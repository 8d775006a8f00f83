package binpack_test

import (
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/binpack"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// amounts are named quantities in the engine's units.
type amounts = policytest.Amounts

// names are the dimensions of every test cluster, in the order of the snapshot.
var names = []string{"gpu", "cpu", "pods", "memory", "fpga"}

func sparse(a amounts) *model.Amounts { return policytest.Sparse(names, a) }

type node struct{ allocatable, used amounts }

// open returns the scorer of a cluster, or nil if there is none; the tasks are numbered as the requests.
func open(t require.TestingT, p binpack.Plugin, nodes []node, requests []amounts) policy.NodeScorer {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	for i, n := range nodes {
		b.Node(model.NodeSpec{Name: string(rune('a' + i)), Allocatable: sparse(n.allocatable), UsedByOthers: sparse(n.used)})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{Name: "j", Queue: "q"})
	b.Group(model.GroupSpec{})
	for _, r := range requests {
		b.Task(&model.TaskSpec{Node: model.None, Request: sparse(r)})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := p.Open(policy.NewView(m, nil))
	require.NoError(t, err)
	scorer, _ := s.(policy.NodeScorer)
	return scorer
}

func score(t require.TestingT, p binpack.Plugin, n node, request amounts) float64 {
	out := []float64{math.NaN()}
	open(t, p, []node{n}, []amounts{request}).ScoreNodes(0, []model.NodeID{0}, out)
	return out[0]
}

func weighted(change func(*binpack.Plugin)) binpack.Plugin {
	p := binpack.Default()
	change(&p)
	return p
}

func TestScore(t *testing.T) {
	half := node{allocatable: amounts{"cpu": 10, "memory": 10, "gpu": 4}, used: amounts{"cpu": 5}}
	gpu := []binpack.Weight{{Name: "gpu", Weight: 1}}
	for _, story := range []struct {
		name    string
		plugin  binpack.Plugin
		node    node
		request amounts
		want    float64
	}{
		{"a node that the task fills scores 100", binpack.Default(), half, amounts{"cpu": 5, "memory": 10}, 100},
		{"the mean of the requested dimensions counts", binpack.Default(), half, amounts{"cpu": 5, "memory": 5}, 75},
		{"a dimension that is not asked for does not count", binpack.Default(), half, amounts{"cpu": 2.5}, 75},
		{"a request of less than the threshold asks for nothing", binpack.Default(), half, amounts{"cpu": 2.5, "memory": 0.09}, 75},
		{"a dimension without a weight does not count", binpack.Default(), half, amounts{"cpu": 2.5, "gpu": 4, "pods": 1}, 75},
		{"a named dimension counts", binpack.Plugin{Weight: 1, CPU: 1, Resources: gpu}, half, amounts{"cpu": 2.5, "gpu": 1}, 50},
		{"weights are relative", binpack.Plugin{Weight: 1, CPU: 3, Memory: 1}, half, amounts{"cpu": 5, "memory": 5}, 87.5},
		{"the weight of the whole multiplies", weighted(func(p *binpack.Plugin) { p.Weight = 10 }), half, amounts{"cpu": 2.5}, 750},
		{"one dimension without room makes the score 0", binpack.Default(), half, amounts{"cpu": 5.5, "memory": 5}, 0},
		{"a dimension of weight 0 without room does not", binpack.Plugin{Weight: 1, Memory: 1}, half, amounts{"cpu": 50, "memory": 5}, 50},
		{
			"a dimension that the node does not offer scores 0 but weighs",
			binpack.Default(),
			node{allocatable: amounts{"memory": 10}},
			amounts{"cpu": 50, "memory": 5},
			25,
		},
		{"no weight at all scores 0", binpack.Plugin{Weight: 1}, half, amounts{"cpu": 5}, 0},
		{"a best-effort task scores 0", binpack.Default(), half, amounts{"pods": 1}, 0},
		{"weights below 0 count as 1", binpack.Plugin{Weight: 1, CPU: -7, Memory: -1}, half, amounts{"cpu": 5, "memory": 5}, 75},
		{
			"a named weight below 0 counts as 1",
			binpack.Plugin{Weight: 1, CPU: 1, Resources: []binpack.Weight{{Name: "gpu", Weight: -4}}},
			half,
			amounts{"cpu": 5, "gpu": 2},
			75,
		},
		{
			"cpu among the named resources changes nothing",
			binpack.Plugin{Weight: 1, CPU: 1, Memory: 1, Resources: []binpack.Weight{{Name: "cpu", Weight: 9}}},
			half,
			amounts{"cpu": 5, "memory": 5},
			75,
		},
		{
			"of a resource named twice the last weight counts",
			binpack.Plugin{Weight: 1, CPU: 1, Resources: []binpack.Weight{{Name: "gpu", Weight: 5}, {Name: "gpu", Weight: 1}}},
			half,
			amounts{"cpu": 5, "gpu": 2},
			75,
		},
		{
			"a resource that the snapshot does not know changes nothing",
			binpack.Plugin{Weight: 1, CPU: 1, Resources: []binpack.Weight{{Name: "tpu", Weight: 5}}},
			half,
			amounts{"cpu": 5},
			100,
		},
		{"weights without meaning count as 1", binpack.Plugin{Weight: math.NaN(), CPU: math.Inf(1)}, half, amounts{"cpu": 5}, 100},
		{"weights beyond the range of numbers score 0", binpack.Plugin{Weight: 1, CPU: math.MaxFloat64}, half, amounts{"cpu": 5}, 0},
	} {
		t.Run(story.name, func(t *testing.T) {
			require.InDelta(t, story.want, score(t, story.plugin, story.node, story.request), 1e-12)
		})
	}
}

// Recorded as binpack-details: with a negative weight the node without room scores best.
func TestNegativeWeightPrefersTheNodeWithoutRoom(t *testing.T) {
	const gi = 1 << 30
	nodes := []node{
		{allocatable: amounts{"cpu": 10000, "memory": 10 * gi, "pods": 110}},
		{allocatable: amounts{"cpu": 0, "memory": 10 * gi}},
	}
	tasks := []amounts{{"cpu": 5000, "memory": 5 * gi, "pods": 1}, {"cpu": 50000, "memory": 5 * gi, "pods": 1}}
	s := open(t, binpack.Plugin{Weight: -1, CPU: 1, Memory: 1}, nodes, tasks)
	var out [2]float64
	s.ScoreNodes(0, []model.NodeID{0, 1}, out[:])
	require.Equal(t, [2]float64{-50, -25}, out)
	s.ScoreNodes(1, []model.NodeID{0, 1}, out[:])
	require.Equal(t, [2]float64{0, -25}, out)
	require.False(t, math.Signbit(out[0]))
}

func TestWeightZeroScoresNothing(t *testing.T) {
	require.Nil(t, open(t, weighted(func(p *binpack.Plugin) { p.Weight = 0 }), nil, nil))
}

// twin is the score by the formula, over maps.
func twin(p binpack.Plugin, n node, request amounts) float64 {
	weights := amounts{}
	for _, r := range p.Resources {
		weights[r.Name] = r.Weight
	}
	weights["cpu"], weights["memory"] = p.CPU, p.Memory
	sum, of := 0.0, 0.0
	for _, name := range []string{"cpu", "memory", "fpga", "gpu", "pods"} {
		weight, counts := weights[name]
		if weight < 0 {
			weight = 1
		}
		if !counts || weight == 0 || request[name] < 0.1 {
			continue
		}
		of += weight
		if n.allocatable[name] == 0 {
			continue
		}
		if n.used[name]+request[name] > n.allocatable[name] {
			return 0
		}
		sum += (n.used[name] + request[name]) * weight / n.allocatable[name]
	}
	if of == 0 {
		return 0
	}
	return sum / of * 100 * p.Weight
}

func drawAmounts(t *rapid.T, label string) amounts {
	return rapid.MapOf(rapid.SampledFrom(names), rapid.Map(rapid.IntRange(0, 40), func(n int) float64 { return float64(n) / 4 })).Draw(t, label)
}

func drawPlugin(t *rapid.T) binpack.Plugin {
	weight := rapid.Map(rapid.IntRange(-2, 5), func(n int) float64 { return float64(n) })
	p := binpack.Plugin{Weight: rapid.Float64Range(0.5, 3).Draw(t, "weight"), CPU: weight.Draw(t, "cpu"), Memory: weight.Draw(t, "memory")}
	for _, name := range rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "resources") {
		p.Resources = append(p.Resources, binpack.Weight{Name: name, Weight: weight.Draw(t, name)})
	}
	return p
}

func TestScoreIsTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlugin(t)
		nodes := make([]node, rapid.IntRange(1, 4).Draw(t, "nodes"))
		ids, out := make([]model.NodeID, len(nodes)), make([]float64, len(nodes))
		for i := range nodes {
			ids[i] = model.NodeID(i)
			nodes[i] = node{drawAmounts(t, "allocatable"), drawAmounts(t, "used")}
		}
		requests := []amounts{drawAmounts(t, "request"), drawAmounts(t, "other request")}
		s := open(t, p, nodes, requests)
		for task, request := range requests {
			s.ScoreNodes(model.TaskID(task), ids, out)
			for i := range nodes {
				require.InDelta(t, twin(p, nodes[i], request), out[i], 1e-9)
			}
		}
	})
}

func TestFullerNodeNeverScoresLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, request := drawPlugin(t), drawAmounts(t, "request")
		n := node{drawAmounts(t, "allocatable"), drawAmounts(t, "used")}
		fuller := node{n.allocatable, maps.Clone(n.used)}
		fuller.used[rapid.SampledFrom(names).Draw(t, "more of")] += 0.25
		before, after := score(t, p, n, request), score(t, p, fuller, request)
		if after != 0 {
			require.GreaterOrEqual(t, after, before)
		}
		require.LessOrEqual(t, after, 100*p.Weight+1e-9)
	})
}

// table is a cluster of the given size with three dimensions that count.
func table(t require.TestingT, nodes, tasks int) (policy.NodeScorer, []model.NodeID) {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	ids := make([]model.NodeID, nodes)
	for i := range nodes {
		ids[i] = model.NodeID(i)
		b.Node(model.NodeSpec{
			Name:         string(rune('a'+i%26)) + string(rune('0'+i)),
			Allocatable:  sparse(amounts{"cpu": 64000, "memory": 256 << 30, "gpu": 8000, "pods": 110}),
			UsedByOthers: sparse(amounts{"cpu": float64(i % 64000), "memory": 64 << 30, "gpu": 1000 * float64(i%8)}),
		})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{Name: "j", Queue: "q"})
	b.Group(model.GroupSpec{})
	for i := range tasks {
		b.Task(&model.TaskSpec{
			Node: model.None, Request: sparse(amounts{"cpu": float64(100 * (i%40 + 1)), "memory": 4 << 30, "gpu": 1000, "pods": 1}),
		})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := weighted(func(p *binpack.Plugin) { p.Resources = []binpack.Weight{{Name: "gpu", Weight: 3}} }).Open(policy.NewView(m, nil))
	require.NoError(t, err)
	return s.(policy.NodeScorer), ids
}

func TestScoringAllocatesNothing(t *testing.T) {
	s, ids := table(t, 50, 10)
	out := make([]float64, len(ids))
	s.ScoreNodes(0, ids, out)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for task := range model.TaskID(10) {
			s.ScoreNodes(task, ids, out)
		}
	}))
}

func BenchmarkScore1000TasksOn5000Nodes(b *testing.B) {
	s, ids := table(b, 5000, 1000)
	out := make([]float64, len(ids))
	s.ScoreNodes(0, ids, out)
	b.ReportAllocs()
	for b.Loop() {
		for task := range model.TaskID(1000) {
			s.ScoreNodes(task, ids, out)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5e6, "ns/pair")
}
