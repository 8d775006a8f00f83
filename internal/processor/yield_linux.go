package processor

import "syscall"

// yieldThread offers the processor to other threads. There are more threads that compute or serve connections than processors, and a
// thread that has just become ready waits for the end of a time slice of 3 to 4 ms otherwise. The call is raw: the runtime would
// start one more thread in place of one that it believes blocked.
func yieldThread() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } //nolint:errcheck // It cannot fail.
