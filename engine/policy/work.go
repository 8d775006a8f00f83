package policy

import (
	"math"
	"strconv"
)

// DefaultWork is the work that a question may take by default. It is a few seconds of one processor.
const DefaultWork = 1_000_000_000

// Work is the budget that a question has left. A unit is about one amount of one resource that is compared or added, or one task, job,
// queue or node that is looked at: a few nanoseconds. Costs are spent before the work is done.
type Work struct {
	spent, maximum int64
	// exceeded is the error of the first Use or Keep that was refused since the last call of Exceeded.
	exceeded error
	// book asks for memory; nil: there is enough. booked is what it gave and was not held yet.
	book   func(bytes int64) error
	booked int64
}

// NewWork returns work of which nothing is spent.
func NewWork(maximum int64) *Work { return &Work{maximum: maximum} }

// Spend takes units off, n times width of them, or returns a *WorkError and takes nothing if there are not as many. Of nil anything may be
// spent.
func (w *Work) Spend(n, width int) error {
	if w == nil {
		return nil
	}
	left := w.maximum - w.spent
	if n > 0 && width > 0 && int64(n) > left/int64(width) {
		return &WorkError{Spent: w.spent, N: n, Width: width, Maximum: w.maximum}
	}
	w.spent += int64(n) * int64(width)
	return nil
}

// Use is Spend for questions that have no error. If there are fewer units, it returns false and leaves none: the caller need not do the
// work, whatever is answered then is discarded, and the question fails with what Exceeded returns.
func (w *Work) Use(n, width int) bool {
	err := w.Spend(n, width)
	if err == nil {
		return true
	}
	w.fail(err)
	return false
}

// fail notes why a question fails, and leaves no work.
func (w *Work) fail(err error) {
	if w.exceeded == nil {
		w.exceeded = err
	}
	w.spent = w.maximum
}

// Book sets the function that is asked for memory of which the size is known only while a question is worked on. Its errors are those of
// Hold. Without one, there is enough memory.
func (w *Work) Book(book func(bytes int64) error) { w.book, w.booked = book, 0 }

// bookedAtOnce is how much memory is asked for at least, so that small parts are not asked for one by one.
const bookedAtOnce = 64 << 10

// Hold books memory before it is taken, or returns an error if there is none. It is given back after the question.
func (w *Work) Hold(bytes int) error {
	if w == nil || w.book == nil {
		return nil
	}
	if more := int64(bytes) - w.booked; more > 0 {
		more = max(more, bookedAtOnce)
		if err := w.book(more); err != nil {
			return err
		}
		w.booked += more
	}
	w.booked -= int64(bytes)
	return nil
}

// Keep is Hold for questions that have no error. If it returns false, the memory must not be taken, and the question fails as after a Use
// that was refused.
func (w *Work) Keep(bytes int) bool {
	if w.exhausted() {
		return false
	}
	if err := w.Hold(bytes); err != nil {
		w.fail(err)
		return false
	}
	return true
}

// Exceeded returns the error of the first Use or Keep that failed since Exceeded was called last, or nil.
func (w *Work) Exceeded() error {
	if w == nil || w.exceeded == nil {
		return nil
	}
	err := w.exceeded
	w.exceeded = nil
	return err
}

// exhausted reports whether a Use or Keep has failed, so that what is worked on will be discarded.
func (w *Work) exhausted() bool { return w != nil && w.exceeded != nil }

// Renew restores the initial amount. Memory that was booked is that of another question.
func (w *Work) Renew() { w.spent, w.exceeded, w.booked = 0, nil, 0 }

// Spent returns the units spent so far.
func (w *Work) Spent() int64 { return w.spent }

// Left returns the units that may still be spent, math.MaxInt64 if there is no bound.
func (w *Work) Left() int64 {
	if w == nil {
		return math.MaxInt64
	}
	return w.maximum - w.spent
}

// WorkError is the error of a question that costs more than it may: N times Width units beyond those that were spent.
type WorkError struct {
	Spent, Maximum int64
	N, Width       int
}

// Needed returns the units that the question would have cost so far.
func (e *WorkError) Needed() int64 {
	if e.N > 0 && e.Width > 0 && int64(e.N) > (math.MaxInt64-e.Spent)/int64(e.Width) {
		return math.MaxInt64
	}
	return e.Spent + int64(e.N)*int64(e.Width)
}

// Error returns the numbers.
func (e *WorkError) Error() string {
	return strconv.FormatInt(e.Spent, 10) + " units of work are done and " + strconv.Itoa(e.N) + " times " + strconv.Itoa(e.Width) +
		" more are needed; at most " + strconv.FormatInt(e.Maximum, 10) + " are allowed"
}
