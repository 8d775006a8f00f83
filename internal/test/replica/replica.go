// Package replica runs servers as an operator does: processes of the built binary, each at an address that it keeps when it starts anew.
package replica

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/apportion/apportion/client"
)

// Replica is one server on loopback.
type Replica struct {
	// Address is the address of gRPC, Admin that for operators.
	Address, Admin string
	// Processors is the largest number of processors that the server uses; 0: it decides. New sets one.
	Processors int
	// Before are arguments that precede the server's, for a binary that runs the server given by its own arguments.
	Before []string

	binary    string
	arguments []string
	command   *exec.Cmd
}

// New chooses free addresses for a server that Start runs, with these arguments of `apportion serve` besides.
func New(ctx context.Context, binary string, arguments ...string) (*Replica, error) {
	r := &Replica{Processors: 1, binary: binary}
	for _, address := range []*string{&r.Address, &r.Admin} {
		var err error
		if *address, err = Free(ctx); err != nil {
			return nil, err
		}
	}
	r.arguments = append([]string{"serve", "--listen", r.Address, "--admin-listen", r.Admin, "--log-level", "error"}, arguments...)
	return r, nil
}

// Start runs the process, which does not take calls yet. It ends with ctx at the latest.
func (r *Replica) Start(ctx context.Context) error {
	r.command = exec.CommandContext(ctx, r.binary, slices.Concat(r.Before, r.arguments)...) //nolint:gosec // G204: the caller's own server.
	r.command.Env, r.command.Stderr = os.Environ(), os.Stderr
	if r.Processors > 0 {
		r.command.Env = append(r.command.Env, "GOMAXPROCS="+strconv.Itoa(r.Processors))
	}
	return r.command.Start()
}

// Ready waits until the server takes calls.
func (r *Replica) Ready(ctx context.Context) error {
	for range 100 {
		if response, err := r.get(ctx, "/readyz"); err == nil {
			return response.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the server at %s did not become ready", r.Admin)
}

// Leave sends SIGTERM to the server and does not wait for its end.
func (r *Replica) Leave() error { return r.command.Process.Signal(syscall.SIGTERM) }

// End sends SIGTERM to the server, and returns nil once it has drained and ended.
func (r *Replica) End() error {
	if err := r.Leave(); err != nil {
		return err
	}
	return r.command.Wait()
}

// Kill ends the process at once, as a lost machine would. It may have ended before.
func (r *Replica) Kill() {
	if r.command == nil || r.command.Process == nil {
		return
	}
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
}

// Process is the process that Start started.
func (r *Replica) Process() *os.Process { return r.command.Process }

// Answered returns the server's count of answered calls of a method since it started.
func (r *Replica) Answered(ctx context.Context, method string) (int, error) {
	total, err := r.sum(ctx, func(name string) bool {
		return strings.HasPrefix(name, "grpc_server_call_duration_seconds_count{") && strings.Contains(name, method)
	})
	return int(total), err
}

// Computed returns the processor time that the server reports since it started.
func (r *Replica) Computed(ctx context.Context) (time.Duration, error) {
	seconds, err := r.sum(ctx, func(name string) bool { return name == "process_cpu_seconds_total" })
	return time.Duration(seconds * float64(time.Second)), err
}

// Metric returns the sum of a metric of the server over all its labels.
func (r *Replica) Metric(ctx context.Context, metric string) (float64, error) {
	return r.sum(ctx, func(name string) bool { return name == metric || strings.HasPrefix(name, metric+"{") })
}

// sum adds up the metrics whose names, with their labels, are wanted.
func (r *Replica) sum(ctx context.Context, wanted func(name string) bool) (total float64, err error) {
	response, err := r.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		// The value of a label may contain spaces.
		end := strings.LastIndexByte(lines.Text(), ' ')
		if end < 0 || !wanted(lines.Text()[:end]) {
			continue
		}
		value := lines.Text()[end+1:]
		amount, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, errors.Join(err, response.Body.Close())
		}
		total += amount
	}
	return total, errors.Join(lines.Err(), response.Body.Close())
}

func (r *Replica) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Admin+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s%s: %s", r.Admin, path, response.Status), response.Body.Close())
	}
	return response, nil
}

// Free is an address that no process listens on.
func Free(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Dial connects to all replicas, as with the addresses of a headless service, and balances round robin among those that report SERVING.
func Dial(replicas []*Replica, options ...grpc.DialOption) (*client.Client, error) {
	addresses := manual.NewBuilderWithScheme("replicas")
	state := resolver.State{}
	for _, r := range replicas {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: r.Address})
	}
	addresses.InitialState(state)
	return client.Dial("replicas:///", client.WithPlaintext(), client.WithDialOptions(append(options, grpc.WithResolvers(addresses))...))
}
