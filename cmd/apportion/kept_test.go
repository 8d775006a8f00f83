package main

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/history"
)

// runLine runs a command line, and returns what it prints and ends with.
func runLine(t *testing.T, args ...string) (out, told string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot(cli.Streams{Out: &stdout, Err: &stderr})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestCommandsAskAboutTheClusterThatAServerFollows(t *testing.T) {
	server, err := service.New(service.Options{})
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	file := filepath.Join("testdata", "cluster.yaml")
	sources, err := (&question.InputFlags{Files: []string{file}}).Sources(t.Context(), nil)
	require.NoError(t, err)
	cluster, err := volcano.ReadManifests(sources)
	require.NoError(t, err)
	data, err := proto.Marshal(cluster.Snapshot)
	require.NoError(t, err)
	kept := server.Keep("cluster", "", func(view *apportionv1.SnapshotView) {
		view.AsOf = time.Now().Add(-time.Hour).UnixNano()
	})
	require.NoError(t, kept.Put(t.Context(), data, &apportionv1.SnapshotView{Kinds: []*apportionv1.ViewedKind{
		{Resource: "pods", Read: true, Count: 7, LeftOutCount: 1}, {Resource: "priorityclasses", Fault: "forbidden"},
	}, LeftOuts: []*apportionv1.LeftOut{
		{Kind: "Pod", Namespace: "team", Name: "big", Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Detail: "too many names"},
	}}))

	named := []string{"--server", listener.Addr().String(), "--snapshot-name", "cluster"}
	told, _, err := runLine(t, "health", "--server", listener.Addr().String())
	require.NoError(t, err)
	require.Equal(t, `serving
snapshot cluster is not complete
  snapshot cluster is 1h old
  1 of 7 pods is left out
  priorityclasses cannot be read by the server and are left out: forbidden
  The Pod team/big is left out and is not judged: too many names.
`, told)
	for _, command := range [][]string{
		{"explain", "--all"}, {"explain", "--no-remedies", "huge"}, {"explain", "--remedies", "huge"}, {"shares"}, {"shares", "--tree"}, {"get", "queues"}, {"whatif", "--set", "queue/ml.weight=9"},
	} {
		want, _, _ := runLine(t, append(command, "-f", file)...)
		require.NotEmpty(t, want, command)
		got, told, _ := runLine(t, append(command, named...)...)
		// A command that tries a remedy names the input.
		want, got = strings.ReplaceAll(want, " -f "+file, ""), strings.ReplaceAll(got, " "+strings.Join(named, " "), "")
		require.Equal(t, want, got, "%v: %s", command, told)
		require.Contains(t, told, "snapshot cluster is 1h old")
		require.Contains(t, told, "priorityclasses cannot be read by the server and are left out: forbidden")
	}
	for fault, args := range map[string][]string{
		"name the server that follows the cluster with --server": {"explain", "--all", "--snapshot-name", "cluster"},
		"cannot be used with -f":                                 append([]string{"explain", "--all", "-f", file}, named...),
		"which apply to manifests":                               append([]string{"explain", "--all", "--as-of", "now"}, named...),
		"keeps no snapshot":                                      {"explain", "--all", "--server", listener.Addr().String(), "--snapshot-name", "other"},
	} {
		_, _, err := runLine(t, args...)
		require.ErrorContains(t, err, fault)
	}
}

// TestARestrictedCallerIsToldOfItsOwnQueues asks as a member of a team, who may see queue ml alone, about a cluster with a history.
func TestARestrictedCallerIsToldOfItsOwnQueues(t *testing.T) {
	file := filepath.Join("testdata", "cluster.yaml")
	nine := time.Date(2026, 11, 20, 9, 12, 0, 0, time.Now().Location())
	past := history.New(history.Options{Retain: 24 * time.Hour, Step: time.Minute, Gap: 3 * time.Hour, Bytes: 1 << 20})
	address := serveKeptTo(t, file, nine, past, func(queue string) bool { return queue == "ml" })
	named := []string{"--server", address, "--snapshot-name", "cluster"}
	for want, args := range map[string][]string{
		"It waits since 2026-11-20 09:12 or longer because": {"explain", "ml/huge"},
		"Jobs wait since 2026-11-20 09:12.":                 {"queue", "ml"},
		"2026-11-20 09:12":                                  {"pending", "--all"},
		"ml ":                                               {"shares"},
		"ml/huge":                                           {"get", "jobs"},
	} {
		out, told, err := runLine(t, append(args, named...)...)
		if err != nil {
			require.ErrorIs(t, err, cli.ErrDecidedNo, "%v", args)
		}
		require.Contains(t, out, want, args)
		require.NotContains(t, out+told, "web", "%v: another queue", args)
	}
	for fault, args := range map[string][]string{
		"the caller may see only its own queues": {"plan", "ml/huge"},
		`no queue "web"`:                         {"queue", "web"},
		`no job "web/shop"`:                      {"explain", "web/shop"},
	} {
		_, _, err := runLine(t, append(args, named...)...)
		require.ErrorContains(t, err, fault, args)
	}
}
