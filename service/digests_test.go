package service

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

func TestDigestsThatAreRememberedAreThoseOfThePolicies(t *testing.T) {
	var digests policyDigests
	for i := range 2 * mostDigests {
		plugin := &apportionv1.Plugin{
			Plugin:   &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}},
			Disabled: slices.Repeat([]apportionv1.Decision{apportionv1.Decision(i)}, 1+i%64*50),
		}
		p := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}
		for range 2 {
			require.Equal(t, wire.PolicyDigest(p), digests.of(p))
		}
		require.LessOrEqual(t, len(digests.known), mostDigests)
	}
	for data := range digests.known {
		require.LessOrEqual(t, len(data), longestPolicy)
	}
}
