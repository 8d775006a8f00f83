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

// Bookings is the memory of a budget that one call holds. The first bytes are free, because booking small messages is not worthwhile.
type Bookings struct {
	budget   *Budget
	identity string

	mutex sync.Mutex
	// spare is the rest of the free bytes, booked the bytes of the budget that the call holds.
	spare, booked int64
	closed        bool
}

// NewBookings returns empty bookings of a call, with this number of free bytes.
func NewBookings(b *Budget, identity string, spare int64) *Bookings {
	return &Bookings{budget: b, identity: identity, spare: spare}
}

// Booking is a part of what a call holds. The zero value is nothing.
type Booking struct {
	in    *Bookings
	bytes int64
	spare bool
}

// Book waits for memory as Budget.Wait does. Close releases what Release has not.
func (s *Bookings) Book(ctx context.Context, bytes int64, patience time.Duration) (Booking, error) {
	s.mutex.Lock()
	if bytes <= s.spare {
		s.spare -= bytes
		s.mutex.Unlock()
		return Booking{s, bytes, true}, nil
	}
	s.mutex.Unlock()
	if err := s.budget.Wait(ctx, s.identity, bytes, patience); err != nil {
		return Booking{}, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		s.budget.Give(s.identity, bytes)
		return Booking{}, context.Canceled
	}
	s.booked += bytes
	return Booking{s, bytes, false}, nil
}

// Close releases everything that the call holds.
func (s *Bookings) Close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed = true
	if s.booked > 0 {
		s.budget.Give(s.identity, s.booked)
	}
}

// Bytes returns the booked bytes.
func (b *Booking) Bytes() int64 { return b.bytes }

// Release releases the memory. Further calls do nothing.
func (b *Booking) Release() {
	in := b.in
	if in == nil {
		return
	}
	b.in = nil
	in.mutex.Lock()
	defer in.mutex.Unlock()
	switch {
	case b.spare:
		in.spare += b.bytes
	case !in.closed:
		in.booked -= b.bytes
		in.budget.Give(in.identity, b.bytes)
	}
}
