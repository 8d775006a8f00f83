package hdrf_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/policytest"
)

func queue(name, path, weights string) model.QueueSpec {
	return model.QueueSpec{Name: name, Weight: 1, Hierarchy: &model.Hierarchy{Path: path, Weights: weights}}
}

func open(t require.TestingT, v *policy.View) *hdrf.State {
	state, err := hdrf.Plugin{}.Open(v)
	require.NoError(t, err)
	return state.(*hdrf.State)
}

func held(name, queue string, tasks ...policytest.Amounts) policytest.Job {
	j := policytest.Job{Name: name, Queue: queue}
	for _, request := range tasks {
		j.Tasks = append(j.Tasks, policytest.Tasks{Status: model.Running, Request: request})
	}
	return j
}

// wanting adds a pending task of 5 CPUs, and what else is given, so that the job is not satisfied.
func wanting(j policytest.Job, more ...policytest.Amounts) policytest.Job {
	for _, request := range append(more, policytest.Amounts{"cpu": 5}) {
		j.Tasks = append(j.Tasks, policytest.Tasks{Request: request})
	}
	return j
}

func TestHdrfTakesPartInQueuesAndJobs(t *testing.T) {
	s := open(t, policytest.Cluster{}.View(t))
	require.Implements(t, (*policy.QueueOrderer)(nil), s)
	require.Implements(t, (*policy.JobOrderer)(nil), s)
	require.Implements(t, (*policy.Reclaimer)(nil), s)
	require.Implements(t, (*policy.Preemptor)(nil), s)
	require.Implements(t, (*policy.JobSharer)(nil), s)
	require.Implements(t, (*policy.TreeSharer)(nil), s)
	require.Implements(t, (*policy.EventHandler)(nil), s)
	require.Implements(t, (*policy.Warner)(nil), s)
	require.NotImplements(t, (*policy.Sharer)(nil), s)
	require.Equal(t, "drf", hdrf.Plugin{}.Name())
}

// drawing shows the tree, a node a line: name, weight, share, and * if saturated.
func drawing(s *hdrf.State) string {
	var text strings.Builder
	nodes := s.Nodes()
	var draw func(i, depth int)
	draw = func(i, depth int) {
		n := nodes[i]
		text.WriteString(strings.Repeat(" ", depth) + n.Name + " " + strconv.FormatFloat(n.Weight, 'g', 4, 64) + " " +
			strconv.FormatFloat(n.Share, 'g', 4, 64))
		if n.Saturated {
			text.WriteString(" *")
		}
		text.WriteString("\n")
		for k := i + 1; k < len(nodes); k++ {
			if nodes[k].Parent == i {
				draw(k, depth+1)
			}
		}
	}
	draw(0, 0)
	return text.String()
}

