package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Reason returns the reason of an error of the service or of an answer; unspecified if it has none.
func Reason(err error) apportionv1.ErrorReason {
	return decode.ReasonOf(status.Convert(err).Proto())
}

// Violation is one error in the input.
type Violation struct {
	// Path of the field, such as `snapshot.jobs[17].queue`.
	Path string
	// Detail describes the error.
	Detail string
}

// Violations returns the errors in the input that an error lists, and their total number.
func Violations(err error) (listed []Violation, total int) {
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.BadRequest:
			for _, v := range detail.GetFieldViolations() {
				listed = append(listed, Violation{Path: v.GetField(), Detail: v.GetDescription()})
			}
		case *errdetails.ErrorInfo:
			if count, err := strconv.Atoi(detail.GetMetadata()["violations"]); err == nil {
				total = count
			}
		}
	}
	return listed, max(total, len(listed))
}

// called is an error of a call.
type called interface {
	error
	GRPCStatus() *status.Status
}

// Describe returns the text of an error: its violations, one per line, or its message. Of an error that wraps one of a call, the message of
// that one stands where its text would.
func Describe(err error) string {
	listed, total := Violations(err)
	if len(listed) == 0 {
		if of, ok := errors.AsType[called](err); ok {
			return strings.Replace(err.Error(), of.Error(), of.GRPCStatus().Message(), 1)
		}
		return err.Error()
	}
	lines := make([]string, 0, len(listed)+1)
	for _, v := range listed {
		lines = append(lines, v.Path+": "+v.Detail)
	}
	if total > len(listed) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(listed)))
	}
	return strings.Join(lines, "\n")
}

const (
	// patience is the first wait between two attempts, half of which is random; each later wait is twice as long.
	patience = 50 * time.Millisecond
	// budgetMost is the number of retries that a new client may make, and budgetShare the number by which each question increases it.
	budgetMost  = 100
	budgetShare = 0.2
	// refusalsOver is the number of attempts over which refusals are averaged. leastAccepted is the part that counts as accepted if a
	// service refuses all.
	refusalsOver, leastAccepted = 32, 0.1
	// mostRefused is the part of refusals from which on questions wait even if the budget allows retries: none is made where the deadline
	// of a question comes before it.
	mostRefused = 0.5
)

// budget limits the number of retries by the number of questions, and the rate of questions once too many are refused.
type budget struct {
	mutex  sync.Mutex
	tokens float64
	// later is the end of the wait that a service last asked for when there was no retry.
	later time.Time
	// refusals is the part of the last attempts that a service refused because it was busy: a mean in which newer ones weigh more.
	refusals float64
}

// ended counts the result of an attempt.
func (b *budget) ended(err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	was := 0.0
	if busy(err) {
		was = 1
	}
	b.refusals += (was - b.refusals) / refusalsOver
}

// asked counts a question's first attempt. It returns for how long the question should wait, so that callers in a loop do not take the
// processor time of an overloaded service with questions that it refuses: the longer, the more of them it refuses.
func (b *budget) asked() (pause time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.tokens = min(b.tokens+budgetShare, budgetMost)
	if b.tokens >= 1 && b.refusals < mostRefused {
		return 0
	}
	left := time.Until(b.later)
	if left <= 0 {
		return 0
	}
	left = time.Duration(float64(left) / max(1-b.refusals, leastAccepted))
	return left + rand.N(left) //nolint:gosec // G404: only to spread callers in time.
}

// again reports whether the budget allows a retry, and counts it.
func (b *budget) again() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// refused notes that a service asked a caller to wait, and that there is no retry.
func (b *budget) refused(wait time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.later = time.Now().Add(wait)
}

// attempt counts the attempts at one question.
type attempt struct {
	client *Client
	kind   Kind
	n      int
	wait   time.Duration
}

// newAttempt returns the first attempt at a question. While most questions are refused, it waits first, at most for half of the time that
// the question has, unless a fallback answers the question.
func (c *Client) newAttempt(ctx context.Context, kind Kind) *attempt {
	if pause := c.budget.asked(); pause > 0 && c.fallbacks[kind] == "" {
		if deadline, limited := ctx.Deadline(); limited {
			pause = min(pause, time.Until(deadline)/2)
		}
		sleep(ctx, pause)
	}
	return &attempt{client: c, kind: kind, n: 1, wait: patience}
}

// again waits until the question may be asked again after an error. It returns false if the call must not be repeated: a retry would not
// help, the maximum number of attempts is reached, or there is no time.
func (a *attempt) again(ctx context.Context, err error) bool {
	if a.n >= a.client.attempts || !passing(err) || ctx.Err() != nil {
		return false
	}
	pause := a.wait/2 + rand.N(a.wait/2) //nolint:gosec // G404: only to spread callers in time.
	if told := retryDelay(err); told > 0 {
		pause = told + rand.N(told) //nolint:gosec // G404: as above.
	}
	deadline, limited := ctx.Deadline()
	if limited && time.Until(deadline) <= pause || !a.client.budget.again() {
		a.client.budget.refused(retryDelay(err))
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

// sleep returns false if the context ended first.
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

// again asks until there is an answer, or an error for which a retry does not help. Questions change nothing, so they can be repeated.
func again[A any](ctx context.Context, c *Client, kind Kind, ask func() (A, error)) (A, error) {
	a := c.newAttempt(ctx, kind)
	for {
		answer, err := ask()
		c.budget.ended(err)
		if err == nil || !a.again(ctx, err) {
			return answer, err
		}
	}
}

// passing reports whether a retry may help: a replica was lost, was too busy, or ended a session because of its age.
func passing(err error) bool { return status.Code(err) == codes.Unavailable || busy(err) }

// busy reports whether the service is overloaded. A request that is too large has another code. The error of gRPC's own message limit in
// this process has the same code but no ErrorInfo.
func busy(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
		_, told := detail.(*errdetails.ErrorInfo)
		return told
	})
}

// longestDelay is the longest delay for which a service is believed.
const longestDelay = time.Hour

// retryDelay returns the delay before a retry that a service asks for; 0: none.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if found, ok := detail.(*errdetails.RetryInfo); ok {
			return min(max(found.GetRetryDelay().AsDuration(), 0), longestDelay)
		}
	}
	return 0
}

const (
	defaultDeadline       = 30 * time.Second
	defaultUploadDeadline = 2 * time.Minute
)

// within returns the context of one question, with its deadline.
func (c *Client) within(ctx context.Context, kind Kind) (context.Context, context.CancelFunc) {
	if d, ok := c.deadlines[kind]; ok {
		return context.WithTimeout(ctx, d)
	}
	if _, limited := ctx.Deadline(); limited || c.remote == nil {
		return ctx, func() {}
	}
	if kind == KindUpload {
		return context.WithTimeout(ctx, defaultUploadDeadline)
	}
	return context.WithTimeout(ctx, defaultDeadline)
}
