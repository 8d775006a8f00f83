package main

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/service"
)

var update = flag.Bool("update", false, "write the figures and the plot of the built-in day into the tree")

// output returns the output of the command.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, &out))
	return out.String()
}

func same(t *testing.T, file string, now []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, now, 0o600))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(now), "%s: run the test with -update if this is meant", file)
}

// The README shows the report between these lines.
const figuresBegin, figuresEnd = "<!-- figures -->\n```text\n", "```\n<!-- /figures -->\n"

func TestTheBuiltInDayHasTheFiguresThatTheReadmeShows(t *testing.T) {
	raced.Skip(t)
	plot := filepath.Join(t.TempDir(), "shares.svg")
	report := output(t, "-svg", plot)
	drawn, err := os.ReadFile(plot)
	require.NoError(t, err)
	same(t, "testdata/report.txt", []byte(report))
	same(t, "shares.svg", drawn)

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(readme), figuresBegin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, figuresEnd)
	require.True(t, found)
	summary, _, _ := strings.Cut(report, "SHARES UNDER")
	summary = strings.TrimRight(summary, "\n") + "\n"
	same(t, "README.md", []byte(before+figuresBegin+summary+figuresEnd+after))
}

// TestFairWastesNothingAndRepeatsNoState lives the built-in day, and the beginning of others, under fair: no GPU is idle that a job could use,
// and no plan leads back to a state before.
func TestFairWastesNothingAndRepeatsNoState(t *testing.T) {
	raced.Skip(t)
	cluster, err := readCluster(bytes.NewReader(defaultCluster))
	require.NoError(t, err)
	policy, err := policyNamed(fair)
	require.NoError(t, err)
	builtIn, err := readTrace(bytes.NewReader(defaultTrace))
	require.NoError(t, err)
	for name, trace := range map[string][]Submission{"built-in": builtIn, "seed 11": generateTrace(11)[:40], "seed 12": generateTrace(12)[:40]} {
		result, err := Simulate(t.Context(), client.InProcess(), cluster, trace, policy)
		require.NoError(t, err)
		require.Zero(t, result.Repeats, name)
		for _, sample := range result.Samples {
			require.Zero(t, sample.Wasted, "%s, %s", name, clock(sample.At))
		}
	}
}

func TestTheBuiltInDayIsTheOneThatSeedSixDraws(t *testing.T) {
	require.Equal(t, string(defaultTrace), output(t, "-generate", "6"))
}

// firstJobs writes the beginning of the built-in day into a file.
func firstJobs(t *testing.T, count int) string {
	t.Helper()
	lines := strings.SplitAfter(string(defaultTrace), "\n")
	file := filepath.Join(t.TempDir(), "trace.csv")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines[:count+1], "")), 0o600))
	return file
}

func TestAServerDecidesAsTheProcessDoes(t *testing.T) {
	trace := firstJobs(t, 25)
	answering, err := service.New(service.Options{})
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- answering.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})

	require.Equal(t, output(t, "-trace", trace), output(t, "-trace", trace, "-server", listener.Addr().String()))
}
