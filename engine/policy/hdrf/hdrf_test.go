package hdrf_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/hdrf"
	. "github.com/apportion/apportion/engine/policy/policytest"
)

func queue(name, path, weights string) model.QueueSpec {
	return model.QueueSpec{Name: name, Weight: 1, Hierarchy: &model.Hierarchy{Path: path, Weights: weights}}
}

func open(t require.TestingT, v *policy.View) *hdrf.State {
	state, err := hdrf.Plugin{}.Open(v)
	require.NoError(t, err)
	return state.(*hdrf.State)
}

func held(name, queue string, tasks ...Amounts) Job {
	j := Job{Name: name, Queue: queue}
	for _, request := range tasks {
		j.Tasks = append(j.Tasks, Tasks{Status: model.Running, Request: request})
	}
	return j
}

// wanting adds a pending task of 5 CPUs, and what else is given, so that the job is not satisfied.
func wanting(j Job, more ...Amounts) Job {
	for _, request := range append(more, Amounts{"cpu": 5}) {
		j.Tasks = append(j.Tasks, Tasks{Request: request})
	}
	return j
}

func TestHdrfTakesPartInQueuesAndJobs(t *testing.T) {
	s := open(t, Cluster{}.View(t))
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
	ten := Amounts{"cpu": 10, "gpu": 10}
	for name, c := range map[string]struct {
		total  Amounts
		queues []model.QueueSpec
		jobs   []Job
		want   string
	}{
		"no jobs: a root that nobody ever computed": {
			queues: []model.QueueSpec{queue("q", "root/q", "1/2")},
			want:   "root 1 0\n",
		},
		"a queue without hierarchy hangs its jobs under the root": {
			total: ten, queues: Queues("q"), jobs: []Job{wanting(held("a", "q", Amounts{"cpu": 1}))},
			want: "root 1 0.1\n a 1 0.1\n",
		},
		"the first part of a path is the root, whatever it says, and its weight is ignored": {
			total: ten, queues: []model.QueueSpec{queue("q", "whatever/eng", "7/2")}, jobs: []Job{wanting(held("a", "q"))},
			want: "root 1 0\n eng 2 0\n  a 1 0\n",
		},
		"parts may be empty, and a leaf may be named as a part": {
			total: ten, queues: []model.QueueSpec{queue("q", "/", "/3"), queue("p", "root", "1")},
			jobs: []Job{held("a", "q"), wanting(held("x", "p", Amounts{"cpu": 1}))},
			want: "root 1 0.1\n  3 0\n  a 1 0\n x 1 0.1\n",
		},
		"queues may share nodes, and lie within each other's path": {
			total:  ten,
			queues: []model.QueueSpec{queue("long", "root/eng/dev", "1/2/8"), queue("short", "root/eng", "1/2")},
			jobs:   []Job{wanting(held("a", "short", Amounts{"cpu": 1})), wanting(held("b", "long", Amounts{"cpu": 2}))},
			want:   "root 1 0.2\n eng 2 0.2\n  dev 8 0.2\n   b 1 0.2\n  a 1 0.1\n",
		},
		"children that are not saturated are scaled to the least share": {
			total:  ten,
			queues: []model.QueueSpec{queue("a", "root/n/a", "1/1/1"), queue("b", "root/n/b", "1/1/9")},
			jobs:   []Job{wanting(held("a", "a", Amounts{"cpu": 2})), wanting(held("b", "b", Amounts{"cpu": 1, "gpu": 4}), Amounts{"gpu": 1}), wanting(held("c", "b"))},
			want:   "root 1 0.25\n n 1 0.25\n  a 1 0.2\n   a 1 0.2\n  b 9 0.4\n   b 1 0.4\n   c 1 0\n",
		},
		"saturated children are added as they are": {
			total:  ten,
			queues: []model.QueueSpec{queue("a", "root/n/a", "1/1/1"), queue("b", "root/n/b", "1/1/1")},
			jobs:   []Job{wanting(held("a", "a", Amounts{"cpu": 2})), held("b", "b", Amounts{"cpu": 5})},
			want:   "root 1 0.7\n n 1 0.7\n  a 1 0.2\n   a 1 0.2\n  b 1 0.5 *\n   b 1 0.5 *\n",
		},
		"a job that holds nothing is never saturated": {
			total: ten, queues: []model.QueueSpec{queue("q", "root/q", "1/1")}, jobs: []Job{held("a", "q"), held("b", "q", Amounts{"cpu": 1})},
			want: "root 1 0.1\n q 1 0.1\n  a 1 0\n  b 1 0.1 *\n",
		},
		"a job that holds something is saturated if no node offers what it asks for": {
			total: Amounts{"cpu": 10}, queues: []model.QueueSpec{queue("q", "root/q", "1/1")},
			jobs: []Job{wanting(held("a", "q", Amounts{"cpu": 1, "pods": 1}))},
			want: "root 1 0.1 *\n q 1 0.1 *\n  a 1 0.1 *\n",
		},
		"a dimension that is used up saturates all who hold and want some of it, but not those who want none": {
			total:  ten,
			queues: []model.QueueSpec{queue("q", "root/q", "1/1")},
			jobs:   []Job{wanting(held("a", "q", Amounts{"gpu": 10})), wanting(held("b", "q", Amounts{"cpu": 1}))},
			want:   "root 1 1\n q 1 1\n  a 1 1 *\n  b 1 0.1\n",
		},
		"weights below 1 and what is no number count as 1, and weights may be endless": {
			total: ten, queues: []model.QueueSpec{queue("q", "r/a/b/c/d/e/f", "0/0.5/x/-1e999/1e999/NaN/1.5")}, jobs: []Job{held("j", "q")},
			want: "root 1 0\n a 1 0\n  b 1 0\n   c 1 0\n    d +Inf 0\n     e 1 0\n      f 1.5 0\n       j 1 0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, drawing(open(t, Cluster{Total: c.total, Queues: c.queues, Jobs: c.jobs}.View(t))))
		})
	}
}

