package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// The generator must not take from the server what it measures. Where there are several processors and taskset, the server has the first
// for itself.

const (
	tasksetName    = "taskset"
	pinnedVariable = "OVERLOAD_PINNED"
)

// pinned reports whether server and generator are kept apart.
func pinned() bool { return os.Getenv(pinnedVariable) != "" }

// alone reports whether they are not, and can be.
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
