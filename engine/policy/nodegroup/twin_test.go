package nodegroup_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/nodegroup"
)

// plainAffinity follows the parents by name until one has an affinity or none is new.
func plainAffinity(p nodegroup.Plugin, queues []queue, q int) *model.NodeAffinity {
	seen := map[string]bool{}
	for {
		at := queues[q]
		if at.affinity != nil || !p.Hierarchical || at.name == "root" || seen[at.name] {
			return at.affinity
		}
		seen[at.name] = true
		parent := at.parent
		if parent == "" {
			parent = "root"
		}
		q = slices.IndexFunc(queues, func(other queue) bool { return other.name == parent })
		if q < 0 {
			return nil
		}
	}
}

// plain is the answer by the rules, over the lists as written.
func plain(p nodegroup.Plugin, a *model.NodeAffinity, group string) answer {
	var yes, no model.Terms
	if a != nil && a.Affinity != nil {
		yes = *a.Affinity
	}
	if a != nil && a.AntiAffinity != nil {
		no = *a.AntiAffinity
	}
	none := len(yes.Required)+len(yes.Preferred)+len(no.Required)+len(no.Preferred) == 0
	switch {
	case group == bare && (p.Strict || !none):
		return answer{missing, 0}
	case group == bare:
		return answer{}
	case none:
		return answer{outside, 0}
	}
	want := answer{code: outside}
	if slices.Contains(yes.Required, group) {
		want = answer{0, 100}
	}
	if slices.Contains(yes.Preferred, group) {
		want.code = 0
		want.score += plainPreference(p, yes.Preferred, group)
	}
	if slices.Contains(no.Required, group) {
		want.code = avoided
	}
	if slices.Contains(no.Preferred, group) {
		want = answer{0, -1}
	}
	return want
}

func plainPreference(p nodegroup.Plugin, preferred []string, group string) float64 {
	if !p.PreferredOrder {
		return 50
	}
	last := map[string]int{}
	for i, name := range preferred {
		last[name] = i
	}
	return 50 * float64(len(last)-last[group]) / float64(len(last))
}

var groups = []string{"", "a", "b", "c", "d", "e"}

func drawAffinity(t *rapid.T) *model.NodeAffinity {
	terms := rapid.Ptr(rapid.Custom(func(t *rapid.T) model.Terms {
		list := rapid.SliceOfN(rapid.SampledFrom(groups), 0, 5)
		return model.Terms{Required: list.Draw(t, "required"), Preferred: list.Draw(t, "preferred")}
	}), true)
	return rapid.Ptr(rapid.Custom(func(t *rapid.T) model.NodeAffinity {
		return model.NodeAffinity{Affinity: terms.Draw(t, "affinity"), AntiAffinity: terms.Draw(t, "anti-affinity")}
	}), true).Draw(t, "node affinity")
}

func drawQueues(t *rapid.T) []queue {
	n := rapid.IntRange(1, 12).Draw(t, "queues")
	queues := make([]queue, n)
	for i := range queues {
		queues[i] = queue{name: "q" + strconv.Itoa(i), affinity: drawAffinity(t)}
		queues[i].parent = rapid.SampledFrom([]string{"", "root", "ghost", "q" + strconv.Itoa(rapid.IntRange(0, n-1).Draw(t, "parent"))}).Draw(t, "parent kind")
	}
	if rapid.Bool().Draw(t, "root") {
		queues[0].name = "root"
	}
	return queues
}

func TestAnswersAreThoseOfThePlainRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := nodegroup.Plugin{
			Strict: rapid.Bool().Draw(t, "strict"), PreferredOrder: rapid.Bool().Draw(t, "ordered"), Hierarchical: rapid.Bool().Draw(t, "hierarchical"),
		}
		nodes := append([]string{bare, "unheard of"}, groups...)
		queues := drawQueues(t)
		s := open(t, p, build(t, nodes, queues))
		ids, out := make([]model.NodeID, len(nodes)), make([]float64, len(nodes))
		for n := range nodes {
			ids[n] = model.NodeID(n)
		}
		for q := range queues {
			a := plainAffinity(p, queues, q)
			s.ScoreNodes(model.TaskID(q), ids, out)
			for n, group := range nodes {
				want, got := plain(p, a, group), ask(t, s, q, n)
				require.Equal(t, want.code, got.code)
				require.InDelta(t, want.score, got.score, 1e-12)
				require.InDelta(t, got.score, out[n], 0)
			}
		}
	})
}

// manyQueues is a binary tree in which only the root has an affinity, listed from the leaves up.
func manyQueues(n int) []queue {
	queues := make([]queue, n)
	for i := range queues {
		at := n - 1 - i
		queues[i] = queue{name: "q" + strconv.Itoa(at), parent: "q" + strconv.Itoa((at-1)/2)}
	}
	queues[n-1] = queue{"q0", "", affinity(g("g0"), g("g1", "g2"), nil, g("g3"))}
	return queues
}

// chain is the deepest tree of so many queues, listed from its leaf up.
func chain(n int) []queue {
	queues := manyQueues(n)
	for i := range queues[:n-1] {
		queues[i].parent = queues[i+1].name
	}
	return queues
}

func TestDeepChainInherits(t *testing.T) {
	s := open(t, nodegroup.Plugin{Hierarchical: true}, build(t, []string{"g0"}, chain(50000)))
	require.True(t, s.Fits(0, 0, nil))
}

func manyNodes(n int) ([]string, []model.NodeID) {
	groups, ids := make([]string, n), make([]model.NodeID, n)
	for i := range groups {
		groups[i], ids[i] = "g"+strconv.Itoa(i%20), model.NodeID(i)
	}
	return groups, ids
}

func TestScoringAndFittingAllocateNothing(t *testing.T) {
	groups, ids := manyNodes(50)
	s := open(t, nodegroup.Plugin{Hierarchical: true}, build(t, groups, manyQueues(10)))
	out := make([]float64, len(ids))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		s.ScoreNodes(0, ids, out)
		s.Fits(0, 0, nil)
		s.Fits(0, 7, nil)
	}))
}

func BenchmarkOpenHierarchical10000Queues(b *testing.B) {
	groups, _ := manyNodes(5000)
	v := policy.NewView(build(b, groups, manyQueues(10000)), nil)
	b.ReportAllocs()
	for b.Loop() {
		_, err := nodegroup.Plugin{Hierarchical: true}.Open(v)
		require.NoError(b, err)
	}
}

func BenchmarkScore1000TasksOn5000Nodes(b *testing.B) {
	groups, ids := manyNodes(5000)
	s := open(b, nodegroup.Plugin{Hierarchical: true}, build(b, groups, manyQueues(1000)))
	out := make([]float64, len(ids))
	b.ReportAllocs()
	for b.Loop() {
		for task := range model.TaskID(1000) {
			s.ScoreNodes(task, ids, out)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5e6, "ns/pair")
}

func BenchmarkFit1000TasksOn5000Nodes(b *testing.B) {
	groups, ids := manyNodes(5000)
	s := open(b, nodegroup.Plugin{Hierarchical: true}, build(b, groups, manyQueues(1000)))
	b.ReportAllocs()
	for b.Loop() {
		for task := range model.TaskID(1000) {
			for _, n := range ids {
				s.Fits(task, n, nil)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5e6, "ns/pair")
}
