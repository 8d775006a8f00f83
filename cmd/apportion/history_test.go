package main

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/history"
)

// serveKept starts a server that keeps a cluster, as of a time, and returns its address.
func serveKept(t *testing.T, file string, at time.Time, past *history.History) string {
	t.Helper()
	return serveKeptTo(t, file, at, past, nil)
}

// serveKeptTo serves it to a caller that owns some queues; nil: all.
func serveKeptTo(t *testing.T, file string, at time.Time, past *history.History, own func(queue string) bool) string {
	t.Helper()
	server, err := service.New(service.Options{Own: func(context.Context) func(string) bool { return own }})
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done, recorded := make(chan error, 1), make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	sources, err := (&question.InputFlags{Files: []string{file}}).Sources(t.Context(), nil)
	require.NoError(t, err)
	cluster, err := volcano.ReadManifests(sources)
	require.NoError(t, err)
	data, err := proto.Marshal(cluster.Snapshot)
	require.NoError(t, err)
	kept := server.Keep("cluster", "", func(view *apportionv1.SnapshotView) { view.AsOf, view.Complete = at.UnixNano(), true })
	require.NoError(t, kept.Put(t.Context(), data, &apportionv1.SnapshotView{}))
	ended := make(chan struct{})
	if past != nil {
		go func() {
			defer close(ended)
			kept.Record(ctx, service.RecordOptions{
				History: past, Policy: client.VolcanoDefault(), Interval: time.Hour, Failed: func(err error) { recorded <- err },
			})
		}()
		require.NoError(t, <-recorded)
	} else {
		close(ended)
	}
	t.Cleanup(func() {
		cancel()
		<-ended
		require.NoError(t, <-done)
	})
	return listener.Addr().String()
}

