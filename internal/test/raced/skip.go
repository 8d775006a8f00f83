package raced

import "testing"

// Skip skips a long test of work that is done in one goroutine, where the race detector has nothing to find.
func Skip(tb testing.TB) {
	tb.Helper()
	if On {
		tb.Skip("one goroutine: runs without the race detector")
	}
}
