// Package processor determines how many goroutines of the program may compute concurrently, and reserves processors of the Go runtime for
// the others.
package processor

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// added is the number of processors that Spare has added.
var added atomic.Int32

// variable sets GOMAXPROCS for any Go program.
const variable = "GOMAXPROCS"

// Spare raises GOMAXPROCS, unless the environment sets it. A program calls it once, before it starts to compute. While no more goroutines
// than Count compute, one processor of the runtime is then free for those that read and write connections, even while garbage is
// collected, and the operating system divides its processors among all of them, in short time slices where it can. Without it, what comes
// over the network waits until a goroutine that computes lets go of its processor, and the runtime asks for it only every 10 ms while
// others are ready to compute.
func Spare() {
	if os.Getenv(variable) != "" {
		return
	}
	count := runtime.GOMAXPROCS(0)
	if added.CompareAndSwap(0, int32(spare(count))) {
		runtime.GOMAXPROCS(count + spare(count))
		shorten()
	}
}

// spare returns how many processors to add to so many that compute. The collector of garbage takes a quarter of all of them, so one is left
// over where a quarter of the sum is less than what was added.
func spare(count int) int { return (count+2)/3 + 1 }

// Spared reports whether Spare has added processors.
func Spared() bool { return added.Load() > 0 }

// Count returns how many goroutines may compute at a time: GOMAXPROCS without what Spare has added.
func Count() int { return runtime.GOMAXPROCS(0) - int(added.Load()) }

// Yield lets other threads of the machine and other goroutines that are ready run first.
func Yield() {
	yieldThread()
	runtime.Gosched()
}

// lent is the number of goroutines that compute for Beside, but for its callers.
var lent atomic.Int32

// Beside calls run once for each number below n, and returns after all calls. Several goroutines do so: the caller, and as many others as
// are left of Count, one less for all callers together. A panic in a call is one of the caller, after the others.
func Beside(n int, run func(i int)) {
	var next atomic.Int64
	all := func() {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			run(int(i))
		}
	}
	goroutines := 1
	for goroutines < n && lend() {
		goroutines++
	}
	AtOnce(goroutines, func(i int) {
		if i > 0 {
			defer lent.Add(-1)
		}
		all()
	})
}

// lend takes a goroutine of those that may compute, false if there is none.
func lend() bool {
	if lent.Add(1) < int32(Count()) {
		return true
	}
	lent.Add(-1)
	return false
}

// AtOnce calls run with each number below n at the same time, 0 in the caller's goroutine, and returns after all calls. A panic in a call
// is one of the caller, after the others.
func AtOnce(n int, run func(i int)) {
	var others sync.WaitGroup
	var failed atomic.Pointer[any]
	for i := 1; i < n; i++ {
		others.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					failed.Store(&cause)
				}
			}()
			run(i)
		})
	}
	func() {
		defer others.Wait()
		run(0)
	}()
	if cause := failed.Load(); cause != nil {
		panic(*cause) //nolint:forbidigo // It is a panic already, and belongs to the caller.
	}
}
