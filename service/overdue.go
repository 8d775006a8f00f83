package service

import (
	"container/list"
	"sync"
	"time"
)

// overdue ends what lasts for longer than a limit that is the same for all. One timer serves them all, since what began first is overdue
// first: a timer of its own for each small call would cost a tenth of the call.
type overdue struct {
	limit time.Duration

	mutex sync.Mutex
	// pending holds lasting values in the order in which they began.
	pending list.List
	timer   *time.Timer
	// armed says that the timer runs.
	armed bool
}

type lasting struct {
	due time.Time
	end func()
}

// begin notes that something begins. end is called after the limit, unless done is called before with what begin returns.
func (o *overdue) begin(end func()) *list.Element {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch {
	case o.timer == nil:
		o.timer = time.AfterFunc(o.limit, o.check)
	case !o.armed:
		o.timer.Reset(o.limit)
	}
	o.armed = true
	return o.pending.PushBack(lasting{time.Now().Add(o.limit), end})
}

// done notes that something has ended.
func (o *overdue) done(e *list.Element) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	// It does nothing if check has removed the element.
	o.pending.Remove(e)
}

// check ends what is overdue, and looks again when the next is.
func (o *overdue) check() {
	for _, end := range o.take() {
		end()
	}
}

func (o *overdue) take() (ends []func()) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	for {
		first := o.pending.Front()
		if first == nil {
			o.armed = false
			return ends
		}
		l, _ := first.Value.(lasting)
		if left := l.due.Sub(now); left > 0 {
			o.timer.Reset(left)
			return ends
		}
		o.pending.Remove(first)
		ends = append(ends, l.end)
	}
}
