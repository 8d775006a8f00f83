package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/apportion/apportion/internal/test/replica"
)

// launchBounded starts a server on one processor, with the sum of what it may book as Go's memory limit.
func launchBounded(ctx context.Context, binary string) (fleet, error) {
	if err := os.Setenv("GOMEMLIMIT", strconv.Itoa(sum)); err != nil {
		return nil, err
	}
	defer os.Unsetenv("GOMEMLIMIT") //nolint:errcheck // It was set.
	keep := func(*replica.Replica) {}
	program := binary
	if pinned() {
		program, keep = tasksetName, func(r *replica.Replica) { r.Before = []string{"-c", "0", binary} }
	}
	return launch(ctx, program, 1, keep, "--overload-memory", strconv.Itoa(memory),
		"--overload-receiving", strconv.Itoa(receiving), "--overload-calls", strconv.Itoa(calls))
}

// processorTime is the processor time in seconds that a server has taken so far; 0 where the system does not tell. The server itself is not
// asked: when it is overloaded its answer would hold up the generator.
func processorTime(pid int) float64 {
	const user, system, ticks = 11, 12, 100
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= system {
		return 0
	}
	total := 0.0
	for _, field := range fields[user : system+1] {
		n, _ := strconv.ParseFloat(field, 64)
		total += n / ticks
	}
	return total
}

// granted is the time in seconds that the first processor has given to a server that runs there, or had left for it: on a machine that does
// nothing else, about the time that has passed. 0 where the system does not tell.
func granted(pid int) float64 {
	const idle, waiting, ticks = 4, 5, 100
	used := processorTime(pid)
	data, err := os.ReadFile("/proc/stat")
	if err != nil || used == 0 {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "\ncpu0")
	line, _, _ := strings.Cut("cpu0"+rest, "\n")
	fields := strings.Fields(line)
	if len(fields) <= waiting {
		return 0
	}
	for _, field := range fields[idle : waiting+1] {
		n, _ := strconv.ParseFloat(field, 64)
		used += n / ticks
	}
	return used
}

// The generator must not take from the server what it measures. Where there are several processors and taskset, the server has the first
// for itself.

const (
	tasksetName    = "taskset"
	pinnedVariable = "OVERLOAD_PINNED"
)

// pinned reports whether server and generator are kept apart.
func pinned() bool { return os.Getenv(pinnedVariable) != "" }

// alone reports whether the output is not bounded yet and can be.
func alone() bool {
	_, err := exec.LookPath(tasksetName)
	return err == nil && runtime.NumCPU() > 1 && !pinned()
}

// keepOff starts this program anew, without the first processor. It returns only if it cannot.
func keepOff() error {
	taskset, err := exec.LookPath(tasksetName)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	arguments := append([]string{tasksetName, "-c", fmt.Sprintf("1-%d", runtime.NumCPU()-1), self}, os.Args[1:]...)
	return syscall.Exec(taskset, arguments, append(os.Environ(), pinnedVariable+"=1")) //nolint:gosec // G204: this program itself.
}
