package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestVictimsOfAQueueAreChosenOnceForAllItsClaimants compares with a choice for each claimant.
func TestVictimsOfAQueueAreChosenOnceForAllItsClaimants(t *testing.T) {
	victims := 0
	rapid.Check(t, func(t *rapid.T) {
		dividing := rapid.SampledFrom([]engine.Entry{{Plugin: proportion.Plugin{}}, {Plugin: capacity.Plugin{}}}).Draw(t, "plugin")
		tiers := []engine.Tier{{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}, {Plugin: conformance.Plugin{}}}, {dividing}}
		if rapid.Bool().Draw(t, "one tier") {
			tiers = []engine.Tier{append(tiers[0], dividing)}
		}
		s, err := engine.Open(enginetest.CrowdedCluster(t), engine.Policy{Walk: engine.Volcano, Tiers: tiers}, nil)
		require.NoError(t, err)
		var once, plainly []*explain.Explanation
		waiting := s.Waiting()
		require.NoError(t, explain.Jobs(s, waiting, true, func(e *explain.Explanation) error {
			once = append(once, e)
			return nil
		}))
		require.NoError(t, explain.Plainly(s, waiting, true, func(e *explain.Explanation) error {
			plainly = append(plainly, e)
			return nil
		}))
		require.Equal(t, plainly, once)
		for _, e := range once {
			for _, f := range e.Findings {
				victims += len(f.Tasks)
			}
		}
	})
	require.Positive(t, victims)
}
