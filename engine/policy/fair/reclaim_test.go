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