func TestCommandsTellSinceWhenAndWhatChanged(t *testing.T) {
	file := filepath.Join("testdata", "cluster.yaml")
	nine := time.Date(2026, 11, 20, 9, 12, 0, 0, time.Now().Location())
	past := history.New(history.Options{Retain: 24 * time.Hour, Step: time.Minute, Gap: 3 * time.Hour, Bytes: 1 << 20})
	gpus := history.Cause{
		Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, Check: apportionv1.CheckKind_CHECK_KIND_NODES,
		Code: apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE, Dimension: "nvidia.com/gpu",
	}
	turn := history.Cause{Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN}
	for _, v := range []history.Version{
		{At: nine.UnixNano()},
		{At: nine.Add(time.Minute).UnixNano(), Jobs: []history.Job{{ID: "ml/huge", Name: "ml/huge", Queue: "ml", Cause: gpus}}},
		{At: nine.Add(30 * time.Minute).UnixNano(), Jobs: []history.Job{
			{ID: "ml/huge", Name: "ml/huge", Queue: "ml", Cause: gpus}, {ID: "ml/tune", Name: "ml/tune", Queue: "ml", Cause: turn},
		}},
	} {
		v.Exists = func(string) bool { return true }
		v.Dimensions = []string{"cpu", "nvidia.com/gpu"}
		v.Queues = []history.Queue{{Name: "ml", Waiting: len(v.Jobs), Deserved: []float64{8000, 2000}, Allocated: []float64{4000, 1000}}}
		require.NoError(t, past.Take(&v))
	}
	address := serveKept(t, file, nine.Add(148*time.Minute), past)
	named := []string{"--server", address, "--snapshot-name", "cluster"}
	run := func(args ...string) string {
		t.Helper()
		out, _, err := runLine(t, args...)
		if err != nil {
			require.ErrorIs(t, err, cli.ErrDecidedNo)
		}
		return out
	}
	const day = "2026-11-20 "

	t.Run("explain", func(t *testing.T) {
		out := strings.Join(strings.Fields(run(append([]string{"explain", "ml/huge"}, named...)...)), " ")
		require.Contains(t, out, "It waits since "+day+"09:13: until "+day+"11:40 because no usable node has enough nvidia.com/gpu left, "+
			"since then because it can never run: the cluster has less cpu than is asked for. Known since "+day+"09:12, when this server started.")
	})
	t.Run("history of a job", func(t *testing.T) {
		require.Equal(t, `ml/huge: job of queue ml
It waits since 2026-11-20 09:13: until 2026-11-20 11:40 because no usable node has enough
nvidia.com/gpu left, since then because it can never run: the cluster has less cpu than is asked
for.

FROM              UNTIL               FOR  WAITED
2026-11-20 09:13  2026-11-20 11:40  2h27m  because no usable node has enough nvidia.com/gpu left
2026-11-20 11:40  now                  0s  because it can never run: the cluster has less cpu than is asked for

Known since 2026-11-20 09:12, when this server started.
`, run("history", "job/ml/huge", "--server", address))
	})
	t.Run("history of a queue", func(t *testing.T) {
		out := run("history", "queue/ml", "--server", address, "--resource", "cpu")
		require.Contains(t, out, "queue ml: Jobs wait since "+day+"09:13.\n")
		require.Contains(t, out, day+"09:42  "+day+"09:42        2  cpu              8          4        0\n")
	})
	t.Run("pending", func(t *testing.T) {
		out := run(append([]string{"pending", "--all"}, named...)...)
		require.Contains(t, out, "JOB      QUEUE  PHASE    TASKS  SINCE             FOUND\n")
		require.Contains(t, out, "ml/tune  ml     inqueue      2  "+day+"09:42\n")
		recent := run(append([]string{"pending", "--since", "1h"}, named...)...)
		require.Contains(t, recent, "ml/huge")
		require.NotContains(t, recent, "ml/tune")
		require.Contains(t, recent, "Known since "+day+"09:12")
		require.Contains(t, run(append([]string{"pending", "--since", "3h"}, named...)...), "ml/tune")
	})
	t.Run("queue", func(t *testing.T) {
		require.Contains(t, run(append([]string{"queue", "ml"}, named...)...), "Jobs wait since "+day+"09:13. Known since "+day+"09:12, when this server started.\n")
	})
	t.Run("json", func(t *testing.T) {
		var answer struct {
			History partOfHistory `json:"history"`
			Explain struct {
				Jobs []jobOfHistory `json:"jobs"`
			} `json:"explain"`
		}
		require.NoError(t, json.Unmarshal([]byte(run(append([]string{"pending", "-o", "json"}, named...)...)), &answer))
		require.Len(t, answer.Explain.Jobs, 2)
		require.Len(t, answer.History.Jobs, 2)
		var alone partOfHistory
		require.NoError(t, json.Unmarshal([]byte(run("history", "job/ml/huge", "-o", "json", "--server", address)), &alone))
		require.Len(t, alone.Jobs, 1)
	})
	t.Run("faults", func(t *testing.T) {
		for fault, args := range map[string][]string{
			`"ml/huge" is not job/NAME or queue/NAME`: {"history", "ml/huge", "--server", address},
			"name jobs or queues":                     {"history", "--server", address},
			"job ml/none is not known to the history": {"history", "job/ml/none", "--server", address},
			"queue none is not known to the history":  {"history", "queue/none", "--server", address},
			"keeps no snapshot":                       {"history", "job/x", "--server", address, "--snapshot-name", "other"},
			"--top must be at least 1":                {"history", "job/x", "--server", address, "--top", "0"},
			"--since: only a server that follows":     {"pending", "--since", "1h", "-f", file},
			"the server keeps no history of snapshot": {"history", "job/x", "--server", serveKept(t, file, nine, nil)},
		} {
			_, _, err := runLine(t, args...)
			require.ErrorContains(t, err, fault)
		}
	})
}

// partOfHistory is a part of a history in JSON.
type partOfHistory struct {
	Jobs []jobOfHistory `json:"jobs"`
}

type jobOfHistory struct {
	Name string `json:"name"`
}

func TestAClockOmitsToday(t *testing.T) {
	now := time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)
	clock := render.Clock(now)
	require.Equal(t, "09:12", clock(time.Date(2026, 11, 24, 9, 12, 59, 0, time.UTC).UnixNano()))
	require.Equal(t, "2026-11-23 23:59", clock(time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC).UnixNano()))
}

func TestAHistoryOfAFileSaysWhereAHistoryComesFrom(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"-f", "apportion: -f: a history comes from a server that follows the cluster, not from a file: ask it with --server ADDRESS"},
		{"--snapshot", "apportion: --snapshot: a history comes from a server"},
		{"--cluster", "apportion: --cluster: a history comes from a server"},
		{"--nothing", "apportion: unknown flag: --nothing; \"apportion history --help\" lists the flags\n"},
		{"-z", "apportion: unknown flag: -z; \"apportion history --help\" lists the flags\n"},
	} {
		code, out, errors := execute(t, "", "history", "job/ml/train", c.flag, "cluster.yaml")
		require.Equal(t, cli.ExitUsage, code)
		require.Empty(t, out)
		require.True(t, strings.HasPrefix(errors, c.want), errors)
	}
}
