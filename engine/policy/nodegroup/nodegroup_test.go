package nodegroup_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/nodegroup"
)

// queue is a queue with one task, whose number is the queue's position.
type queue struct {
	name, parent string
	affinity     *model.NodeAffinity
}

// bare is the group of a node without the label; "" is a label without text.
const bare = "(no label)"

func build(t require.TestingT, groups []string, queues []queue) *model.Model {
	b := model.NewBuilder(0)
	for i, group := range groups {
		spec := model.NodeSpec{Name: string(rune('a' + i))}
		if group != bare {
			spec.Group, spec.Labelled = group, true
		}
		b.Node(spec)
	}
	for _, q := range queues {
		b.Queue(model.QueueSpec{Name: q.name, Parent: q.parent, Affinity: q.affinity})
	}
	for _, q := range queues {
		b.Job(model.JobSpec{Name: "job of " + q.name, Queue: q.name})
		b.Group(model.GroupSpec{})
		b.Task(&model.TaskSpec{Node: model.None})
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

type state interface {
	policy.Predicater
	policy.NodeScorer
	policy.Warner
}

func open(t require.TestingT, p nodegroup.Plugin, m *model.Model) state {
	s, err := p.Open(policy.NewView(m, nil))
	require.NoError(t, err)
	require.Implements(t, (*state)(nil), s)
	return s.(state)
}

// answer is the verdict about a task and a node; code is 0 if the node fits.
type answer struct {
	code  policy.Code
	score float64
}

func ask(t require.TestingT, s state, task, node int) answer {
	var a answer
	var why policy.Reasons
	fits := s.Fits(model.TaskID(task), model.NodeID(node), &why)
	if fits {
		require.Empty(t, why.List)
	} else {
		require.Len(t, why.List, 1)
		require.Equal(t, nodegroup.Name, why.List[0].Plugin)
		a.code = why.List[0].Code
	}
	require.Equal(t, fits, s.Fits(model.TaskID(task), model.NodeID(node), nil))
	out := []float64{-7}
	s.ScoreNodes(model.TaskID(task), []model.NodeID{model.NodeID(node)}, out)
	a.score = out[0]
	return a
}

func affinity(required, preferred, antiRequired, antiPreferred []string) *model.NodeAffinity {
	return &model.NodeAffinity{
		Affinity:     &model.Terms{Required: required, Preferred: preferred},
		AntiAffinity: &model.Terms{Required: antiRequired, Preferred: antiPreferred},
	}
}

func g(names ...string) []string { return names }

const (
	missing = policy.NodeGroupMissing
	outside = policy.NodeGroupNotInAffinity
	avoided = policy.NodeGroupAntiAffinity
)

func TestOneQueue(t *testing.T) {
	loose, ordered := nodegroup.Plugin{}, nodegroup.Plugin{Strict: true, PreferredOrder: true}
	strict := nodegroup.Default()
	for _, story := range []struct {
		name     string
		plugin   nodegroup.Plugin
		affinity *model.NodeAffinity
		group    string
		want     answer
	}{
		{"a required group fits", strict, affinity(g("g"), nil, nil, nil), "g", answer{0, 100}},
		{"another group does not", strict, affinity(g("g"), nil, nil, nil), "h", answer{outside, 0}},
		{"a preferred group alone is a filter", strict, affinity(nil, g("g"), nil, nil), "h", answer{outside, 0}},
		{"a preferred group fits", strict, affinity(nil, g("g"), nil, nil), "g", answer{0, 50}},
		{"required and preferred add up", strict, affinity(g("g"), g("g"), nil, nil), "g", answer{0, 150}},
		{"a required anti-affinity refuses", strict, affinity(nil, nil, g("g"), nil), "g", answer{avoided, 0}},
		{"a required anti-affinity alone admits no other group", strict, affinity(nil, nil, g("g"), nil), "h", answer{outside, 0}},
		{"a required anti-affinity overrides affinity, not its score", strict, affinity(g("g"), g("g"), g("g"), nil), "g", answer{avoided, 150}},
		{"a preferred anti-affinity admits", strict, affinity(nil, nil, nil, g("g")), "g", answer{0, -1}},
		{"a preferred anti-affinity overrides all others", strict, affinity(g("g"), g("g"), g("g"), g("g")), "g", answer{0, -1}},
		{"a node without a group does not fit", strict, affinity(g("g"), nil, nil, nil), bare, answer{missing, 0}},
		{"nor does it if the plugin is not strict", loose, affinity(g("g"), nil, nil, nil), bare, answer{missing, 0}},
		{"nor to a queue without affinity", strict, nil, bare, answer{missing, 0}},
		{"it does if neither is strict", loose, nil, bare, answer{0, 0}},
		{"an affinity without groups is none", loose, affinity(nil, nil, nil, nil), bare, answer{0, 0}},
		{"a queue without affinity does not fit a group", loose, nil, "g", answer{outside, 0}},
		{"a label without text is a group", strict, affinity(g(""), nil, nil, nil), "", answer{0, 100}},
		{"a label without text is not in affinity by itself", strict, affinity(g("g"), nil, nil, nil), "", answer{outside, 0}},
		{"without order all preferred groups score alike", strict, affinity(nil, g("f", "g"), nil, nil), "g", answer{0, 50}},
		{"the first preferred group scores 50", ordered, affinity(nil, g("g", "h"), nil, nil), "g", answer{0, 50}},
		{"the second of three scores two thirds of it", ordered, affinity(nil, g("f", "g", "h"), nil, nil), "g", answer{0, 100. / 3}},
		{"order adds to required", ordered, affinity(g("g"), g("f", "g"), nil, nil), "g", answer{0, 125}},
		{"a repeated group takes its last position", ordered, affinity(nil, g("g", "h", "g"), nil, nil), "g", answer{0, 0}},
		{"which may lie behind the number of groups", ordered, affinity(nil, g("g", "g", "h"), nil, nil), "h", answer{0, 0}},
		{"a repetition in another list moves nothing", ordered, affinity(g("f", "g"), g("g", "h"), nil, nil), "g", answer{0, 150}},
	} {
		t.Run(story.name, func(t *testing.T) {
			s := open(t, story.plugin, build(t, []string{story.group}, []queue{{"q", "", story.affinity}}))
			got := ask(t, s, 0, 0)
			require.Equal(t, story.want.code, got.code)
			require.InDelta(t, story.want.score, got.score, 1e-12)
		})
	}
}

// Recorded as nodegroup-anti-only.
func TestAntiAffinityAloneAdmitsNoNode(t *testing.T) {
	s := open(t, nodegroup.Default(), build(t, []string{"g1", "g2", bare}, []queue{
		{"a", "", &model.NodeAffinity{AntiAffinity: &model.Terms{Required: g("g1")}}},
		{"b", "", affinity(g("g1"), nil, g("g2"), g("g2"))},
		{"c", "", &model.NodeAffinity{Affinity: &model.Terms{Preferred: g("g1")}}},
	}))
	want := [3][3]answer{
		{{avoided, 0}, {outside, 0}, {missing, 0}},
		{{0, 100}, {0, -1}, {missing, 0}},
		{{0, 50}, {outside, 0}, {missing, 0}},
	}
	for task := range want {
		for node := range want[task] {
			require.Equal(t, want[task][node], ask(t, s, task, node), "task %d node %d", task, node)
		}
	}
	var warnings []policy.Warning
	s.Warnings(func(w policy.Warning) { warnings = append(warnings, w) })
	require.Len(t, warnings, 1)
	require.Equal(t, policy.AntiAffinityAdmitsNothing, warnings[0].Code)
	require.Equal(t, "queues[0].node_group_affinity.anti_affinity.required", warnings[0].Path)
	require.Equal(t, model.QueueID(0), warnings[0].Queue)
}

// Recorded as nodegroup-no-affinity-not-strict.
func TestNotStrictStillRefusesLabelledNodesToQueuesWithoutAffinity(t *testing.T) {
	s := open(t, nodegroup.Plugin{}, build(t, []string{"g1", bare}, []queue{{"a", "", nil}}))
	require.Equal(t, answer{outside, 0}, ask(t, s, 0, 0))
	require.Equal(t, answer{0, 0}, ask(t, s, 0, 1))
}

func TestAffinityThatAdmitsOnlyUnwantedGroupsIsNoWarning(t *testing.T) {
	s := open(t, nodegroup.Default(), build(t, nil, []queue{
		{"anti-affinity of both kinds", "", affinity(nil, nil, g("g"), g("h"))},
		{"preferred anti-affinity", "", affinity(nil, nil, nil, g("h"))},
		{"no lists", "", affinity(nil, nil, nil, nil)},
		{"none", "", nil},
	}))
	var free []model.QueueID
	s.Warnings(func(w policy.Warning) {
		require.Equal(t, policy.NoAffinityFitsNothing, w.Code)
		free = append(free, w.Queue)
	})
	require.Equal(t, []model.QueueID{2, 3}, free, "strict, no node fits a queue without an affinity")
}

func TestInheritance(t *testing.T) {
	at := func(group string) *model.NodeAffinity { return affinity(g(group), nil, nil, nil) }
	inherits := nodegroup.Plugin{Strict: true, Hierarchical: true}
	for _, story := range []struct {
		name   string
		plugin nodegroup.Plugin
		queues []queue
		fits   bool
	}{
		{"not by default", nodegroup.Default(), []queue{{"q", "p", nil}, {"p", "", at("g")}}, false},
		{"from the parent", inherits, []queue{{"q", "p", nil}, {"p", "", at("g")}}, true},
		{"from the nearest ancestor", inherits, []queue{{"q", "p", nil}, {"p", "o", nil}, {"o", "n", at("g")}, {"n", "", at("h")}}, true},
		{"not if the queue has its own", inherits, []queue{{"q", "p", at("h")}, {"p", "", at("g")}}, false},
		{"from root where no parent is named", inherits, []queue{{"q", "", nil}, {"root", "", at("g")}}, true},
		{"not past an affinity without lists", inherits, []queue{{"q", "p", nil}, {"p", "o", &model.NodeAffinity{}}, {"o", "", at("g")}}, false},
		{"not past a parent that does not exist", inherits, []queue{{"q", "ghost", nil}, {"root", "", at("g")}}, false},
		{"not past root", inherits, []queue{{"q", "", nil}, {"root", "p", nil}, {"p", "", at("g")}}, false},
		{"not by root itself", inherits, []queue{{"root", "p", nil}, {"p", "", at("g")}}, false},
		{"from a queue on a cycle", inherits, []queue{{"q", "p", nil}, {"p", "o", nil}, {"o", "n", nil}, {"n", "p", at("g")}}, true},
		{"from nowhere on a cycle of none", inherits, []queue{{"q", "p", nil}, {"p", "q", nil}, {"o", "q", at("g")}}, false},
		{"from nowhere below itself", inherits, []queue{{"q", "q", nil}, {"root", "", at("g")}}, false},
	} {
		t.Run(story.name, func(t *testing.T) {
			s := open(t, story.plugin, build(t, []string{"g"}, story.queues))
			require.Equal(t, story.fits, s.Fits(0, 0, nil))
		})
	}
}

func TestReasonNamesTheQueueThatWroteTheAffinity(t *testing.T) {
	s := open(t, nodegroup.Plugin{Hierarchical: true}, build(t, []string{"h", bare}, []queue{
		{"q", "p", nil}, {"p", "", affinity(g("g"), nil, nil, nil)}, {"alone", "", nil},
	}))
	for _, c := range []struct {
		task  model.TaskID
		node  model.NodeID
		queue model.QueueID
	}{{0, 0, 1}, {0, 1, 1}, {2, 0, 2}} {
		var why policy.Reasons
		require.False(t, s.Fits(c.task, c.node, &why))
		require.Equal(t, c.queue, why.List[0].Queue)
	}
}

func TestOpenStopsWhenAsked(t *testing.T) {
	m := build(t, nil, manyQueues(2000))
	_, err := nodegroup.Default().Open(policy.NewView(m, func() bool { return true }))
	require.ErrorIs(t, err, policy.ErrStopped)
}
