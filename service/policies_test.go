package service_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

func TestNamedPoliciesAreReplacedTogetherOrNotAtAll(t *testing.T) {
	proportion := parse(t, &apportionv1.Policy{}, `tiers { plugins { proportion {} } }`)
	capacity := parse(t, &apportionv1.Policy{}, `tiers { plugins { capacity {} } }`)
	faulty := parse(t, &apportionv1.Policy{}, `tiers { plugins {} }`)
	s, err := service.New(service.Options{Policies: map[string]*apportionv1.Policy{"a": proportion}})
	require.NoError(t, err)
	digest := func(name string) (string, error) {
		r := emptyRequest()
		r.Input.Rule = &apportionv1.Input_PolicyName{PolicyName: name}
		response, err := s.Direct().Simulate(t.Context(), r)
		return response.GetBasis().GetPolicyDigest(), err
	}
	first, err := digest("a")
	require.NoError(t, err)

	err = s.SetPolicies(map[string]*apportionv1.Policy{"a": capacity, "b": faulty, "c": faulty})
	require.ErrorContains(t, err, `policy "b"`)
	require.ErrorContains(t, err, `policy "c"`)
	same, err := digest("a")
	require.NoError(t, err)
	require.Equal(t, first, same)

	var asking sync.WaitGroup
	asking.Go(func() {
		for range 200 {
			_, err := digest("a")
			require.NoError(t, err)
		}
	})
	require.NoError(t, s.SetPolicies(map[string]*apportionv1.Policy{"a": capacity, "b": proportion}))
	second, err := digest("a")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	moved, err := digest("b")
	require.NoError(t, err)
	require.Equal(t, first, moved)
	asking.Wait()

	require.NoError(t, s.SetPolicies(nil))
	_, err = digest("a")
	requireFault(t, err, codes.NotFound, "POLICY_NOT_FOUND")
}
