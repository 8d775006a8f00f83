package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// evictingPolicy draws a policy that lets claimants evict.
func evictingPolicy(t *rapid.T) engine.Policy {
	own := rapid.SampledFrom([]engine.Tier{
		{{Plugin: drf.Plugin{}}, {Plugin: proportion.Plugin{}}},
		{{Plugin: drf.Plugin{}}, {Plugin: capacity.Plugin{}}},
		{{Plugin: capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 1}}},
		{{Plugin: hdrf.Plugin{}}},
		{{Plugin: fair.Plugin{}}},
		{},
	}).Draw(t, "dividing")
	tiers := []engine.Tier{{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}, {Plugin: conformance.Plugin{}}}, own}
	if rapid.Bool().Draw(t, "one tier") {
		tiers = []engine.Tier{slices.Concat(tiers[0], own)}
	}
	return engine.Policy{Walk: rapid.SampledFrom([]engine.Walk{engine.Strict, engine.Volcano}).Draw(t, "walk"), Tiers: tiers}
}

// oneByOne asks what each claimant may evict.
func oneByOne(t require.TestingT, s *engine.Session, by engine.Victims, claimants []model.TaskID) []model.TaskID {
	var all []model.TaskID
	for _, claimant := range claimants {
		candidates, err := by.Candidates(claimant)
		require.NoError(t, err)
		if by.Plans() {
			s.Order().SortVictims(claimant, candidates)
		}
		all = append(all, by.Choose(&policy.Claim{Tasks: []model.TaskID{claimant}, Candidates: candidates}, false).Victims...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestEvictableIsWhatTheClaimantsMayEvictOneByOne also where the claimants are looked at a few at a time.
func TestEvictableIsWhatTheClaimantsMayEvictOneByOne(t *testing.T) {
	t.Parallel()
	reclaimed, preempted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, err := engine.Open(enginetest.CrowdedCluster(t), evictingPolicy(t), nil)
		require.NoError(t, err)
		var claimants []model.TaskID
		for _, j := range s.Waiting() {
			if rapid.IntRange(0, 3).Draw(t, "claims") > 0 {
				claimants = append(claimants, s.View().Jobs.At(j).FirstTask)
			}
		}
		limit := rapid.SampledFrom([]int{1, 20, 60, math.MaxInt}).Draw(t, "limit")
		var found engine.Evictable
		for left := claimants; len(left) > 0; {
			some, err := s.Evictable(left, limit)
			require.NoError(t, err)
			require.Less(t, len(some.Left), len(left))
			found.Reclaim, found.Preempt = append(found.Reclaim, some.Reclaim...), append(found.Preempt, some.Preempt...)
			left = some.Left
		}
		for _, list := range []*[]model.TaskID{&found.Reclaim, &found.Preempt} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		require.Equal(t, oneByOne(t, s, s.Reclaim(), claimants), found.Reclaim)
		require.Equal(t, oneByOne(t, s, s.Preempt(), claimants), found.Preempt)
		reclaimed, preempted = reclaimed+len(found.Reclaim), preempted+len(found.Preempt)
	})
	require.Positive(t, reclaimed)
	require.Positive(t, preempted)
}

// TestAPlanFoundBrieflyIsThatOfTheChoice whatever has moved, or was moved back, since the last one.
func TestAPlanFoundBrieflyIsThatOfTheChoice(t *testing.T) {
	t.Parallel()
	made := 0
	property := func(t *rapid.T) {
		s, err := engine.Open(enginetest.CrowdedCluster(t), evictingPolicy(t), nil)
		require.NoError(t, err)
		v := s.View()
		if v.Tasks.Len() == 0 {
			return
		}
		var marks []int
		task := rapid.Map(rapid.IntRange(0, v.Tasks.Len()-1), func(i int) model.TaskID { return model.TaskID(i) })
		move := func() {
			moved := task.Draw(t, "moved")
			switch rapid.IntRange(0, 4).Draw(t, "move") {
			case 0:
				_ = s.Allocate(moved, model.NodeID(rapid.IntRange(0, len(v.Nodes)-1).Draw(t, "node")))
			case 1:
				_ = s.Deallocate(moved, rapid.SampledFrom([]model.Status{model.Pending, model.Releasing}).Draw(t, "to"))
			case 2:
				s.SetStatus(moved, rapid.SampledFrom([]model.Status{model.Pending, model.Running, model.Succeeded}).Draw(t, "status"))
			case 3:
				marks = append(marks, s.Mark())
			case 4:
				if n := len(marks); n > 0 {
					require.NoError(t, s.Rollback(marks[n-1]))
				}
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "claims") {
			for range rapid.IntRange(0, 3).Draw(t, "moves") {
				move()
			}
			one := task.Draw(t, "claimant")
			claim := policy.Claim{Tasks: []model.TaskID{one}, Room: policy.Room{Kind: rapid.SampledFrom([]policy.RoomKind{
				policy.WholeCluster, policy.AnyNodes,
			}).Draw(t, "room")}}
			plan, err := s.ReclaimPlan(&claim)
			require.NoError(t, err)
			claim.Candidates, err = s.Reclaim().Candidates(one)
			require.NoError(t, err)
			s.Order().SortVictims(one, claim.Candidates)
			want := s.Reclaim().Choose(&claim, false).Plan
			require.Equal(t, want == nil, plan == nil)
			if want == nil {
				continue
			}
			require.Equal(t, want.Potential == nil, plan.Potential == nil)
			require.Equal(t, []any{want.Made, want.Refusal, want.Victims, want.Nodes, want.Line},
				[]any{plan.Made, plan.Refusal, plan.Victims, plan.Nodes, plan.Line})
			if plan.Made && len(plan.Victims) > 0 {
				made++
			}
		}
	}
	// Few claims of a drawn cluster have a plan with victims.
	const enough, rounds = 10, 200
	for round := 0; made < enough && round < rounds; round++ {
		rapid.Check(t, property)
	}
	require.GreaterOrEqual(t, made, enough)
}
