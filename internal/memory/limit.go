// Package memory keeps Go's memory limit right in a program that maps memory outside Go's heap, which the limit does not count.
package memory

import (
	"math"
	"runtime/debug"
)

// Outside returns a function that lowers the memory limit of this process, as GOMEMLIMIT has set it, by so many bytes. Without a limit the
// function is nil.
func Outside() func(bytes int64) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return nil
	}
	return func(bytes int64) { debug.SetMemoryLimit(max(limit-bytes, 0)) }
}
