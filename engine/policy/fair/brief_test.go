package fair

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// runsOf splits candidates where the next is of another queue.
func (s *State) runsOf(candidates []model.TaskID) []policy.QueueTasks {
	var lists []policy.QueueTasks
	for from, i := 0, 1; i <= len(candidates); i++ {
		if i == len(candidates) || s.v.QueueOf(candidates[i]) != s.v.QueueOf(candidates[from]) {
			lists = append(lists, policy.QueueTasks{Queue: s.v.QueueOf(candidates[from]), Tasks: candidates[from:i]})
			from = i
		}
	}
	return lists
}

// TestABriefPlanIsThePlan of every block in every kind of room, in every state of clusters that run to rest, with memory and turns and
// without.
func TestABriefPlanIsThePlan(t *testing.T) {
	t.Parallel()
	made, refused := 0, 0
	compare := func(r *Rest, claim policy.Claim) {
		plan, brief := r.Plan(&claim, nil), r.PlanBriefly(&claim, r.runsOf(claim.Candidates))
		require.LessOrEqual(t, brief.Considered, lines*len(claim.Candidates))
		require.Equal(t, plan.Potential == nil, brief.Potential == nil)
		if plan.Made {
			fall, rise := plan.Potential()
			fallBriefly, riseBriefly := brief.Potential()
			require.Equal(t, fmt.Sprint(fall), fmt.Sprint(fallBriefly))
			require.Equal(t, fmt.Sprint(rise), fmt.Sprint(riseBriefly))
			made++
		} else {
			refused++
		}
		plan.Potential, brief.Potential, plan.Considered, brief.Considered = nil, nil, 0, 0
		require.Equal(t, plan, brief)
	}
	play := func(c *cluster) {
		r := &Rest{State: c.open(t)}
		for moves := true; moves; moves = r.move() {
			for _, q := range r.Order() {
				for _, job := range r.Blocks(q) {
					for _, block := range [][]model.TaskID{job.Gang, job.Loose[:min(1, len(job.Loose))]} {
						if len(block) == 0 {
							continue
						}
						for _, kind := range []policy.RoomKind{policy.WholeCluster, policy.OneNode, policy.AnyNodes} {
							if kind == policy.OneNode && len(c.nodes) == 0 {
								continue
							}
							compare(r, policy.Claim{Tasks: block, Candidates: r.candidates(), Room: policy.Room{Kind: kind}})
						}
					}
				}
			}
		}
	}
	for i := range uint64(*runs) {
		d := drawFrom(*seed + i)
		play(d.busy())
		play(drawFrom(*seed + i).remembering())
		play(drawTurns(*seed + i))
	}
	require.Positive(t, made)
	require.Positive(t, refused)
	t.Logf("%d plans made, %d refused", made, refused)
}
