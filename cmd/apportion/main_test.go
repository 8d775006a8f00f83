package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/service"
)

var update = flag.Bool("update", false, "write the output of the scripts' commands into the scripts")

func TestMain(m *testing.M) {
	if err := os.Unsetenv("COLUMNS"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"apportion": main, pluginName: main})
}

// TestScripts runs the stories in testdata/script: commands, their output to the last byte, and their exit codes. Each finds a small
// cluster in cluster.yaml, 10,000 faults in faulty.yaml, the sample clusters in $EXAMPLES, inputs of other schedulers in $COMING, and a
// server at $SERVER. Commands run in processes of their own: scripts of commands that start no goroutines are skipped under the race
// detector, by the condition raced.
func TestScripts(t *testing.T) {
	cluster, err := os.ReadFile(filepath.Join("testdata", "cluster.yaml"))
	require.NoError(t, err)
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "clusters"))
	require.NoError(t, err)
	coming, err := filepath.Abs(filepath.Join("testdata", "coming"))
	require.NoError(t, err)
	address := startServer(t)
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Setenv("EXAMPLES", examples)
			env.Setenv("COMING", coming)
			env.Setenv("SERVER", address)
			faulty := "jobs:\n" + strings.Repeat("- queue: gone\n", 5000)
			return errors.Join(
				os.WriteFile(filepath.Join(env.WorkDir, "cluster.yaml"), cluster, 0o600),
				os.WriteFile(filepath.Join(env.WorkDir, "faulty.yaml"), []byte(faulty), 0o600))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code},
		Condition: func(name string) (bool, error) {
			if name != "raced" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return raced.On, nil
		},
	})
}

// code runs a command and expects an exit code: code 2 apportion enqueue.
func code(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = err.Error()
		if len(got) > len("exit status ") {
			got = got[len("exit status "):]
		}
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, expected %s", got, args[0])
	}
}

// startServer serves with one named policy until the test ends.
func startServer(t *testing.T) string {
	t.Helper()
	answering, err := service.New(service.Options{Policies: map[string]*apportionv1.Policy{"house": client.VolcanoDefault()}})
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- answering.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return listener.Addr().String()
}
