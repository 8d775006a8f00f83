package main

import (
	"math"
	"runtime/debug"
)

const (
	// memoryOfTask and memoryOfCommand are, with room to spare, what a command keeps for each task of a cluster and besides.
	memoryOfTask    = 5 << 9
	memoryOfCommand = 48 << 20
)

// frugal has garbage collected once memory exceeds what a command about so many tasks needs, in place of once it has doubled. The result
// ends this. GOMEMLIMIT, if it is set, stays in force.
func frugal(tasks int) (end func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(int64(tasks)*memoryOfTask + memoryOfCommand)
	return func() { debug.SetMemoryLimit(math.MaxInt64) }
}
