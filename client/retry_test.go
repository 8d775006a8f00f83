package client

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

func TestAWholeCallIsTriedAgainWhereThatMayHelp(t *testing.T) {
	lost := status.Error(codes.Unavailable, "lost")
	busy := status.FromProto(decode.Status(&decode.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Retry: time.Second,
	})).Err()
	full := status.FromProto(decode.Status(&decode.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED,
	})).Err()
	tooLarge := status.FromProto(decode.Status(decode.Exceeded("steps", 2, 1, "too many steps"))).Err()
	tooLong := status.Error(codes.ResourceExhausted, "grpc: received message larger than max")
	for name, tc := range map[string]struct {
		errors        []error
		asked         int
		least, utmost time.Duration
		err           error
	}{
		"an answer":                      {nil, 1, 0, 0, nil},
		"a replica that was lost":        {[]error{lost}, 2, 25 * time.Millisecond, 50 * time.Millisecond, nil},
		"a replica that is busy":         {[]error{busy, busy}, 3, 2 * time.Second, 4 * time.Second, nil},
		"a replica that is full":         {[]error{full}, 2, 25 * time.Millisecond, 50 * time.Millisecond, nil},
		"a question that is too large":   {[]error{tooLarge}, 1, 0, 0, tooLarge},
		"an answer beyond gRPC's limit":  {[]error{tooLong}, 1, 0, 0, tooLong},
		"all replicas that are lost":     {[]error{lost, lost, lost, lost, lost}, 5, 375 * time.Millisecond, 750 * time.Millisecond, lost},
		"a fault of the question itself": {[]error{lost, status.Error(codes.InvalidArgument, "no")}, 2, 25 * time.Millisecond, 50 * time.Millisecond, status.Error(codes.InvalidArgument, "no")},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := patient()
			began, asked := time.Now(), 0
			_, err := again(t.Context(), c, KindShares, func() (int, error) {
				asked++
				if asked <= len(tc.errors) {
					return 0, tc.errors[asked-1]
				}
				return 1, nil
			})
			require.Equal(t, tc.err, err, name)
			require.Equal(t, tc.asked, asked, name)
			require.GreaterOrEqual(t, time.Since(began), tc.least, name)
			require.LessOrEqual(t, time.Since(began), tc.utmost, name)
		})
	}
}

func TestNobodyTriesAgainForACallerThatHasGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked, c := 0, patient()
	_, err := again(ctx, c, KindShares, func() (int, error) {
		asked++
		cancel()
		return 0, status.Error(codes.Unavailable, "lost")
	})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, 1, asked)
}

// patient is a client that asks again, and has no server.
func patient(opts ...Option) *Client {
	c := InProcess(append([]Option{WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	c.budget.tokens = budgetMost
	return c
}

func TestThereIsABudgetForAskingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := patient()
		asked := 0
		ask := func(questions int) int {
			asked = 0
			for range questions {
				_, err := again(t.Context(), c, KindShares, func() (int, error) {
					asked++
					return 0, status.Error(codes.Unavailable, "lost")
				})
				require.Equal(t, codes.Unavailable, status.Code(err))
			}
			return asked
		}
		require.InDelta(t, 1000+budgetMost+1000*budgetShare, ask(1000), 5, "all that was saved, and a fifth of each question")
		require.InDelta(t, 1000+1000*budgetShare, ask(1000), 5, "a fifth of each question")
	})
}

func TestCallersInALoopWaitWhileMostOfTheirQuestionsAreRefused(t *testing.T) {
	const delay = 250 * time.Millisecond
	busy := status.FromProto(decode.Status(&decode.Fault{Code: codes.ResourceExhausted, Retry: delay})).Err()
	for name, tc := range map[string]struct {
		options  []Option
		deadline time.Duration
		paced    bool
	}{
		"callers without a deadline": {nil, time.Hour, true},
		"callers with a fallback":    {[]Option{WithFallback(FallbackEngine)}, time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := patient(tc.options...)
			ask := func(err error) (asked int) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				_, _ = again(ctx, c, KindShares, func() (int, error) { asked++; return 0, err })
				return asked
			}
			for range 2 * budgetMost {
				c.budget.again()
			}
			began, asked := time.Now(), 0
			for range 100 {
				asked += ask(busy)
			}
			if !tc.paced {
				require.LessOrEqual(t, time.Since(began), time.Duration(asked-100)*2*delay, "%s: the retries within the budget", name)
				return
			}
			require.Greater(t, time.Since(began), time.Duration(asked)*delay/2, name)
			for range int(2 / budgetShare) {
				ask(nil)
			}
			began = time.Now()
			ask(nil)
			require.Zero(t, time.Since(began), "%s: the service answers again", name)
		})
	}
}

func TestCallersInALoopWaitForHalfOfTheTimeThatTheyHave(t *testing.T) {
	const delay, deadline = 250 * time.Millisecond, 100 * time.Millisecond
	busy := status.FromProto(decode.Status(&decode.Fault{Code: codes.ResourceExhausted, Retry: delay})).Err()
	synctest.Test(t, func(t *testing.T) {
		c := patient()
		for range 2 * budgetMost {
			c.budget.again()
		}
		began, asked := time.Now(), 0
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			_, err := again(ctx, c, KindShares, func() (int, error) { asked++; return 0, busy })
			cancel()
			require.Equal(t, busy, err, "each question is asked")
		}
		require.Equal(t, 100, asked)
		require.LessOrEqual(t, time.Since(began), 100*deadline/2)
		require.Greater(t, time.Since(began), 70*deadline/2, "but for a fifth, which the budget allows at once")
	})
}

func TestAQuestionWithoutTimeForAnotherAttemptEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		busy := status.FromProto(decode.Status(&decode.Fault{Code: codes.ResourceExhausted, Retry: 2 * time.Second})).Err()
		began := time.Now()
		_, err := again(ctx, patient(), KindShares, func() (int, error) { return 0, busy })
		require.Equal(t, busy, err)
		require.Zero(t, time.Since(began))
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{1, 3} {
			asked := 0
			_, err := again(t.Context(), patient(WithAttempts(n)), KindShares, func() (int, error) {
				asked++
				return 0, status.Error(codes.Unavailable, "lost")
			})
			require.Error(t, err)
			require.Equal(t, n, asked)
		}
	})
}
