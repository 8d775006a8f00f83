package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

func TestAFirstRequestNeedsNoPolicy(t *testing.T) {
	own, _ := catalogue.Preset("capacity")
	r := servicetest.Start(t, service.Options{Policies: map[string]*apportionv1.Policy{"fair": own}})
	for name := range catalogue.Presets() {
		named, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), name)})
		require.NoError(t, err, name)
		policy, _ := catalogue.Preset(name)
		if name == "fair" {
			policy = own
		}
		inline := servicetest.Named(servicetest.Snapshot(1), name)
		inline.Rule = &apportionv1.Input_Policy{Policy: policy}
		given, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inline})
		require.NoError(t, err, name)
		require.Equal(t, given.GetBasis().GetPolicyDigest(), named.GetBasis().GetPolicyDigest(), "the operator's policy goes before a preset of its name")
	}
}