func TestNodesShowRequestAndAccount(t *testing.T) {
	v := Cluster{
		Total: Amounts{"cpu": 10, "gpu": 4}, Queues: []model.QueueSpec{queue("q", "root/q", "1/1")},
		Jobs: []Job{wanting(held("a", "q", Amounts{"gpu": 2}))},
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
			jobs := []Job{held("a", "q", Amounts{"cpu": 1})}
			if c.queues[0].Name == "fine" {
				jobs = append(jobs, held("b", "fine"))
			}
			_, err := hdrf.Plugin{}.Open(Cluster{Total: Amounts{"cpu": 1}, Queues: c.queues, Jobs: jobs}.View(t))
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
	v := Cluster{
		Queues: []model.QueueSpec{
			queue("x", "root/n/x", "1/2/0.5"), queue("y", "root/n/y", "1/3/1"), queue("z", "root/n", "1/2"), queue("idle", "root/n", "1/9"),
		},
		Jobs: []Job{held("b", "x"), held("a", "y"), held("c", "z")},
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
		warning(0, "weight 3 of the path is below 1 or no number and counts as 1"),
		warning(0, "weight 2 of the path is ignored: an earlier job's queue weighs that node differently"),
		warning(2, "weight 2 of the path is ignored: an earlier job's queue weighs that node differently"),
	}, warnings)
}

