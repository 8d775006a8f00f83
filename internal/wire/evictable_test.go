package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// What is evicted for claimants together is the plan of the step reclaim, and a fault under a policy that makes no plans.
func TestWhatClaimantsMayEvictTogetherIsThePlanOfReclaim(t *testing.T) {
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := drawSnapshot(t, true)
		s := opened(t, snapshot, policy)
		number := uint32(0)
		for _, j := range snapshot.GetJobs() {
			var tasks []uint32
			for _, g := range j.GetGroups() {
				for range g.GetTasks() {
					tasks = append(tasks, number)
					number++
				}
			}
			if len(tasks) == 0 {
				continue
			}
			room := rapid.SampledFrom([]apportionv1.ClaimRoom{
				apportionv1.ClaimRoom_CLAIM_ROOM_UNSPECIFIED, apportionv1.ClaimRoom_CLAIM_ROOM_CLUSTER, apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES,
			}).Draw(t, "room")
			claimants := &apportionv1.Selector{Indices: tasks[:rapid.IntRange(1, len(tasks)).Draw(t, "claimants")]}
			plans := strings.Contains(policy, "fair")
			if !plans {
				// Only a policy that reclaims by plans lets several tasks claim.
				claimants.Indices = claimants.Indices[:1]
			}
			answers, err := s.DoAll([]*apportionv1.Step{
				{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: claimants, Room: room}}},
				{Step: &apportionv1.Step_Evictable{Evictable: &apportionv1.EvictableStep{Claimants: claimants, Room: room, Jointly: true}}},
			})
			require.NoError(t, err)
			reclaim, together := answers[0].GetReclaim(), answers[1].GetEvictable()
			if !plans {
				require.Contains(t, answers[1].GetError().String(), "the policy does not reclaim by plans")
				continue
			}
			require.True(t, proto.Equal(reclaim.GetPlan(), together.GetPlan()), "%v\n%v", reclaim, together)
			require.Len(t, together.GetReclaimVictims(), len(reclaim.GetVictims()))
			for i, v := range reclaim.GetVictims() {
				require.Equal(t, v.GetTask(), together.GetReclaimVictims()[i])
			}
			require.Empty(t, together.GetPreemptVictims())
			require.Empty(t, together.GetLeftClaimants())
		}
	})
}
