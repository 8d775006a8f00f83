package admission

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// BudgetOptions configure a Budget.
type BudgetOptions struct {
	// Name of the setting that limits the budget; errors contain it.
	Name string
	// Bytes is the limit.
	Bytes int64
	// Retry is the retry delay for a refused caller, at least 10 ms.
	Retry time.Duration
	// Purpose completes "too much is" in the error of a refused caller, such as "being received".
	Purpose string
}

// Budget is memory shared by identities. An identity gets no more once it has as much as is free: one identity may have half of the budget,
// two a third each, so that a part always stays free for the next one.
type Budget struct {
	options BudgetOptions

	mutex sync.Mutex
	used  int64
	of    map[string]int64
	// waiting holds claims in the order in which they came.
	waiting []*claim
}

// claim is the memory for which a caller waits.
type claim struct {
	identity string
	bytes    int64
	granted  chan struct{}
}

// NewBudget returns an unused budget.
func NewBudget(o BudgetOptions) *Budget {
	o.Retry = max(o.Retry, shortestRetry)
	return &Budget{options: o, of: map[string]int64{}}
}

const shortestRetry = 10 * time.Millisecond

// fits reports whether an identity may have so many bytes more.
func (b *Budget) fits(identity string, bytes int64) bool {
	return b.of[identity]+bytes <= b.options.Bytes-b.used-bytes
}

// Fits reports whether an identity could take this much now.
func (b *Budget) Fits(identity string, bytes int64) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.fits(identity, bytes)
}

// Most returns the maximum that one identity may ever have.
func (b *Budget) Most() int64 { return b.options.Bytes / 2 }

// Bytes returns the limit of the budget.
func (b *Budget) Bytes() int64 { return b.options.Bytes }

// Take books memory for an identity, or returns false.
func (b *Budget) Take(identity string, bytes int64) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.waiting) > 0 || !b.fits(identity, bytes) {
		return false
	}
	b.book(identity, bytes)
	return true
}

func (b *Budget) book(identity string, bytes int64) {
	b.used += bytes
	b.of[identity] += bytes
}

// Give releases memory.
func (b *Budget) Give(identity string, bytes int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.used -= bytes
	if b.of[identity] -= bytes; b.of[identity] == 0 {
		delete(b.of, identity)
	}
	b.grant()
}

// Forever is the patience of a caller that waits until its context ends.
const Forever time.Duration = -1

// Wait books memory for an identity as soon as it is available. It returns an OVERLOADED fault after patience, the cause of ctx if that
// ends first, and a LIMIT_EXCEEDED fault at once for more than Most.
func (b *Budget) Wait(ctx context.Context, identity string, bytes int64, patience time.Duration) error {
	if bytes > b.Most() {
		return decode.Exceeded(b.options.Name, bytes, b.Most(), "the call would take "+strconv.FormatInt(bytes, 10)+
			" bytes, more than one identity may have of what there is for all together")
	}
	if b.Take(identity, bytes) {
		return nil
	}
	c := b.claim(identity, bytes)
	select {
	case <-c.granted:
		return nil
	default:
	}
	if patience < 0 {
		patience = math.MaxInt64
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = b.Busy()
	}
	if !b.withdraw(c) {
		b.Give(identity, bytes)
	}
	return err
}

// Busy returns the fault of a caller that gets nothing now.
func (b *Budget) Busy() error {
	return &decode.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Retry: b.options.Retry,
		Text:     "the server is busy: too much is " + b.options.Purpose,
		Metadata: map[string]string{"limit": b.options.Name, "maximum": strconv.FormatInt(b.options.Bytes, 10)},
	}
}

func (b *Budget) claim(identity string, bytes int64) *claim {
	c := &claim{identity, bytes, make(chan struct{})}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.waiting = append(b.waiting, c)
	b.grant()
	return c
}

// grant serves claims in order. A claim of an identity that has nothing and does not fit is not overtaken: otherwise a large one would
// never be served.
func (b *Budget) grant() {
	left := b.waiting[:0]
	blocked := false
	for _, c := range b.waiting {
		if !blocked && b.fits(c.identity, c.bytes) {
			b.book(c.identity, c.bytes)
			close(c.granted)
			continue
		}
		blocked = blocked || b.of[c.identity] == 0
		left = append(left, c)
	}
	clear(b.waiting[len(left):])
	b.waiting = left
}

// withdraw takes a claim back, or returns false if it was granted.
func (b *Budget) withdraw(c *claim) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for i, other := range b.waiting {
		if other == c {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.grant()
			return true
		}
	}
	return false
}

// Used returns the booked bytes.
func (b *Budget) Used() int64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.used
}

// UsedBy returns the bytes booked by an identity.
func (b *Budget) UsedBy(identity string) int64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.of[identity]
}
