package processor

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slice is the time slice that threads of the program ask the operating system for.
const slice = 200 * time.Microsecond

// shorten asks the operating system for short time slices of all threads of the program, those to come included, because a thread that has
// just become ready to read a call waits for the end of the slice of one that computes. Linux obeys from version 6.12 on, and ignores it
// before.
func shorten() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if attributes, err := unix.SchedGetAttr(id, 0); err == nil && attributes.Policy == unix.SCHED_NORMAL {
			attributes.Runtime = uint64(slice)
			_ = unix.SchedSetAttr(id, attributes, 0)
		}
	}
}

// yieldThread offers the processor to other threads. There are more threads that compute or serve connections than processors, and a
// thread that has just become ready waits for the end of a time slice of 3 to 4 ms otherwise. The call is raw: the runtime would
// start one more thread in place of one that it believes blocked.
func yieldThread() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } //nolint:errcheck // It cannot fail.
