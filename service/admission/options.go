package admission

import (
	"runtime"
	"time"
)

// Options say how much work a Controller admits where more comes than can be done. The zero value is usable.
type Options struct {
	// Running is how many calls are worked on at a time. 0: as many as there are processors.
	Running int
	// Reserve is how many more may be, one of each identity that has none under way. 0: as many as Running.
	Reserve int
	// Memory bounds, by an estimate made beforehand, what the calls that are worked on take. 0: 2 GiB.
	Memory int64
	// Waiting is how many calls may wait for their turn, Wait for how long. 0: 1,000 and a quarter of a second.
	Waiting int
	Wait    time.Duration
	// Calls bounds the unary calls and uploads that have begun, received or not. 0: 2,000.
	Calls int
	// Receiving bounds what messages take from when their length is known until their calls are answered. 0: 512 MiB.
	Receiving int64
}

// Complete replaces what is not given by its default.
func (o *Options) Complete() {
	o.Running = orDefault(o.Running, runtime.GOMAXPROCS(0))
	o.Reserve = orDefault(o.Reserve, o.Running)
	o.Memory = orDefault(o.Memory, 2<<30)
	o.Waiting = orDefault(o.Waiting, 1000)
	o.Wait = orDefault(o.Wait, 250*time.Millisecond)
	o.Calls = orDefault(o.Calls, 2000)
	o.Receiving = orDefault(o.Receiving, 512<<20)
}

func orDefault[N int | int64 | time.Duration](given, otherwise N) N {
	if given <= 0 {
		return otherwise
	}
	return given
}
