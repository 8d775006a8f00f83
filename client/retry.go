package client

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// attempts bounds how often a question is asked in all, and patience the first wait between two of them; each later one may be twice as
// long.
const (
	attempts = 5
	patience = 20 * time.Millisecond
)

// again asks until there is an answer, or an error that asking again does not mend. No question changes anything, so that it may be asked
// any number of times; gRPC itself does not repeat calls that are larger than its retry buffer, or that a replica had begun to answer.
func again[A any](ctx context.Context, ask func() (A, error)) (A, error) {
	wait := patience
	for n := 1; ; n++ {
		answer, err := ask()
		if err == nil || n == attempts || !passing(err) {
			return answer, err
		}
		pause := wait/2 + rand.N(wait/2) //nolint:gosec // G404: only to spread callers in time.
		if told := retryDelay(err); told > 0 {
			pause = told + rand.N(told) //nolint:gosec // G404: as above.
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		}
		wait *= 2
	}
}

// passing reports whether a replica was lost, or was too busy and said when to come again.
func passing(err error) bool {
	return status.Code(err) == codes.Unavailable || status.Code(err) == codes.ResourceExhausted && retryDelay(err) > 0
}

// retryDelay is when a service asks to be asked again; 0: it does not say.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if found, ok := detail.(*errdetails.RetryInfo); ok {
			return found.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
