package admission

import (
	"time"

	"github.com/apportion/apportion/internal/processor"
)

// Options configure how much work a Controller admits. Zero fields have the values of DefaultOptions.
type Options struct {
	// Running is the number of calls that run concurrently. 0: the number of processors.
	Running int
	// Reserve is the number of further calls that may begin, one of each tenant without running work, until longer work yields. 0: 4 for
	// each of Running.
	Reserve int
	// Memory limits the estimated memory of running calls. An eighth of it is reserved for calls that take at most an eighth of that.
	Memory int64
	// Waiting is the maximum number of waiting calls, Wait their maximum waiting time.
	Waiting int
	Wait    time.Duration
	// Calls limits the unary calls and uploads that have begun, whether or not they are received.
	Calls int
	// Receiving limits the memory of messages from when their length is known until their calls are answered.
	Receiving int64
	// Answers limits the memory of answers until the transport has sent them.
	Answers int64
}

// DefaultOptions returns the default options.
func DefaultOptions() Options {
	return Options{Memory: 2 << 30, Waiting: 1000, Wait: 250 * time.Millisecond, Calls: 2000, Receiving: 512 << 20, Answers: 512 << 20}
}

// Complete replaces values that are not above zero by their defaults.
func (o *Options) Complete() {
	d := DefaultOptions()
	o.Running = orDefault(o.Running, processor.Count())
	o.Reserve = orDefault(o.Reserve, 4*o.Running)
	o.Memory = orDefault(o.Memory, d.Memory)
	o.Waiting = orDefault(o.Waiting, d.Waiting)
	o.Wait = orDefault(o.Wait, d.Wait)
	o.Calls = orDefault(o.Calls, d.Calls)
	o.Receiving = orDefault(o.Receiving, d.Receiving)
	o.Answers = orDefault(o.Answers, d.Answers)
}

func orDefault[N int | int64 | time.Duration](given, otherwise N) N {
	if given <= 0 {
		return otherwise
	}
	return given
}