func TestTree(t *testing.T) {
	ten := policytest.Amounts{"cpu": 10, "gpu": 10}
	for name, c := range map[string]struct {
		total  policytest.Amounts
		queues []model.QueueSpec
		jobs   []policytest.Job
		want   string
	}{
		"no jobs: a root that was never computed": {
			queues: []model.QueueSpec{queue("q", "root/q", "1/2")},
			want:   "root 1 0\n",
		},
		"a queue without hierarchy hangs its jobs under the root": {
			total: ten, queues: policytest.Queues("q"), jobs: []policytest.Job{wanting(held("a", "q", policytest.Amounts{"cpu": 1}))},
			want: "root 1 0.1\n a 1 0.1\n",
		},
		"the first part of a path is the root, whatever it says, and its weight is ignored": {
			total: ten, queues: []model.QueueSpec{queue("q", "whatever/eng", "7/2")}, jobs: []policytest.Job{wanting(held("a", "q"))},
			want: "root 1 0\n eng 2 0\n  a 1 0\n",
		},
		"parts may be empty, and a leaf may be named as a part": {
			total: ten, queues: []model.QueueSpec{queue("q", "/", "/3"), queue("p", "root", "1")},
			jobs: []policytest.Job{held("a", "q"), wanting(held("x", "p", policytest.Amounts{"cpu": 1}))},
			want: "root 1 0.1\n  3 0\n  a 1 0\n x 1 0.1\n",
		},
		"queues may share nodes, and lie within each other's path": {
			total:  ten,
			queues: []model.QueueSpec{queue("long", "root/eng/dev", "1/2/8"), queue("short", "root/eng", "1/2")},
			jobs:   []policytest.Job{wanting(held("a", "short", policytest.Amounts{"cpu": 1})), wanting(held("b", "long", policytest.Amounts{"cpu": 2}))},
			want:   "root 1 0.2\n eng 2 0.2\n  dev 8 0.2\n   b 1 0.2\n  a 1 0.1\n",
		},
		"children that are not saturated are scaled to the least share": {
			total:  ten,
			queues: []model.QueueSpec{queue("a", "root/n/a", "1/1/1"), queue("b", "root/n/b", "1/1/9")},
			jobs:   []policytest.Job{wanting(held("a", "a", policytest.Amounts{"cpu": 2})), wanting(held("b", "b", policytest.Amounts{"cpu": 1, "gpu": 4}), policytest.Amounts{"gpu": 1}), wanting(held("c", "b"))},
			want:   "root 1 0.25\n n 1 0.25\n  a 1 0.2\n   a 1 0.2\n  b 9 0.4\n   b 1 0.4\n   c 1 0\n",
		},
		"saturated children are added as they are": {
			total:  ten,
			queues: []model.QueueSpec{queue("a", "root/n/a", "1/1/1"), queue("b", "root/n/b", "1/1/1")},
			jobs:   []policytest.Job{wanting(held("a", "a", policytest.Amounts{"cpu": 2})), held("b", "b", policytest.Amounts{"cpu": 5})},
			want:   "root 1 0.7\n n 1 0.7\n  a 1 0.2\n   a 1 0.2\n  b 1 0.5 *\n   b 1 0.5 *\n",
		},
		"a job that holds nothing is never saturated": {
			total: ten, queues: []model.QueueSpec{queue("q", "root/q", "1/1")}, jobs: []policytest.Job{held("a", "q"), held("b", "q", policytest.Amounts{"cpu": 1})},
			want: "root 1 0.1\n q 1 0.1\n  a 1 0\n  b 1 0.1 *\n",
		},
		"a job that holds something is saturated if no node offers what it asks for": {
			total: policytest.Amounts{"cpu": 10}, queues: []model.QueueSpec{queue("q", "root/q", "1/1")},
			jobs: []policytest.Job{wanting(held("a", "q", policytest.Amounts{"cpu": 1, "pods": 1}))},
			want: "root 1 0.1 *\n q 1 0.1 *\n  a 1 0.1 *\n",
		},
		"a dimension that is used up saturates all who hold and want some of it, but not those who want none": {
			total:  ten,
			queues: []model.QueueSpec{queue("q", "root/q", "1/1")},
			jobs:   []policytest.Job{wanting(held("a", "q", policytest.Amounts{"gpu": 10})), wanting(held("b", "q", policytest.Amounts{"cpu": 1}))},
			want:   "root 1 1\n q 1 1\n  a 1 1 *\n  b 1 0.1\n",
		},
		"weights below 1 and what is no number count as 1, and weights may be endless": {
			total: ten, queues: []model.QueueSpec{queue("q", "r/a/b/c/d/e/f", "0/0.5/x/-1e999/1e999/NaN/1.5")}, jobs: []policytest.Job{held("j", "q")},
			want: "root 1 0\n a 1 0\n  b 1 0\n   c 1 0\n    d +Inf 0\n     e 1 0\n      f 1.5 0\n       j 1 0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, drawing(open(t, policytest.Cluster{Total: c.total, Queues: c.queues, Jobs: c.jobs}.View(t))))
		})
	}
}

func TestNodesShowRequestAndAccount(t *testing.T) {
	v := policytest.Cluster{
		Total: policytest.Amounts{"cpu": 10, "gpu": 4}, Queues: []model.QueueSpec{queue("q", "root/q", "1/1")},
		Jobs: []policytest.Job{wanting(held("a", "q", policytest.Amounts{"gpu": 2}))},
	}.View(t)
	nodes := open(t, v).Nodes()
	require.Len(t, nodes, 3)
	leaf, gpu := nodes[2], 2
	require.Equal(t, []any{1, "a", model.JobID(0), gpu}, []any{leaf.Parent, leaf.Name, leaf.Job, leaf.Dominant})
	require.Equal(t, v.Account(0).Total, leaf.Request)
	require.Equal(t, v.Account(0).Allocated, leaf.Allocated)
	require.Equal(t, []any{0, "q", model.JobID(model.None), gpu}, []any{nodes[1].Parent, nodes[1].Name, nodes[1].Job, nodes[1].Dominant})
	require.Equal(t, []float64{0, 0, 0}, nodes[1].Request.V)
	require.Equal(t, leaf.Allocated, nodes[0].Allocated)
	require.Equal(t, -1, nodes[0].Parent)
}

