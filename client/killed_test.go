package client_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/service"
)

const serveInstead = "APPORTION_CLIENT_TEST_SERVE"

// TestMain serves until it is killed if the process was started as a server.
func TestMain(m *testing.M) {
	if os.Getenv(serveInstead) == "" {
		os.Exit(m.Run())
	}
	s, err := service.New(service.Options{})
	if err != nil {
		os.Exit(1)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	if _, err := fmt.Fprintln(os.Stdout, "address", listener.Addr()); err != nil {
		os.Exit(1)
	}
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	err = s.Serve(ctx, listener)
	end()
	if err != nil {
		os.Exit(1)
	}
}

// startProcess starts a server as a process of its own, and returns its address and what kills it.
func startProcess(t *testing.T) (address string, kill func()) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), serveInstead+"=1")
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	kill = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	t.Cleanup(kill)
	return strings.TrimSpace(strings.TrimPrefix(line, "address ")), kill
}

// A process that is killed with signal 9 sends nothing more. Its questions are asked again, and its sessions continue.
func TestNothingIsLostWithAProcessThatIsKilled(t *testing.T) {
	first, kill := startProcess(t)
	second, _ := startProcess(t)
	c, names := dialNamed(t, nil)
	names.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: first}}})
	shape := generate.Standard()
	shape.Tasks, shape.Jobs, shape.Queues = 10_000, 1_000, 50
	in := client.Input{Snapshot: generate.Snapshot(shape), Policy: proportional(t)}
	session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
	require.NoError(t, err)
	_, err = session.Do(t.Context(), deallocate("web/shop-0"))
	require.NoError(t, err)
	names.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: first}, {Addr: second}}})

	asked := make(chan error)
	go func() {
		for range 6 {
			_, err := c.Shares(t.Context(), in, client.SharesQuestion{Queues: []string{}})
			asked <- err
		}
		close(asked)
	}()
	n := 0
	for err := range asked {
		require.NoError(t, err)
		if n++; n == 2 {
			time.AfterFunc(5*time.Millisecond, kill)
		}
	}
	kill()
	answers, err := session.Do(t.Context(), shares())
	require.NoError(t, err)
	read := client.Shares{Basis: session.Basis(), Answer: answers[0].GetShares()}
	web, _ := read.Queue("web")
	require.Equal(t, "8", web.Allocated["cpu"])
	require.NoError(t, session.Close())
}
