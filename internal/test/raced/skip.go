package raced

import "testing"

// Skip skips a long test of work that is done in one goroutine, where the race detector has nothing to find.
func Skip(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("one goroutine: runs without the race detector")
	}
}