func TestOrderOfQueues(t *testing.T) {
	v := Cluster{
		Total: Amounts{"cpu": 100, "gpu": 100},
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
		Jobs: []Job{
			wanting(held("e", "empty")), wanting(held("t", "a tenth", Amounts{"cpu": 5})), wanting(held("f", "a fifth of weight 4", Amounts{"cpu": 20})),
			held("s", "satisfied", Amounts{"gpu": 1}), wanting(held("c", "child of the tenth", Amounts{"cpu": 5})), wanting(held("n", "no hierarchy")),
			wanting(held("q", "equal", Amounts{"cpu": 10})),
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
		l, r := QueueID(t, v, pair.first), QueueID(t, v, pair.then)
		want := -1
		if pair.same {
			want = 0
		}
		require.Equal(t, want, s.CompareQueues(l, r), "%s before %s", pair.first, pair.then)
		require.Equal(t, -want, s.CompareQueues(r, l), "%s before %s", pair.first, pair.then)
	}
}

func TestReclaimLooksAtEachCandidateByItself(t *testing.T) {
	cpu := Amounts{"cpu": 1}
	v := Cluster{
		Total:  Amounts{"cpu": 20},
		Queues: []model.QueueSpec{queue("poor", "root/poor", "1/1"), queue("rich", "root/rich", "1/1"), queue("even", "root/even", "1/1")},
		Jobs: []Job{
			wanting(held("p", "poor", cpu), cpu),
			wanting(held("r", "rich", cpu, cpu, cpu, Amounts{"cpu": 3})),
			wanting(held("e", "even", cpu, cpu)),
		},
	}.View(t)
	s := open(t, v)
	chosen, spared := Victims(t, v, s.Reclaimable, "p-1", "r-0", "r-3", "e-0", "r-1", "r-2", "p-0")
	require.Equal(t, []string{"r-0", "r-3", "r-1", "r-2"}, chosen, "victims do not add up; 2 of 20 is before 3 of 20")
	even := QueueID(t, v, "even")
	require.Equal(t, policy.Reason{
		Plugin: "drf", Code: policy.HierarchyOrder, Queue: even, Dimension: -1, Have: 0.1, Limit: 0.05,
	}, spared["e-0"])
	require.Equal(t, policy.HierarchyOrder, spared["p-0"].Code, "nobody comes before himself")
}

// world draws a cluster whose amounts add up exactly.
func world(t *rapid.T) *policy.View {
	c := Cluster{Total: Amounts{"cpu": 16, "memory": 8}}
	if rapid.Bool().Draw(t, "gpus") {
		c.Total["gpu"] = rapid.SampledFrom([]float64{0, 4, 16}).Draw(t, "gpu")
	}
	depth := rapid.IntRange(1, 4).Draw(t, "depth")
	for i := range rapid.IntRange(1, 6).Draw(t, "queues") {
		parts, weights := "root", "1"
		for range rapid.IntRange(0, depth).Draw(t, "parts") {
			parts += "/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part")
			weights += "/" + rapid.SampledFrom([]string{"1", "2", "0.5", "x"}).Draw(t, "weight")
		}
		q := queue(strconv.Itoa(i), parts, weights)
		if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
			q.Hierarchy = nil
		}
		c.Queues = append(c.Queues, q)
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		j := Job{Name: strconv.Itoa(i), Queue: strconv.Itoa(rapid.IntRange(0, len(c.Queues)-1).Draw(t, "queue"))}
		for range rapid.IntRange(0, 4).Draw(t, "tasks") {
			request := Amounts{"cpu": float64(rapid.IntRange(0, 4).Draw(t, "cpu")), "memory": float64(rapid.IntRange(0, 2).Draw(t, "memory"))}
			if rapid.Bool().Draw(t, "asks for gpus") {
				request["gpu"] = float64(rapid.IntRange(0, 3).Draw(t, "gpu"))
			}
			j.Tasks = append(j.Tasks, Tasks{
				Request: request, Status: rapid.SampledFrom([]model.Status{model.Running, model.Pending}).Draw(t, "status"),
			})
		}
		c.Jobs = append(c.Jobs, j)
	}
	return c.View(t)
}

func holdings(v *policy.View) (byJob map[model.JobID][]float64, used []float64) {
	byJob, used = map[model.JobID][]float64{}, make([]float64, v.Dims.Len())
	for _, j := range v.Present() {
		byJob[j] = v.Account(j).Allocated.V
		for d, x := range byJob[j] {
			used[d] += x
		}
	}
	return byJob, used
}

