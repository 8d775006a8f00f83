//go:build unix

package main

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// slice is the period in which a process runs and pauses once.
const slice = 20 * time.Millisecond

// throttle lets a process run for a share of the time alone, by stopping and continuing it, until the function that it returns is called.
// So several of them, a proxy and a client run on one machine without taking each other's processor time. With a share of 0 it is stopped.
func throttle(process *os.Process, share float64) (release func()) {
	if share >= 1 {
		return func() {}
	}
	if share <= 0 {
		_ = process.Signal(syscall.SIGSTOP)
		return func() { _ = process.Signal(syscall.SIGCONT) }
	}
	ended, held := make(chan struct{}), sync.WaitGroup{}
	run := time.Duration(share * float64(slice))
	held.Go(func() {
		// The signal has no effect on a process that has ended.
		defer func() { _ = process.Signal(syscall.SIGCONT) }()
		for {
			for _, part := range []struct {
				signal syscall.Signal
				time   time.Duration
			}{{syscall.SIGCONT, run}, {syscall.SIGSTOP, slice - run}} {
				_ = process.Signal(part.signal)
				select {
				case <-ended:
					return
				case <-time.After(part.time):
				}
			}
		}
	})
	return func() {
		close(ended)
		held.Wait()
	}
}
