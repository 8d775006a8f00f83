package nodegroup_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/nodegroup"
)

// bounded is a cluster of nodes in the groups g1 and g2, and of queues that may use both, with tasks of some CPUs and GPUs.
type bounded struct {
	limits []map[string]*model.Amounts
	// invalid are the positions of the queues whose limits cannot be read.
	invalid map[int]bool
	tasks   []boundedTask
	release policy.Release
}

type boundedTask struct {
	queue    int
	cpu, gpu float64
	node     int
	status   model.Status
}

func amounts(cpu, gpu float64) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{cpu, gpu}}
}

// groupsOf are the groups of the nodes of a bounded cluster; the last node has none.
var groupsOf = []string{"g1", "g1", "g2", bare}

func (c *bounded) open(t require.TestingT) *engine.Session {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "nvidia.com/gpu"})
	for i, group := range groupsOf {
		b.Node(model.NodeSpec{Name: fmt.Sprint("n", i), Allocatable: amounts(1e6, 1e6), Group: group, Labelled: group != bare})
	}
	for q, limits := range c.limits {
		spec := model.QueueSpec{Name: fmt.Sprint("q", q), Affinity: affinity(g("g1", "g2"), nil, nil, nil)}
		if limits != nil || c.invalid[q] {
			spec.NodeLimits = &model.NodeLimitsSpec{Invalid: c.invalid[q]}
			for _, group := range []string{"g1", "g2"} {
				if limit, given := limits[group]; given {
					spec.NodeLimits.Groups = append(spec.NodeLimits.Groups, model.NodeLimitSpec{Group: group, Limit: limit})
				}
			}
		}
		b.Queue(spec)
	}
	for i, task := range c.tasks {
		b.Job(model.JobSpec{UID: fmt.Sprint("j", i), Queue: fmt.Sprint("q", task.queue), Phase: model.PhaseInqueue})
		b.Group(model.GroupSpec{Request: amounts(task.cpu, task.gpu)})
		b.Task(&model.TaskSpec{UID: fmt.Sprint("t", i), Status: task.status, Node: model.NodeID(task.node)})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{
		Tiers: []engine.Tier{{{Plugin: nodegroup.Default()}}}, Release: c.release,
	}, nil)
	require.NoError(t, err)
	return s
}

// pending is a waiting task of queue 0.
func pending(cpu, gpu float64) boundedTask { return boundedTask{cpu: cpu, gpu: gpu, node: model.None} }

func running(queue int, cpu float64, node int) boundedTask {
	return boundedTask{queue: queue, cpu: cpu, node: node, status: model.Running}
}

