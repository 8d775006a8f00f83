package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/internal/test/raced"
)

// swept are the arguments of a sweep of twelve runs: policies, half-lives and orders of days.
var swept = []string{
	"rehearse", "-f", filepath.Join("..", "..", "examples", "clusters", "research"), "--trace",
	filepath.Join("..", "..", "examples", "traces", "week.csv"), "--every", "6h", "--policy", "proportion", "--policy", "fair",
	"--half-life", "none", "--half-life", "24h", "--seed", "0,1,2,3",
}

// shard is a process that takes one of three shards, as the pod of an Indexed Job does.
func shard(t *testing.T, results string, index int) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	binary, err := exec.LookPath("apportion")
	require.NoError(t, err, "testscript puts it there")
	command := exec.CommandContext(t.Context(), binary, append(swept, "--results", results, "--shard", "auto/3", "-o", "json")...)
	command.Env = append(os.Environ(), "GOMAXPROCS=1", "JOB_COMPLETION_INDEX"+"="+strconv.Itoa(index))
	out := &bytes.Buffer{}
	command.Stdout, command.Stderr = out, out
	require.NoError(t, command.Start())
	return command, out
}

// TestShardsGiveTheReportOfOneProcessAlsoIfOneIsKilled runs three shards as processes at the same time, of which one is killed as soon as
// it has a result, and once more.
func TestShardsGiveTheReportOfOneProcessAlsoIfOneIsKilled(t *testing.T) {
	if raced.On {
		t.Skip("processes are of one goroutine here")
	}
	results := filepath.Join(t.TempDir(), "results")
	first, _ := shard(t, results, 0)
	second, _ := shard(t, results, 1)
	require.NoError(t, first.Wait())
	require.NoError(t, second.Wait())
	done := func() int {
		files, err := filepath.Glob(filepath.Join(results, "run-*.json"))
		require.NoError(t, err)
		return len(files)
	}
	require.Equal(t, 8, done())

	killed, _ := shard(t, results, 2)
	require.Eventually(t, func() bool { return done() > 8 }, 5*time.Minute, time.Millisecond)
	// It may have ended on a machine that looks away for long enough.
	_ = killed.Process.Kill()
	_ = killed.Wait()
	kept := done() - 8
	if kept < 4 {
		var problems bytes.Buffer
		require.Equal(t, cli.ExitUsage, run(t.Context(), []string{"rehearse", "merge", results}, nil, &bytes.Buffer{}, &problems))
		require.Contains(t, problems.String(), "run these shards again: 3/3")
	}

	again, said := shard(t, results, 2)
	require.NoError(t, again.Wait())
	require.Contains(t, said.String(), `"before": `+strconv.Itoa(kept))
	require.Equal(t, 12, done())
	for _, format := range []string{cli.FormatTable, cli.FormatJSON, cli.FormatYAML} {
		require.Equal(t, outputOf(t, cli.ExitYes, append(swept, "-o", format)...), outputOf(t, cli.ExitYes, "rehearse", "merge", results, "-o", format))
	}
	directory := t.TempDir()
	file := func(name string) string { return filepath.Join(directory, name) }
	outputOf(t, cli.ExitYes, append(swept, "--report", file("one.html"), "--plot", file("one.svg"))...)
	outputOf(t, cli.ExitYes, "rehearse", "merge", results, "--report", file("merged.html"), "--plot", file("merged.svg"))
	for _, kind := range []string{".html", ".svg"} {
		one, err := os.ReadFile(file("one" + kind))
		require.NoError(t, err)
		merged, err := os.ReadFile(file("merged" + kind))
		require.NoError(t, err)
		require.Equal(t, string(one), string(merged))
	}
}
