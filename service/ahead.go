package service

import (
	"context"
	"sync"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// arrival is a batch that was received, or the end of the stream.
type arrival struct {
	batch *apportionv1.StepBatch
	// message is the booking for the batch.
	message message
	err     error

	// answers are those of the batch, and answerBytes about the size of their message, never less.
	answers     []*apportionv1.Answer
	answerBytes int64
}

// bytes is the size of the batch in the limit of batches that are read ahead.
func (a *arrival) bytes() int64 { return min(a.message.length, pendingBytes) }

const (
	// pendingBytes bounds the batches of one session that are read ahead of their answers.
	pendingBytes = 4 << 20
	// group is how many batches that have arrived are answered together at most: they share a turn, and their answers are written at once.
	group = 16
	// togetherBytes is the memory up to which another batch is answered in the same turn, togetherTime how long the one before may take.
	togetherBytes = 1 << 20
	togetherTime  = 100 * time.Microsecond
)

// ahead holds the batches of a session that are read ahead of their answers. One goroutine puts, another takes.
type ahead struct {
	// arrived receives a value when there is a message to take.
	arrived chan struct{}
	// left receives a value when there is room again.
	left chan struct{}
	// most is the maximum number of unanswered batches.
	most int
	// group is the memory of what was taken last.
	group [group]arrival

	mutex sync.Mutex
	queue []arrival
	// first is the position of the first entry in queue.
	first int
	// unanswered counts what was put and is not done, and bytes what it counts for.
	unanswered int
	bytes      int64
}

func newAhead(most int) *ahead {
	return &ahead{arrived: make(chan struct{}, 1), left: make(chan struct{}, 1), most: most}
}

// put adds what has arrived as soon as there is room for it, or returns false if ctx ends first.
func (a *ahead) put(ctx context.Context, next arrival) bool {
	for !a.add(&next) {
		select {
		case <-a.left:
		case <-ctx.Done():
			return false
		}
	}
	signal(a.arrived)
	return true
}

// add is put if there is room.
func (a *ahead) add(next *arrival) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.unanswered > 0 && (a.unanswered >= a.most || a.bytes+next.bytes() > pendingBytes) {
		return false
	}
	a.unanswered++
	a.bytes += next.bytes()
	if len(a.queue) == cap(a.queue) && a.first > 0 {
		// Messages that were taken make room for new ones.
		waiting := copy(a.queue, a.queue[a.first:])
		clear(a.queue[waiting:])
		a.queue, a.first = a.queue[:waiting], 0
	}
	a.queue = append(a.queue, *next)
	return true
}

// take returns the first of what has arrived, valid until it is called again.
func (a *ahead) take() []arrival {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	n := copy(a.group[:], a.queue[a.first:])
	clear(a.queue[a.first : a.first+n])
	if a.first += n; a.first == len(a.queue) {
		a.queue, a.first = a.queue[:0], 0
	} else {
		signal(a.arrived)
	}
	return a.group[:n]
}

// done makes room for other messages after these were answered.
func (a *ahead) done(answered []arrival) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.unanswered -= len(answered)
	for i := range answered {
		a.bytes -= answered[i].bytes()
	}
	signal(a.left)
}

// signal sends a value unless one waits to be received.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