// The first six cases are those of Volcano's TestNodeGroupResourceLimit.
func TestAQueueHoldsNoMoreThanItsLimitOnTheNodesOfAGroup(t *testing.T) {
	cpu := func(n float64) *model.Amounts { return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{n}} }
	limits := func(group string, a *model.Amounts) []map[string]*model.Amounts {
		return []map[string]*model.Amounts{{group: a}, nil}
	}
	const above, broken = policy.AboveNodeGroupLimit, policy.NodeGroupLimitsInvalid
	for _, story := range []struct {
		name    string
		limits  []map[string]*model.Amounts
		invalid map[int]bool
		tasks   []boundedTask
		g1, g2  policy.Code
	}{
		{"without limits", []map[string]*model.Amounts{nil, nil}, nil, []boundedTask{pending(2000, 0)}, 0, 0},
		{"below the limit", limits("g1", amounts(3000, 8)), nil, []boundedTask{pending(2000, 4)}, 0, 0},
		{"a resource that is not listed", limits("g1", cpu(3000)), nil, []boundedTask{pending(2000, 4)}, 0, 0},
		{"a task above the limit by itself", limits("g1", cpu(1000)), nil, []boundedTask{pending(2000, 0)}, above, 0},
		{"with what runs there", limits("g1", cpu(3000)), nil, []boundedTask{pending(2000, 0), running(0, 2000, 0)}, above, 0},
		{"limits that cannot be read", []map[string]*model.Amounts{nil, nil}, map[int]bool{0: true}, []boundedTask{pending(2000, 0)}, broken, broken},
		{"on another node of the group", limits("g1", cpu(3000)), nil, []boundedTask{pending(2000, 0), running(0, 2000, 1)}, above, 0},
		{"exactly the limit", limits("g1", cpu(4000)), nil, []boundedTask{pending(2000, 0), running(0, 2000, 1)}, 0, 0},
		{"above it by less than a tenth", limits("g1", cpu(3999.95)), nil, []boundedTask{pending(2000, 0), running(0, 2000, 1)}, 0, 0},
		{"what runs in the other group", limits("g1", cpu(3000)), nil, []boundedTask{pending(2000, 0), running(0, 2000, 2)}, 0, 0},
		{"what runs in another queue", limits("g1", cpu(3000)), nil, []boundedTask{pending(2000, 0), running(1, 2000, 0)}, 0, 0},
		{
			"what is being released", limits("g1", cpu(3000)), nil,
			[]boundedTask{pending(2000, 0), {cpu: 2000, node: 0, status: model.Releasing}},
			0, 0,
		},
		{"a scalar", limits("g1", amounts(1e5, 3)), nil, []boundedTask{pending(0, 4)}, above, 0},
		{
			"the limits of another queue",
			[]map[string]*model.Amounts{nil, {"g1": cpu(0)}},
			map[int]bool{1: true},
			[]boundedTask{pending(2000, 0)},
			0, 0,
		},
		{"a limit of 0 cpu", limits("g2", cpu(0)), nil, []boundedTask{pending(1, 0)}, 0, above},
		{"a limit of 0 cpu for a task that asks for no cpu", limits("g2", cpu(0)), nil, []boundedTask{pending(0, 1)}, 0, 0},
		{"a limit that lists nothing", limits("g1", &model.Amounts{}), nil, []boundedTask{pending(2000, 4)}, 0, 0},
	} {
		t.Run(story.name, func(t *testing.T) {
			for _, release := range []policy.Release{policy.V115, policy.V116} {
				c := &bounded{limits: story.limits, invalid: story.invalid, tasks: story.tasks, release: release}
				s := c.open(t)
				for node, want := range map[model.NodeID]policy.Code{0: story.g1, 2: story.g2} {
					if release == policy.V115 {
						want = 0
					}
					var why policy.Reasons
					require.Equal(t, want == 0, s.Nodes().Fits(0, node, &why), "node %d, release %d", node, release)
					if want != 0 {
						require.Equal(t, want, why.List[0].Code)
					}
				}
			}
		})
	}
}

func TestTheReasonNamesGroupLimitAndUse(t *testing.T) {
	c := &bounded{
		limits:  []map[string]*model.Amounts{{"g1": amounts(3000, 8)}},
		tasks:   []boundedTask{pending(2000, 0), running(0, 1500, 1)},
		release: policy.V116,
	}
	var why policy.Reasons
	require.False(t, c.open(t).Nodes().Fits(0, 0, &why))
	require.Equal(t, []policy.Reason{{
		Plugin: nodegroup.Name, Code: policy.AboveNodeGroupLimit, Queue: 0, Dimension: 0, Have: 1500, Need: 2000, Limit: 3000, Detail: "g1",
	}}, why.List)
}

func TestTasksOfAGangCountTogetherToALimit(t *testing.T) {
	c := &bounded{limits: []map[string]*model.Amounts{{"g1": amounts(3000, 8)}}, release: policy.V116}
	for range 5 {
		c.tasks = append(c.tasks, pending(1000, 0))
	}
	s := c.open(t)
	tasks := []model.TaskID{0, 1, 2, 3, 4}
	p, err := place.Tasks(s, tasks, []model.NodeID{0, 1})
	require.NoError(t, err)
	require.Equal(t, place.NoPlacement, p.Outcome)
	require.Equal(t, 3, p.Most)
	p, err = place.Tasks(s, tasks, []model.NodeID{0, 1, 2})
	require.NoError(t, err)
	require.Equal(t, place.Placed, p.Outcome)
	for i, task := range tasks {
		require.NoError(t, s.Allocate(task, p.Nodes[i]), "each fits where it is placed")
	}
}

