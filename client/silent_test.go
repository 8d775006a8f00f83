package client_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// freezing is the link to a replica that can be stopped as by SIGSTOP: connections stay open, are still made, and carry nothing.
type freezing struct {
	mutex sync.Mutex
	// thawed is closed when the link works again; nil: it works.
	thawed chan struct{}
}

func (f *freezing) freeze() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.thawed = make(chan struct{})
}

func (f *freezing) thaw() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	close(f.thawed)
	f.thawed = nil
}

// freezable is a connection over a link.
type freezable struct {
	net.Conn

	link   *freezing
	once   sync.Once
	closed chan struct{}
}

// pass waits until the link works, and returns an error if the connection is closed first.
func (c *freezable) pass() error {
	c.link.mutex.Lock()
	thawed := c.link.thawed
	c.link.mutex.Unlock()
	if thawed == nil {
		return nil
	}
	select {
	case <-thawed:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

func (c *freezable) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	if stopped := c.pass(); stopped != nil {
		return 0, stopped
	}
	return n, err
}

func (c *freezable) Write(data []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(data)
}

func (c *freezable) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deadline is the deadline of the calls while a replica is frozen.
const deadline = 3 * time.Second

func TestNoCallIsLostToAReplicaThatIsFrozen(t *testing.T) {
	for name, question := range map[string]func(t *testing.T, c *client.Client) (ask func(ctx context.Context) error, end func()){
		"calls": func(t *testing.T, c *client.Client) (func(ctx context.Context) error, func()) {
			t.Helper()
			in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
			return func(ctx context.Context) error {
				_, err := c.Shares(ctx, in, client.SharesQuestion{})
				return err
			}, func() {}
		},
		"uploads": func(t *testing.T, c *client.Client) (func(ctx context.Context) error, func()) {
			t.Helper()
			return func(ctx context.Context) error {
				_, err := c.Upload(ctx, twoTeams(t))
				return err
			}, func() {}
		},
		"a session": func(t *testing.T, c *client.Client) (func(ctx context.Context) error, func()) {
			t.Helper()
			session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)})
			require.NoError(t, err)
			_, err = session.Do(t.Context(), deallocate("web/shop-0"))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				answers, err := session.Do(ctx, shares())
				if err == nil {
					read := client.Shares{Basis: session.Basis(), Answer: answers[0].GetShares()}
					web, _ := read.Queue("web")
					require.Equal(t, "8", web.Allocated["cpu"], "the task is gone at the other replica too")
				}
				return err
			}, func() { require.NoError(t, session.Close()) }
		},
		"a mirror": func(t *testing.T, c *client.Client) (func(ctx context.Context) error, func()) {
			t.Helper()
			in := client.Input{State: following(t, c).State(), Policy: proportional(t)}
			return func(ctx context.Context) error {
				_, err := c.Shares(ctx, in, client.SharesQuestion{})
				return err
			}, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, stop := startMemory(t, 3, service.Options{}, client.WithDeadline(deadline))
				defer stop()
				ask, end := question(t, r.client)
				callers := 12
				if name == "a session" {
					// Its batches take turns at a mutex, which synctest cannot see.
					callers = 1
				}
				defer end()
				for range 6 {
					require.NoError(t, ask(t.Context()))
				}
				for _, link := range r.links {
					link.freeze()
					var calls sync.WaitGroup
					for range callers {
						calls.Go(func() {
							if err := ask(t.Context()); err != nil {
								t.Error(err)
							}
						})
					}
					calls.Wait()
					began := time.Now()
					for range 12 {
						require.NoError(t, ask(t.Context()))
					}
					require.Zero(t, time.Since(began), "the frozen replica is avoided")
					link.thaw()
					// It is in use again before the next replica freezes.
					time.Sleep(10 * time.Second)
				}
			})
		})
	}
}

// counted counts the questions that a replica answers, each after a time. It answers health checks at once.
func counted(calls *atomic.Int32, slow time.Duration) service.Options {
	return service.Options{Unary: []grpc.UnaryServerInterceptor{func(
		ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
	) (any, error) {
		if info.FullMethod != apportionv1.DecisionService_EvaluateShares_FullMethodName {
			return handle(ctx, request)
		}
		calls.Add(1)
		select {
		case <-time.After(slow):
			return handle(ctx, request)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}}
}

func TestAReplicaThatIsMerelySlowIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		r, stop := startMemory(t, 3, counted(&calls, 20*time.Second))
		defer stop()
		_, err := r.client.Shares(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}, client.SharesQuestion{})
		require.NoError(t, err)
		require.Equal(t, int32(1), calls.Load())
	})
}

func TestTheOnlyReplicaMayPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		r, stop := startMemory(t, 1, counted(&calls, time.Second))
		defer stop()
		ask := func() error {
			_, err := r.client.Shares(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}, client.SharesQuestion{})
			return err
		}
		require.NoError(t, ask())
		r.links[0].freeze()
		go func() {
			time.Sleep(8 * time.Second)
			r.links[0].thaw()
		}()
		require.NoError(t, ask())
		require.Equal(t, int32(2), calls.Load())
	})
}

func TestASourceOfTokensThatHangsDoesNotEndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, tokens atomic.Int32
		hanging := func(ctx context.Context) (string, error) {
			if tokens.Add(1) > 4 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "token", nil
		}
		r, stop := startMemory(t, 3, counted(&calls, 10*time.Second), client.WithToken(hanging))
		defer stop()
		_, err := r.client.Shares(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}, client.SharesQuestion{})
		require.NoError(t, err)
		require.Equal(t, int32(1), calls.Load())
	})
}
