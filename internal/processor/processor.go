// Package processor tells how many goroutines of the program compute at a time, and keeps a processor of the Go runtime for the others.
package processor

import (
	"os"
	"runtime"
	"sync/atomic"
)

// spare is how many processors Spare has added.
var spare atomic.Int32

// variable sets GOMAXPROCS for any Go program.
const variable = "GOMAXPROCS"

// Spare raises GOMAXPROCS by one, unless the environment sets it. A program calls it once, before it starts to compute. While no more
// goroutines than Count compute, one processor of the runtime is then free for those that read and write connections, and the
// operating system divides its processors between the two. Without it, what comes over the network waits until a goroutine
// that computes lets go of its processor, and the runtime asks for it only every 10 ms while others are ready to compute.
func Spare() {
	if os.Getenv(variable) == "" && spare.CompareAndSwap(0, 1) {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Spared reports whether Spare has added a processor.
func Spared() bool { return spare.Load() > 0 }

// Count returns how many goroutines may compute at a time: GOMAXPROCS without what Spare has added.
func Count() int { return runtime.GOMAXPROCS(0) - int(spare.Load()) }
