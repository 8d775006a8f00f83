package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/apportion/apportion/bench/internal/peer"
)

// startBounded starts a server on one processor, with the sum of what it may book as Go's memory limit.
func startBounded(ctx context.Context) (*peer.Peer, error) {
	server, err := peer.Start(ctx, peer.Bounded, "GOMEMLIMIT="+strconv.Itoa(sum), "GOMAXPROCS=1")
	if err != nil || !pinned() {
		return server, err
	}
	//nolint:gosec // The process that was just started.
	if out, err := exec.CommandContext(ctx, tasksetName, "-a", "-c", "-p", "0", strconv.Itoa(server.PID())).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %s", tasksetName, err, out), server.Stop())
	}
	return server, nil
}

// processorTime is the processor time in seconds that a server has taken so far; 0 where the system does not tell. The server itself is not
// asked: when it is overloaded its answer would hold up the generator.
func processorTime(server *peer.Peer) float64 {
	const user, system, ticks = 11, 12, 100
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.PID()))
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