func TestWhatCannotBeATreeIsNamed(t *testing.T) {
	long := strings.Repeat("/", 1_000_000)
	for name, c := range map[string]struct {
		queues []model.QueueSpec
		want   []model.Violation
	}{
		"fewer weights than parts": {
			queues: []model.QueueSpec{queue("fine", "root/a", "1/2"), queue("q", "root/a/b", "1/2")},
			want:   []model.Violation{{Path: "queues[1].fair_share_hierarchy.weights", Detail: "2 weights for a path of 3 parts"}},
		},
		"no weights at all": {
			queues: []model.QueueSpec{queue("fine", "", ""), queue("q", "root/a", "")},
			want:   []model.Violation{{Path: "queues[1].fair_share_hierarchy.weights", Detail: "1 weights for a path of 2 parts"}},
		},
		"a path without end, with and without jobs": {
			queues: []model.QueueSpec{queue("idle", long, ""), queue("q", long, long)},
			want: []model.Violation{
				{Path: "queues[0].fair_share_hierarchy.path", Detail: "1000001 parts, at most 64 are possible"},
				{Path: "queues[1].fair_share_hierarchy.path", Detail: "1000001 parts, at most 64 are possible"},
			},
		},
		"more weights than parts, and short weights of a queue without jobs, change nothing": {
			queues: []model.QueueSpec{queue("idle", "root/a/b", "1"), queue("q", "root/a", "1/2"+long)},
		},
		"as deep as possible": {
			queues: []model.QueueSpec{queue("q", strings.Repeat("/", hdrf.MaxParts-1), strings.Repeat("/", hdrf.MaxParts-1))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := []policytest.Job{held("a", "q", policytest.Amounts{"cpu": 1})}
			if c.queues[0].Name == "fine" {
				jobs = append(jobs, held("b", "fine"))
			}
			_, err := hdrf.Plugin{}.Open(policytest.Cluster{Total: policytest.Amounts{"cpu": 1}, Queues: c.queues, Jobs: jobs}.View(t))
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			var faults *model.Error
			require.ErrorAs(t, err, &faults)
			require.Equal(t, c.want, faults.Violations)
		})
	}
}

func TestOfConflictingWeightsTheOneWhoseJobComesFirstCounts(t *testing.T) {
	v := policytest.Cluster{
		Queues: []model.QueueSpec{
			queue("x", "root/n/x", "1/2/0.5"), queue("y", "root/n/y", "1/3/1"), queue("z", "root/n", "1/2"), queue("idle", "root/n", "1/9"),
		},
		Jobs: []policytest.Job{held("b", "x"), held("a", "y"), held("c", "z")},
	}.View(t)
	s := open(t, v)
	require.Equal(t, "root 1 0\n n 3 0\n  y 1 0\n   a 1 0\n  x 1 0\n   b 1 0\n  c 1 0\n", drawing(s))
	var warnings []policy.Warning
	s.Warnings(func(w policy.Warning) { warnings = append(warnings, w) })
	warning := func(q model.QueueID, text string) policy.Warning {
		return policy.Warning{
			Code: policy.HierarchyWeightIgnored, Path: "queues[" + strconv.Itoa(int(q)) + "].fair_share_hierarchy.weights", Text: text, Queue: q,
		}
	}
	require.Equal(t, []policy.Warning{
		warning(0, "weight 3 of the path is below 1 or not a number, and counts as 1"),
		warning(0, "weight 2 of the path is ignored: an earlier job's queue weighs that node differently"),
		warning(2, "weight 2 of the path is ignored: an earlier job's queue weighs that node differently"),
	}, warnings)
}

