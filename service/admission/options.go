package admission

import (
	"time"

	"github.com/apportion/apportion/internal/processor"
)

// Options say how much work a Controller admits where more comes than can be done. What is zero has the value of
// DefaultOptions.
type Options struct {
	// Running is how many calls are worked on at a time. 0: as many as there are processors.
	Running int
	// Reserve is how many more may begin, one of each tenant that has none under way, until work that ran longer makes way. 0: 4 for each
	// of Running.
	Reserve int
	// Memory bounds, by an estimate made beforehand, what the calls that are worked on take. An eighth of it is for calls that take at most
	// an eighth of that.
	Memory int64
	// Waiting is how many calls may wait for their turn, Wait for how long.
	Waiting int
	Wait    time.Duration
	// Calls bounds the unary calls and uploads that have begun, received or not.
	Calls int
	// Receiving bounds what messages take from when their length is known until their calls are answered.
	Receiving int64
	// Answers bounds what answers take from when they are made until the transport has sent them.
	Answers int64
}

// DefaultOptions returns what a Controller admits where nothing else is said.
func DefaultOptions() Options {
	return Options{Memory: 2 << 30, Waiting: 1000, Wait: 250 * time.Millisecond, Calls: 2000, Receiving: 512 << 20, Answers: 512 << 20}
}

// Complete replaces what is not above zero by its default.
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
