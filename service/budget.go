package service

import (
	"context"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// budget is memory that identities share. Whoever has as much as is left free gets no more, so that one may have a half of it, two a third
// each, and something is always left for who comes next.
type budget struct {
	// name is the setting that limits it.
	name  string
	limit int64
	// retry is when a caller who gets nothing is told to come again.
	retry time.Duration

	mutex sync.Mutex
	used  int64
	of    map[string]int64
	// waiting are claims in the order in which they came.
	waiting []*claim
}

// claim is what somebody waits for.
type claim struct {
	identity string
	bytes    int64
	granted  chan struct{}
}

func newBudget(name string, limit int64, retry time.Duration) *budget {
	return &budget{name: name, limit: limit, retry: max(retry, 10*time.Millisecond), of: map[string]int64{}}
}

// fits reports whether an identity may have that much more.
func (b *budget) fits(identity string, bytes int64) bool {
	return b.of[identity]+bytes <= b.limit-b.used-bytes
}

// take gives memory to an identity, or returns false.
func (b *budget) take(identity string, bytes int64) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.waiting) > 0 || !b.fits(identity, bytes) {
		return false
	}
	b.book(identity, bytes)
	return true
}

func (b *budget) book(identity string, bytes int64) {
	b.used += bytes
	b.of[identity] += bytes
}

// give takes memory back.
func (b *budget) give(identity string, bytes int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.used -= bytes
	if b.of[identity] -= bytes; b.of[identity] == 0 {
		delete(b.of, identity)
	}
	b.grant()
}

// wait gives memory to an identity once there is some, or returns why it cannot; patience below 0 is that of ctx alone.
func (b *budget) wait(ctx context.Context, identity string, bytes int64, patience time.Duration) error {
	if most := b.limit / 2; bytes > most {
		return wire.Exceeded(b.name, bytes, most, "the call would take "+strconv.FormatInt(bytes, 10)+
			" bytes while it is received, more than any may of what there is for all together")
	}
	c := b.claim(identity, bytes)
	select {
	case <-c.granted:
		return nil
	default:
	}
	if patience < 0 {
		patience = never
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
		err = b.busy()
	}
	if !b.withdraw(c) {
		b.give(identity, bytes)
	}
	return err
}

// busy is the fault of whoever gets nothing now.
func (b *budget) busy() error {
	return &wire.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED, Retry: b.retry,
		Text:     "the server is busy: too much is being received",
		Metadata: map[string]string{"limit": b.name, "maximum": strconv.FormatInt(b.limit, 10)},
	}
}

func (b *budget) claim(identity string, bytes int64) *claim {
	c := &claim{identity, bytes, make(chan struct{})}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.waiting = append(b.waiting, c)
	b.grant()
	return c
}

// grant serves who waits, in order. Who has nothing and does not fit is not overtaken: what is large would never get its turn.
func (b *budget) grant() {
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
func (b *budget) withdraw(c *claim) bool {
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

// usage returns what is taken.
func (b *budget) usage() int64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.used
}

// usageOf returns what an identity has taken.
func (b *budget) usageOf(identity string) int64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.of[identity]
}