func requireTwin(t *rapid.T, v *policy.View, s *hdrf.State) {
	byJob, used := holdings(v)
	root := newTwin(v, byJob, used)
	nodes := s.Nodes()
	twins := make([]*twin, len(nodes))
	for i, n := range nodes {
		twins[i] = root
		if i > 0 {
			name := n.Name
			if n.Job != model.None {
				name = "job " + name
			}
			twins[i] = twins[n.Parent].children[name]
		}
		require.NotNil(t, twins[i], "%d %s", i, n.Name)
		require.Equal(t, []any{twins[i].name, twins[i].weight, twins[i].saturated}, []any{n.Name, n.Weight, n.Saturated})
		requireClose(t, twins[i].share, n.Share)
		for d, x := range twins[i].held {
			requireClose(t, x, n.Allocated.V[d])
		}
	}
	for l := range v.Queues {
		for r := range v.Queues {
			if root.has(v.Queues[l].Hierarchy) && root.has(v.Queues[r].Hierarchy) {
				l, r := model.QueueID(l), model.QueueID(r)
				require.Equal(t, root.compare(pathOf(v, l), pathOf(v, r)), s.CompareQueues(l, r))
			}
		}
	}
}

func pathOf(v *policy.View, q model.QueueID) string {
	if h := v.Queues[q].Hierarchy; h != nil {
		return h.Path
	}
	return ""
}

func (n *twin) has(h *model.Hierarchy) bool {
	if h == nil {
		return true
	}
	for _, part := range strings.Split(h.Path, "/")[1:] {
		if n = n.children[part]; n == nil {
			return false
		}
	}
	return true
}

func requireClose(t *rapid.T, want, got float64) {
	require.LessOrEqual(t, math.Abs(want-got), 1e-12*math.Abs(want), "want %v, got %v", want, got)
}

func TestTheTreeIsThatOfItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := world(t)
		s := open(t, v)
		requireTwin(t, v, s)
		if len(v.Tasks) == 0 {
			return
		}
		before := image(s)
		mark := v.Journal.Mark()
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			task := model.TaskID(rapid.IntRange(0, len(v.Tasks)-1).Draw(t, "task"))
			if v.Status(task).Holds() {
				v.SetStatus(task, model.Releasing, model.None)
				s.Deallocate(task)
			} else {
				v.SetStatus(task, model.Allocated, model.None)
				s.Allocate(task)
			}
			if rapid.Bool().Draw(t, "look") {
				requireTwin(t, v, s)
			}
		}
		require.Equal(t, image(open(t, v)), image(s), "as if opened now")
		v.Journal.Rollback(mark)
		require.Equal(t, before, image(s), "every bit is back")
		requireTwin(t, v, s)
	})
}

func TestVictimsAreThoseOfTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := world(t)
		var running, all []model.TaskID
		for task := range v.Tasks {
			all = append(all, model.TaskID(task))
			if v.Tasks[task].Status == model.Running {
				running = append(running, model.TaskID(task))
			}
		}
		if len(running) == 0 {
			return
		}
		s := open(t, v)
		before := image(s)
		byJob, _ := holdings(v)
		for range 3 {
			claimant := rapid.SampledFrom(all).Draw(t, "claimant")
			candidates := rapid.Permutation(running).Draw(t, "candidates")
			victims, vote := s.Reclaimable(claimant, candidates, nil, nil)
			require.Equal(t, policy.Permit, vote)
			require.Equal(t, reclaimable(v, byJob, claimant, candidates), victims)
			require.Equal(t, before, image(s), "the question changed nothing")
			task := rapid.SampledFrom(running).Draw(t, "event")
			s.Deallocate(task)
			s.Allocate(task)
		}
	})
}

// image is the tree with every row copied.
func image(s *hdrf.State) []policy.TreeNode {
	nodes := s.Nodes()
	for i := range nodes {
		nodes[i].Request, nodes[i].Allocated = nodes[i].Request.Clone(), nodes[i].Allocated.Clone()
	}
	return nodes
}
