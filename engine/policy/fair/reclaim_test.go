package fair

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// crowded is a cluster of two equal queues: one runs n tasks of one unit and fills it, the other waits with one task.
func crowded(n int, claim int64) *cluster {
	c := &cluster{
		width: 1, total: []int64{int64(n)}, plugin: Plugin{Quanta: []Quantum{{"r0", 1}}},
		queues: []queue{{name: "greedy", weight: 1}, {name: "late", weight: 1}},
		jobs:   []job{{queue: "greedy", request: []int64{1}}, {queue: "late", request: []int64{claim}, tasks: []task{{node: model.None}}}},
	}
	for range n {
		c.jobs[0].tasks = append(c.jobs[0].tasks, task{status: model.Running, node: model.None})
	}
	return c
}

// claim returns a claim of the last task with all others as candidates.
func (s *State) claimOfLast() *policy.Claim {
	last := model.TaskID(s.v.Tasks.Len() - 1)
	c := &policy.Claim{Tasks: []model.TaskID{last}}
	for t := range last {
		c.Candidates = append(c.Candidates, t)
	}
	return c
}

func TestAPlanTakesWhatIsMissingAndNoMore(t *testing.T) {
	s := crowded(100, 30).open(t)
	var g policy.Grounds
	plan := s.Plan(s.claimOfLast(), &g)
	require.True(t, plan.Made)
	require.Len(t, plan.Victims, 30)
	require.Len(t, g.Spared.List, 70)
	require.Equal(t, policy.NotNeeded, g.Spared.List[0].Reason.Code)
}

func TestAnAbandonedPlanStops(t *testing.T) {
	s := crowded(5000, 2500).open(t)
	s.v.Stop = func() bool { return true }
	require.True(t, s.Plan(s.claimOfLast(), nil).Stopped)
	s.v.Stop = nil
	require.True(t, s.Plan(s.claimOfLast(), nil).Made)
}

// TestAPlanThatFailsLeavesNoTrace: of three tasks two have room on the first node once others are evicted there, and one has none on the
// second, whose tasks stay. The three find room on the first afterwards as they would before.
func TestAPlanThatFailsLeavesNoTrace(t *testing.T) {
	c := crowded(8, 1)
	c.total, c.nodes = nil, []node{{offered: []int64{4}}, {offered: []int64{4}}}
	for i := range c.jobs[0].tasks {
		c.jobs[0].tasks[i].node, c.jobs[0].tasks[i].fixed = model.NodeID(i/4), i >= 4
	}
	waiting := c.jobs[1].tasks[0]
	c.jobs[1].tasks = []task{waiting, waiting, waiting}
	s := c.open(t)
	claim := &policy.Claim{Tasks: []model.TaskID{8, 9, 10}, Candidates: []model.TaskID{0, 1, 2, 3, 4, 5, 6, 7}}
	on := func(nodes ...model.NodeID) bool {
		claim.Room = policy.Room{Kind: policy.GivenNodes, Nodes: nodes}
		return s.Plan(claim, nil).Made
	}
	require.True(t, on(0, 0, 0))
	require.False(t, on(0, 0, 1))
	require.True(t, on(0, 0, 0))
}

// BenchmarkPlan chooses among a hundred candidates, of which thirty are taken or, by a claimant that wants more than its entitlement allows to
// take, all are looked at under each line in vain.
func BenchmarkPlan(b *testing.B) {
	for name, claim := range map[string]int64{"taken": 30, "all": 50} {
		b.Run(name, func(b *testing.B) {
			s := crowded(100, claim).open(b)
			c := s.claimOfLast()
			var g policy.Grounds
			b.ReportAllocs()
			for b.Loop() {
				// As engine.Session keeps the memory of reasons.
				g.Spared.List = g.Spared.List[:0]
				s.Plan(c, &g)
			}
		})
	}
}

// TestOfTwoShortDimensionsTheOrderOfCandidatesDoesNotDecide: queue giving holds all devices, more than its share, but no more memory than
// its share. Its large task goes only for devices, though memory is short on the node too.
func TestOfTwoShortDimensionsTheOrderOfCandidatesDoesNotDecide(t *testing.T) {
	running := func(memory int64) task { return task{status: model.Running, request: []int64{memory, 1}} }
	c := &cluster{
		width: 2, plugin: Plugin{Quanta: []Quantum{{"r0", 1}, {"r1", 1}}},
		nodes:  []node{{offered: []int64{4, 3}}, {offered: []int64{96, 0}}},
		queues: []queue{{name: "giving", weight: 1}, {name: "taking", weight: 2}},
		jobs: []job{
			{queue: "giving", tasks: []task{running(0), running(0), running(4)}},
			{queue: "taking", least: 2, request: []int64{1, 1}, tasks: []task{{node: model.None}, {node: model.None}}},
		},
	}
	s := c.open(t)
	for _, order := range [][]model.TaskID{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		claim := &policy.Claim{Tasks: []model.TaskID{3, 4}, Candidates: order, Room: policy.Room{Kind: policy.AnyNodes}}
		plan := s.Plan(claim, nil)
		require.True(t, plan.Made, order)
		require.Equal(t, []model.NodeID{0, 0}, plan.Nodes)
		require.Len(t, plan.Victims, 2)
		require.Contains(t, plan.Victims, model.TaskID(2))
	}
}
