package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/service"
)

func TestAServerAnswersAboutItsLedgerAsTheFileDoes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ledger")
	code, _, errors := execute(t, "", "usage", "import", "--ledger", name, "--from", "csv", "testdata/history/usage.csv")
	require.Zero(t, code, errors)
	kept, err := (&question.KeptLedger{Name: name}).Read()
	require.NoError(t, err)
	server, err := service.New(service.Options{})
	require.NoError(t, err)
	server.Remember("cluster", kept, []ledger.Budget{{Queue: "vision", Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"nvidia.com/gpu": 360_000}}}}})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, kept.Close())
	})
	at := listener.Addr().String()
	for _, flags := range [][]string{{"-o", "csv", "--owners"}, {"-o", "json", "--by", "total"}, {"--by", "day", "--resource", "gpu", "--queue", "vision"}} {
		code, file, errors := execute(t, "", append([]string{"usage", "--ledger", name}, flags...)...)
		require.Zero(t, code, errors)
		code, served, errors := execute(t, "", append([]string{"usage", "--server", at}, flags...)...)
		require.Zero(t, code, errors)
		require.Equal(t, file, served)
		require.Contains(t, served, "vision")
	}
	code, out, errors := execute(t, "", "usage", "--server", at, "--by", "budget")
	require.Zero(t, code, errors)
	require.Contains(t, out, "vision, soft")
	code, _, errors = execute(t, "", "usage", "--server", at, "--by", "budget", "--budgets", "x.yaml")
	require.NotZero(t, code)
	require.Contains(t, errors, "a server has its own")
	code, _, errors = execute(t, "", "usage", "--server", at, "--snapshot-name", "other")
	require.NotZero(t, code)
	require.Contains(t, errors, `this server keeps no snapshot "other"`)
}