func TestOrderOfQueues(t *testing.T) {
	v := policytest.Cluster{
		Total: policytest.Amounts{"cpu": 100, "gpu": 100},
		Queues: []model.QueueSpec{
			queue("empty", "root/empty", "1/1"),
			queue("a tenth", "root/tenth", "1/1"),
			queue("a fifth of weight 4", "root/fifth", "1/4"),
			queue("satisfied", "root/satisfied", "1/100"),
			queue("child of the tenth", "root/tenth/child", "1/1/1"),
			queue("no jobs", "root/nobody/nothing", "1/1/1"),
			queue("no jobs either", "root/none", "1/1"),
			{Name: "no hierarchy"},
			queue("equal", "root/equal", "1/1"),
		},
		Jobs: []policytest.Job{
			wanting(held("e", "empty")), wanting(held("t", "a tenth", policytest.Amounts{"cpu": 5})), wanting(held("f", "a fifth of weight 4", policytest.Amounts{"cpu": 20})),
			held("s", "satisfied", policytest.Amounts{"gpu": 1}), wanting(held("c", "child of the tenth", policytest.Amounts{"cpu": 5})), wanting(held("n", "no hierarchy")),
			wanting(held("q", "equal", policytest.Amounts{"cpu": 10})),
		},
	}.View(t)
	s := open(t, v)
	for _, pair := range []struct {
		first, then string
		same        bool
	}{
		{first: "empty", then: "a tenth"},
		{first: "empty", then: "a fifth of weight 4"},
		{first: "a fifth of weight 4", then: "a tenth"},
		{first: "a tenth", then: "satisfied"},
		{first: "a tenth", then: "child of the tenth", same: true},
		{first: "a tenth", then: "no hierarchy", same: true},
		{first: "a tenth", then: "equal", same: true},
		{first: "a tenth", then: "no jobs"},
		{first: "no jobs", then: "satisfied"},
		{first: "no jobs", then: "no jobs either", same: true},
		{first: "empty", then: "no jobs"},
	} {
		l, r := policytest.QueueID(t, v, pair.first), policytest.QueueID(t, v, pair.then)
		want := -1
		if pair.same {
			want = 0
		}
		require.Equal(t, want, s.CompareQueues(l, r), "%s before %s", pair.first, pair.then)
		require.Equal(t, -want, s.CompareQueues(r, l), "%s before %s", pair.first, pair.then)
	}
}

func TestReclaimLooksAtEachCandidateByItself(t *testing.T) {
	cpu := policytest.Amounts{"cpu": 1}
	v := policytest.Cluster{
		Total:  policytest.Amounts{"cpu": 20},
		Queues: []model.QueueSpec{queue("poor", "root/poor", "1/1"), queue("rich", "root/rich", "1/1"), queue("even", "root/even", "1/1")},
		Jobs: []policytest.Job{
			wanting(held("p", "poor", cpu), cpu),
			wanting(held("r", "rich", cpu, cpu, cpu, policytest.Amounts{"cpu": 3})),
			wanting(held("e", "even", cpu, cpu)),
		},
	}.View(t)
	s := open(t, v)
	chosen, spared := policytest.Victims(t, v, s.Reclaimable, "p-1", "r-0", "r-3", "e-0", "r-1", "r-2", "p-0")
	require.Equal(t, []string{"r-0", "r-3", "r-1", "r-2"}, chosen, "victims do not add up; 2 of 20 is before 3 of 20")
	even := policytest.QueueID(t, v, "even")
	require.Equal(t, policy.Reason{
		Plugin: "drf", Code: policy.HierarchyOrder, Queue: even, Dimension: -1, Have: 0.1, Limit: 0.05,
	}, spared["e-0"])
	require.Equal(t, policy.HierarchyOrder, spared["p-0"].Code, "no job comes before itself")
}

func TestAmountsBeyondEveryClusterBreakNothing(t *testing.T) {
	huge := policytest.Amounts{"cpu": 1e308, "gpu": math.MaxFloat64, "memory": 5e-324}
	v := policytest.Cluster{
		Total: policytest.Amounts{"cpu": 1, "gpu": math.MaxFloat64, "memory": 1},
		Queues: []model.QueueSpec{
			queue("a", "root/a", "1/1e999"), queue("b", "root/b", "1/1"), queue("c", "root/b/c", "1/1/1"),
		},
		Jobs: []policytest.Job{wanting(held("a", "a", huge, huge)), wanting(held("b", "b", huge, huge, huge)), wanting(held("c", "c", huge))},
	}.View(t)
	s := open(t, v)
	s.Deallocate(0)
	s.Allocate(0)
	require.Len(t, s.Nodes(), 7)
	require.Zero(t, s.CompareQueues(0, 0))
	require.Equal(t, -s.CompareQueues(1, 0), s.CompareQueues(0, 1))
	_, vote := s.Reclaimable(2, []model.TaskID{3, 4, 5, 6, 7}, nil, nil)
	require.Equal(t, policy.Permit, vote)
	_, vote = s.Preemptable(2, []model.TaskID{3, 4, 5, 6, 7}, nil, nil)
	require.Equal(t, policy.Permit, vote)
}
