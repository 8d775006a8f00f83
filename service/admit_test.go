package service

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/admission"
)

func TestACallThatIsRefusedIsNotCountedOn(t *testing.T) {
	s, err := New(Options{Overload: admission.Options{Calls: 2}})
	require.NoError(t, err)
	const method = apportionv1.ApportionService_EvaluateShares_FullMethodName
	var ends []func()
	for range 2 {
		end, err := s.begin(t.Context(), method)
		require.NoError(t, err)
		ends = append(ends, end)
	}
	for range 5 {
		_, err := s.begin(t.Context(), method)
		require.ErrorContains(t, err, "too many calls have begun")
	}
	_, err = s.begin(t.Context(), apportionv1.ApportionService_RunSession_FullMethodName)
	require.NoError(t, err, "sessions are counted apart")
	for _, end := range ends {
		end()
	}
	require.Zero(t, s.admission.Usage().Begun)
	_, err = s.begin(t.Context(), method)
	require.NoError(t, err)
}
