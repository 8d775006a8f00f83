package admission

import (
	"context"
	"sync"
	"time"
)

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
