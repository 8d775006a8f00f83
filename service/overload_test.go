package service

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestACallThatIsRefusedByItsHeadersIsNotCountedOn(t *testing.T) {
	s, err := New(Options{Overload: Overload{Calls: 2}})
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	const method = apportionv1.ApportionService_EvaluateShares_FullMethodName
	require.NoError(t, s.begin(ctx, method))
	require.NoError(t, s.begin(ctx, method))
	for range 5 {
		// gRPC never ends the context of a call that a tap refuses.
		require.ErrorContains(t, s.begin(context.Background(), method), "too many calls have begun")
	}
	require.NoError(t, s.begin(context.Background(), apportionv1.ApportionService_RunSession_FullMethodName), "sessions are counted apart")
	end()
	require.Eventually(t, func() bool { return s.begun.all.Load() == 0 }, 5*time.Second, time.Millisecond)
	require.NoError(t, s.begin(t.Context(), method))
}
