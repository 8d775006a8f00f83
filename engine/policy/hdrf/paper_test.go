package hdrf_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// example is a tree of users who each request more than the cluster has.
type example struct {
	total policytest.Amounts
	users map[string]user
	// paper is the number of tasks of each at the end, by the paper's rules.
	paper map[string]int
	// volcano is the value by Volcano's definitions, if it differs.
	volcano map[string]int
}

type user struct {
	path, weights string
	request       policytest.Amounts
	tasks         int
}

// The first two are examples of Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013, sections on
// rescaling and on blocked nodes; the other figures are computed by its definitions.
func TestExamplesOfTheHierarchicalDRFPaper(t *testing.T) {
	cpu, gpu := policytest.Amounts{"cpu": 1}, policytest.Amounts{"gpu": 1}
	for name, c := range map[string]example{
		"rescaling: complementary siblings do not starve each other": {
			total: policytest.Amounts{"cpu": 10, "gpu": 10},
			users: map[string]user{
				"1":   {"root/1", "1/1", policytest.Amounts{"cpu": 1, "gpu": 1}, 20},
				"2.1": {"root/2/1", "1/1/1", cpu, 20},
				"2.2": {"root/2/2", "1/1/1", gpu, 20},
			},
			paper: map[string]int{"1": 5, "2.1": 5, "2.2": 5},
		},
		"rescaling: who competes for one resource shares it, the other is free": {
			total: policytest.Amounts{"cpu": 10, "gpu": 10},
			users: map[string]user{
				"1":   {"root/1", "1/1", gpu, 20},
				"2.1": {"root/2/1", "1/1/1", cpu, 20},
				"2.2": {"root/2/2", "1/1/1", gpu, 20},
			},
			paper: map[string]int{"1": 5, "2.1": 10, "2.2": 5},
		},
		"blocked nodes: a third of the CPUs each, then half of the GPUs each": {
			total: policytest.Amounts{"cpu": 30, "gpu": 30},
			users: map[string]user{
				"1":   {"root/1", "1/1", cpu, 60},
				"2":   {"root/2", "1/1", cpu, 60},
				"3.1": {"root/3/1", "1/1/1", cpu, 60},
				"3.2": {"root/3/2", "1/1/1", gpu, 60},
				"4":   {"root/4", "1/1", gpu, 60},
			},
			paper: map[string]int{"1": 10, "2": 10, "3.1": 10, "3.2": 15, "4": 15},
		},
		"weights of siblings at the same level": {
			total: policytest.Amounts{"cpu": 480},
			users: map[string]user{
				"1": {"root/1", "1/1", cpu, 960},
				"2": {"root/2", "1/2", cpu, 960},
			},
			paper: map[string]int{"1": 160, "2": 320},
		},
		"what an idle node leaves goes to its sibling": {
			total: policytest.Amounts{"cpu": 480},
			users: map[string]user{
				"1":   {"root/1", "1/1", cpu, 960},
				"2.1": {"root/2/1", "1/1/1", cpu, 960},
				"2.2": {"root/2/2", "1/1/1", cpu, 0},
			},
			paper: map[string]int{"1": 240, "2.1": 240},
		},
		// Volcano scales all children to the least share without regard to their weights, so that a node whose children have different
		// weights counts for less than it has, and gets more: here nearly 96, 96 and 288.
		"weights of children below a node": {
			total: policytest.Amounts{"cpu": 480},
			users: map[string]user{
				"1":   {"root/1", "1/1", cpu, 960},
				"2.1": {"root/2/1", "1/2/1", cpu, 960},
				"2.2": {"root/2/2", "1/2/3", cpu, 960},
			},
			paper:   map[string]int{"1": 160, "2.1": 80, "2.2": 240},
			volcano: map[string]int{"1": 97, "2.1": 96, "2.2": 287},
		},
		// A weight below 1 counts as 1 in Volcano, so weights that are fractions of 1 say nothing.
		"weights written as fractions": {
			total: policytest.Amounts{"cpu": 480},
			users: map[string]user{
				"1": {"root/1", "1/0.25", cpu, 960},
				"2": {"root/2", "1/0.75", cpu, 960},
			},
			paper:   map[string]int{"1": 120, "2": 360},
			volcano: map[string]int{"1": 240, "2": 240},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.volcano
			if want == nil {
				want = c.paper
			}
			game := c.start(t)
			require.Equal(t, want, policytest.Count(game.Play(t, 10000)), "the paper's result is %v", c.paper)
		})
	}
}

// A user whose GPUs come free one by one, and a sibling group of which one has all CPUs and the other wants GPUs. The paper leaves
// saturated resources out of an inner node's share, so the newcomer catches up; Volcano does not, and the newcomer starves.
func TestASaturatedSiblingStarvesANewcomerInVolcano(t *testing.T) {
	c := example{
		total: policytest.Amounts{"cpu": 10, "gpu": 10},
		users: map[string]user{
			"1":   {"root/1", "1/1", policytest.Amounts{"gpu": 1}, 100},
			"2.1": {"root/2/1", "1/1/1", policytest.Amounts{"cpu": 1}, 20},
			"2.2": {"root/2/2", "1/1/1", policytest.Amounts{"gpu": 1}, 20},
		},
		paper:   map[string]int{"1": 5, "2.2": 5},
		volcano: map[string]int{"1": 10},
	}
	game := c.start(t)
	first, busy := policytest.JobID(t, game.View, "1"), policytest.JobID(t, game.View, "2.1")
	for i := range model.TaskID(10) {
		game.Give(t, game.View.Jobs.At(first).FirstTask+i)
		game.Give(t, game.View.Jobs.At(busy).FirstTask+i)
	}
	holds := map[string]int{"1": 10}
	for i := range model.TaskID(10) {
		game.Take(t, game.View.Jobs.At(first).FirstTask+i)
		holds["1"]--
		for _, got := range game.Play(t, 10) {
			holds[got]++
		}
	}
	require.Equal(t, c.volcano, holds, "the paper's result is %v", c.paper)
}

func (c example) start(t *testing.T) *policytest.Game {
	t.Helper()
	cluster := policytest.Cluster{Total: c.total}
	for _, name := range slices.Sorted(maps.Keys(c.users)) {
		u := c.users[name]
		cluster.Queues = append(cluster.Queues, queue(name, u.path, u.weights))
		j := policytest.Job{Name: name, Queue: name}
		if u.tasks > 0 {
			j.Tasks = []policytest.Tasks{{N: u.tasks, Request: u.request}}
		}
		cluster.Jobs = append(cluster.Jobs, j)
	}
	v := cluster.View(t)
	s := open(t, v)
	return &policytest.Game{View: v, Events: s, Left: maps.Clone(c.total), Compare: func(l, r model.JobID) int {
		return s.CompareQueues(v.Jobs.At(l).Queue, v.Jobs.At(r).Queue)
	}}
}
