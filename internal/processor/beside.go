package processor

import (
	"sync"
	"sync/atomic"
)

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