func TestBeforeRelease116AWarningSaysThatLimitsHaveNoEffect(t *testing.T) {
	for release, want := range map[policy.Release]int{policy.V115: 1, policy.V116: 0} {
		c := &bounded{limits: []map[string]*model.Amounts{{"g1": amounts(1, 1)}}, release: release}
		n := 0
		for _, w := range c.open(t).Warnings() {
			if w.Code == policy.SettingIgnored {
				n++
				require.Equal(t, "queues[0].node_group_limits", w.Path)
			}
		}
		require.Equal(t, want, n)
	}
}

// plainFits is Volcano's predicate on a list of the tasks that hold resources: their nodes by task.
func (c *bounded) plainFits(task, node int, on map[int]int) bool {
	of := c.tasks[task]
	group := groupsOf[node]
	if c.invalid[of.queue] || group == bare {
		return false
	}
	limit := c.limits[of.queue][group]
	if limit == nil || c.release == policy.V115 {
		return true
	}
	used := []float64{of.cpu, of.gpu}
	for other, at := range on {
		if c.tasks[other].queue == of.queue && groupsOf[at] == group {
			used[0] += c.tasks[other].cpu
			used[1] += c.tasks[other].gpu
		}
	}
	for i, d := range limit.Dimension {
		if used[d] > limit.Amount[i] && used[d]-limit.Amount[i] >= 0.1 {
			return false
		}
	}
	return true
}

func TestLimitsAreKeptThroughEventsAsByAPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.SampledFrom([]float64{0, 1, 2, 2.95, 3, 4.05, 5, 7})
		c := &bounded{release: policy.V116, invalid: map[int]bool{}}
		for q := range 3 {
			limits := map[string]*model.Amounts{}
			for _, group := range []string{"g1", "g2"} {
				switch rapid.IntRange(0, 3).Draw(t, "dimensions") {
				case 1:
					limits[group] = amounts(small.Draw(t, "cpu"), small.Draw(t, "gpu"))
				case 2:
					limits[group] = &model.Amounts{Dimension: []uint32{1}, Amount: []float64{small.Draw(t, "gpu")}}
				case 3:
					limits[group] = &model.Amounts{}
				}
			}
			c.limits = append(c.limits, limits)
			c.invalid[q] = rapid.IntRange(0, 9).Draw(t, "invalid") == 0
		}
		on := map[int]int{}
		for i := range rapid.IntRange(1, 12).Draw(t, "tasks") {
			task := pending(small.Draw(t, "cpu"), small.Draw(t, "gpu"))
			task.queue = rapid.IntRange(0, 2).Draw(t, "queue")
			if rapid.Bool().Draw(t, "runs") {
				task.node, task.status = rapid.IntRange(0, len(groupsOf)-1).Draw(t, "node"), model.Running
				on[i] = task.node
			}
			c.tasks = append(c.tasks, task)
		}
		s := c.open(t)
		compare := func(on map[int]int) {
			for task := range c.tasks {
				for node := range groupsOf {
					require.Equal(t, c.plainFits(task, node, on), s.Nodes().Fits(model.TaskID(task), model.NodeID(node), nil), "task %d, node %d", task, node)
				}
			}
		}
		compare(on)
		mark, marked := s.Mark(), maps.Clone(on)
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			task := rapid.IntRange(0, len(c.tasks)-1).Draw(t, "of")
			if _, held := on[task]; held {
				to := rapid.SampledFrom([]model.Status{model.Pending, model.Releasing}).Draw(t, "to")
				require.NoError(t, s.Deallocate(model.TaskID(task), to))
				delete(on, task)
			} else {
				node := rapid.IntRange(0, len(groupsOf)-1).Draw(t, "at")
				require.NoError(t, s.Allocate(model.TaskID(task), model.NodeID(node)))
				on[task] = node
			}
			compare(on)
		}
		require.NoError(t, s.Rollback(mark))
		compare(marked)
	})
}
