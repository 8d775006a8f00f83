package client

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// defaultAttempts bounds how often a question is asked in all.
	defaultAttempts = 5
	// patience is the first wait between two attempts, half of it by chance; each later one is twice as long.
	patience = 50 * time.Millisecond
	// budgetMost is how many attempts may be made again before a client has asked anything, budgetShare how many more with each question.
	budgetMost  = 100
	budgetShare = 0.2
)

// budget bounds the attempts that are made again by the questions that were asked.
type budget struct {
	mutex  sync.Mutex
	tokens float64
}

// asked notes a question's first attempt.
func (b *budget) asked() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.tokens = min(b.tokens+budgetShare, budgetMost)
}

// again reports whether another attempt is within the budget, and takes it.
func (b *budget) again() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// attempt counts the attempts at one question.
type attempt struct {
	client *Client
	kind   Kind
	n      int
	wait   time.Duration
}

func (c *Client) newAttempt(kind Kind) *attempt {
	c.budget.asked()
	return &attempt{client: c, kind: kind, n: 1, wait: patience}
}

// again waits until the question may be asked again after an error, and reports false if it is not to be: asking does not mend the error,
// it was asked often enough, or there is no time.
func (a *attempt) again(ctx context.Context, err error) bool {
	if a.n >= a.client.attempts || !passing(err) || ctx.Err() != nil {
		return false
	}
	pause := a.wait/2 + rand.N(a.wait/2) //nolint:gosec // G404: only to spread callers in time.
	if told := retryDelay(err); told > 0 {
		pause = told + rand.N(told) //nolint:gosec // G404: as above.
	}
	if deadline, limited := ctx.Deadline(); limited && time.Until(deadline) <= pause || !a.client.budget.again() {
		return false
	}
	if !sleep(ctx, pause) {
		return false
	}
	a.n++
	a.wait *= 2
	a.client.logger.LogAttrs(ctx, slog.LevelDebug, "repeating a question",
		slog.String("kind", string(a.kind)), slog.Int("attempt", a.n), slog.Any("error", err))
	count(ctx, a.client.counters.retries, attribute.String("kind", string(a.kind)))
	return true
}

// sleep reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// again asks until there is an answer, or an error that asking again does not mend. No question changes anything, so that it may be asked
// any number of times.
func again[A any](ctx context.Context, c *Client, kind Kind, ask func() (A, error)) (A, error) {
	a := c.newAttempt(kind)
	for {
		answer, err := ask()
		if err == nil || !a.again(ctx, err) {
			return answer, err
		}
	}
}

// passing reports whether asking again may help: a replica was lost, was too busy, or ended a session for its age.
func passing(err error) bool { return status.Code(err) == codes.Unavailable || busy(err) }

// busy reports whether the service has no room now. Its code says so: what is too large has another. gRPC's own limit of a message in
// this process has the same code and no ErrorInfo.
func busy(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
		_, told := detail.(*errdetails.ErrorInfo)
		return told
	})
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
