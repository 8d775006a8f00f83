// Package backlog is a queue of work, bounded by the number of items and by size. Callers bound the time that adding an item may wait.
package backlog

import (
	"context"
	"sync"
	"time"
)

// Queue holds items in the order in which they came. It may be used by any number of goroutines.
type Queue[T any] struct {
	maxItems int
	maxBytes int64

	mutex sync.Mutex
	ring  []held[T]
	first int
	items int
	bytes int64
	// room and work are given a token when there is some again.
	room, work chan struct{}
}

type held[T any] struct {
	item  T
	bytes int64
}

// New returns a queue with these bounds.
func New[T any](maxItems int, maxBytes int64) *Queue[T] {
	return &Queue[T]{
		maxItems: maxItems, maxBytes: maxBytes, ring: make([]held[T], maxItems), room: make(chan struct{}, 1), work: make(chan struct{}, 1),
	}
}

// Fits reports whether an item of this size could ever be held.
func (q *Queue[T]) Fits(bytes int64) bool { return bytes <= q.maxBytes }

// Work gets a token when an item has come.
func (q *Queue[T]) Work() <-chan struct{} { return q.work }

// Put adds an item if there is room.
func (q *Queue[T]) Put(item T, bytes int64) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.items == q.maxItems || q.bytes+bytes > q.maxBytes {
		return false
	}
	q.ring[(q.first+q.items)%q.maxItems] = held[T]{item, bytes}
	q.items++
	q.bytes += bytes
	signal(q.work)
	return true
}

// PutWithin is Put, but waits for room until the limit has passed or ctx ends.
func (q *Queue[T]) PutWithin(ctx context.Context, item T, bytes int64, limit time.Duration) bool {
	if q.Put(item, bytes) {
		return true
	}
	if !q.Fits(bytes) {
		return false
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-q.room:
			if q.Put(item, bytes) {
				// There may now be room for another waiting item.
				signal(q.room)
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Take removes the oldest item, if there is one.
func (q *Queue[T]) Take() (item T, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.items == 0 {
		return item, false
	}
	oldest := q.ring[q.first]
	q.ring[q.first] = held[T]{}
	q.first = (q.first + 1) % q.maxItems
	q.items--
	q.bytes -= oldest.bytes
	signal(q.room)
	return oldest.item, true
}

// Usage returns how many items are held, and their size.
func (q *Queue[T]) Usage() (items int, bytes int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.items, q.bytes
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
