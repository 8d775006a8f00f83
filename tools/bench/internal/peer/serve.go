package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ProfileVariable is the environment variable that makes a peer write cpu-PID.prof and heap-PID.prof into a directory.
const ProfileVariable = "BENCH_PROFILE"

// Serve runs a process that Start began: it listens on loopback, prints the address, serves, prints its use of memory and processor when
// asked, and ends at the end of its standard input.
func Serve(in io.Reader, out io.Writer, serve func(context.Context, net.Listener) error) error {
	profiled, err := profile(os.Getenv(ProfileVariable))
	if err != nil {
		return err
	}
	var configuration net.ListenConfig
	listener, err := configuration.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener) }()
	if _, err = fmt.Fprintln(out, listener.Addr()); err == nil {
		err = converse(in, out)
	}
	cancel()
	return errors.Join(err, <-served, profiled())
}

// converse answers each line with the usage so far.
func converse(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := json.NewEncoder(out).Encode(Used()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Used returns the resources that this process has used so far.
func Used() Usage {
	u := Usage{Peak: Peak(os.Getpid())}
	var system syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &system) == nil {
		u.CPU, u.Faults = time.Duration(system.Utime.Nano()+system.Stime.Nano()), system.Minflt
	}
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/allocs:objects"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples)
	u.Bytes, u.Objects, u.Collections = samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return u
}

// Peak returns the maximum resident memory of a process in bytes; 0 if the system does not report it. The value of getrusage would include
// the memory of the parent process.
func Peak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kibibytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kibibytes << 10
		}
	}
	return 0
}

// profile begins to profile into a directory, if one is given, and returns what ends it.
func profile(directory string) (func() error, error) {
	if directory == "" {
		return func() error { return nil }, nil
	}
	cpu, err := os.Create(filepath.Join(directory, fmt.Sprintf("cpu-%d.prof", os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		heap, err := os.Create(filepath.Join(directory, fmt.Sprintf("heap-%d.prof", os.Getpid())))
		if err != nil {
			return errors.Join(err, cpu.Close())
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(heap, 0), heap.Close(), cpu.Close())
	}, nil
}
