package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/priority"
)

// TestAJobOfAQueueThatIsNotServedIsPlacedOnlyByEviction asks for plans with policies under which a job without a gang may be about to evict.
func TestAJobOfAQueueThatIsNotServedIsPlacedOnlyByEviction(t *testing.T) {
	policies := planPolicies()
	policies["fair without gang"] = engine.Policy{Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}}, {{Plugin: conformance.Plugin{}}, {Plugin: fair.Plugin{}}},
	}}
	evicting, roomy := 0, 0
	for i := range 4 * *planRuns {
		seed := *planSeed + uint64(i)
		for name, p := range policies {
			s, err := engine.Open(planCluster(t, seed, name == "tree"), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				if !s.IsOverused(s.View().Jobs.At(j).Queue, nil) {
					continue
				}
				at := fmt.Sprint(name, " ", seed, " ", s.View().Jobs.At(j).UID)
				for _, means := range []engine.Means{engine.PlaceOnly, engine.ByReclaim, engine.ByPreempt, engine.ByAny} {
					switch plan := ask(t, s, j, means); {
					case plan.Outcome == engine.PlanMade:
						require.NotEmpty(t, plan.Victims, at)
						evicting++
					case plan.Miss.Check == engine.CheckQueue && means >= engine.ByPreempt && name == "fair without gang":
						require.Equal(t, engine.NoPlan, plan.Outcome, at)
						require.NotEmpty(t, plan.Miss.Reasons, at)
						roomy++
					}
				}
			}
		}
	}
	require.Positive(t, evicting)
	require.Positive(t, roomy)
}
