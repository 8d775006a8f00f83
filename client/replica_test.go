package client_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// replica is a server on a real listener that can be lost as a machine is: its connections are reset without a message.
type replica struct {
	net.Listener

	address string
	mutex   sync.Mutex
	open    []net.Conn
	stop    context.CancelFunc
	served  chan error
	once    sync.Once
}

func startReplica(t *testing.T, options service.Options) *replica { //nolint:gocritic // Once a test.
	t.Helper()
	if options.Drain.Time == 0 {
		options.Drain.Time = 10 * time.Millisecond
	}
	s, err := service.New(options)
	require.NoError(t, err)
	r := &replica{served: make(chan error, 1)}
	r.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.address = r.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.served <- s.Serve(ctx, r) }()
	t.Cleanup(r.kill)
	return r
}

// Accept keeps what it accepts.
func (r *replica) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err == nil {
		r.mutex.Lock()
		r.open = append(r.open, conn)
		r.mutex.Unlock()
	}
	return conn, err
}

// reset cuts the connections; new ones are accepted.
func (r *replica) reset() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, conn := range r.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	r.open = nil
}

// kill loses the replica.
func (r *replica) kill() {
	r.once.Do(func() {
		_ = r.Close()
		r.reset()
		r.stop()
		<-r.served
	})
}

// leave ends the replica in order.
func (r *replica) leave() { r.stop() }

// dialAll is a client of all replicas.
func dialAll(t *testing.T, replicas []*replica, options ...client.Option) *client.Client {
	t.Helper()
	c, _ := dialNamed(t, replicas, options...)
	return c
}

// dialNamed is dialAll with names by which replicas can be distinguished.
func dialNamed(t *testing.T, replicas []*replica, options ...client.Option) (*client.Client, *manual.Resolver) {
	t.Helper()
	names := manual.NewBuilderWithScheme("replicas")
	names.InitialState(addresses(replicas...))
	c, err := client.Dial("replicas:///", append([]client.Option{
		client.WithPlaintext(), client.WithDialOptions(grpc.WithResolvers(names)), client.WithLogger(slog.New(slog.DiscardHandler)),
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, names
}

// house are the options of a service that knows a policy by name.
func house(t *testing.T, policy *apportionv1.Policy) service.Options {
	t.Helper()
	return service.Options{Policies: map[string]*apportionv1.Policy{"house": policy}}
}

// addresses are the addresses by which a client finds its replicas.
func addresses(replicas ...*replica) resolver.State {
	state := resolver.State{}
	for _, r := range replicas {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: r.address})
	}
	return state
}
