package connection

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/test/raced"
)

// from is a connection from an address on which nothing comes.
type from struct {
	net.Conn

	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

func (from) Close() error { return nil }

// accepting accepts one connection after another from an address.
type accepting struct {
	net.Listener

	address string
}

func (a accepting) Accept() (net.Conn, error) {
	return from{address: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.address))}, nil
}

// limited returns bounds by which connections have a credit of 200 calls.
func limited() *Bounds {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "closed_total", Help: "Closed."})
	return &Bounds{Streams: 100, Resets: 20, Log: slog.New(slog.DiscardHandler), Untaken: counter, Reset: counter}
}

// accepted returns a new connection from an address.
func accepted(t *testing.T, b *Bounds, address string) *Conn {
	t.Helper()
	conn, err := b.Listen(accepting{address: address}).Accept()
	require.NoError(t, err)
	c, ok := conn.(*Conn)
	require.True(t, ok)
	return c
}

// wasted begins calls on a connection, all of which are reset, until it is closed. It returns how many it wasted before calls were refused.
func wasted(t *testing.T, c *Conn) int {
	t.Helper()
	n := 0
	for c.Admit() == nil {
		c.Waste()
		n++
	}
	for !c.closed {
		require.NotNil(t, c.Admit())
	}
	return n - 1
}

func TestAnAddressWhoseConnectionsAreClosedBeginsWithLessCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		const first = "192.0.2.1:1000"
		for _, want := range []int{200, 100, 50, 25, leastCredit, leastCredit} {
			require.Equal(t, want, wasted(t, accepted(t, b, first)))
		}
		require.Equal(t, 200, wasted(t, accepted(t, b, "192.0.2.2:1000")), "another address")
		require.Equal(t, leastCredit, wasted(t, accepted(t, b, "[::ffff:192.0.2.1]:2000")), "the same address as IPv6 writes it")
		time.Sleep(6 * forgiveAfter)
		require.Equal(t, 100, wasted(t, accepted(t, b, first)), "one closing of seven is left")
		time.Sleep(2*forgiveAfter + time.Second)
		require.Equal(t, 200, wasted(t, accepted(t, b, first)))

		require.Equal(t, 200, wasted(t, accepted(t, b, "[2001:db8::1]:1000")))
		require.Equal(t, 100, wasted(t, accepted(t, b, "[2001:db8::2]:1000")), "the same network")
		require.Equal(t, 200, wasted(t, accepted(t, b, "[2001:db8:0:1::1]:1000")))
	})
}

func TestConnectionsThatAuthenticateHaveNoDebtOfTheirAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited()
		const address = "192.0.2.1:1000"
		for range 10 {
			wasted(t, accepted(t, b, address))
		}
		good := accepted(t, b, address)
		good.Authenticated("scheduler")
		require.InDelta(t, good.most(), good.credit, 0)
		require.Equal(t, 200, wasted(t, good))
		again := accepted(t, b, "192.0.2.9:1000")
		again.Authenticated("scheduler")
		require.InDelta(t, again.most()/2, again.credit, 0, "an identity answers for what it wastes, from any address")
		again.Authenticated("other")
		require.InDelta(t, again.most()/2, again.credit, 0, "the first identity counts")
		other := accepted(t, b, address)
		other.Authenticated("other")
		require.InDelta(t, other.most(), other.credit, 0)
	})
}

func TestACallIsWastedIfItsClientResetsItBeforeItsTimeIsOver(t *testing.T) {
	reset := func(after time.Duration) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context {
			ctx, reset := context.WithTimeout(ctx, after)
			reset()
			return ctx
		}
	}
	for name, test := range map[string]struct {
		end    func(context.Context) context.Context
		wasted float64
	}{
		"answered":                            {func(ctx context.Context) context.Context { return ctx }, 0},
		"reset":                               {reset(time.Hour), 1},
		"reset long before its time was over": {reset(time.Second), 1},
		"reset when its time was nearly over": {reset(lateReset / 2), 0},
		"late":                                {reset(0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := accepted(t, limited(), "192.0.2.1:1000")
				c.End(test.end(t.Context()))
				require.InDelta(t, c.most()-test.wasted, c.credit, 0)
			})
		})
	}
}

func TestAConnectionWithoutCreditIsRefusedCallsUntilItHasSomeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := accepted(t, limited(), "192.0.2.1:1000")
		for range 210 {
			c.Waste()
		}
		fault := c.Admit()
		require.NotNil(t, fault)
		require.Equal(t, time.Second, fault.Retry)
		require.False(t, c.closed)
		time.Sleep(fault.Retry)
		require.Nil(t, c.Admit())
	})
}

func TestOffendersAreBoundInNumber(t *testing.T) {
	raced.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		var o offenders
		address := func(i int) string {
			return offenderAt(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1)))
		}
		for range 3 {
			o.note(address(0))
		}
		for i := range 3 * mostOffenders {
			o.note(address(1 + i))
		}
		require.Len(t, o.of, mostOffenders)
		require.InDelta(t, 1000.0/8, o.credit(address(0), 1000), 0, "who offended most is remembered")
		time.Sleep(4 * forgiveAfter)
		o.note(address(0))
		require.Len(t, o.of, mostOffenders)
		o.note(address(3*mostOffenders + 1))
		require.LessOrEqual(t, len(o.of), 2)
		require.InDelta(t, 1000, o.credit(offenderAt(&net.UnixAddr{Name: "/run/socket", Net: "unix"}), 1000), 0)
	})
}

// TestAConnectionWaitsByAClockThatDoesNotJump keeps the time as one since the start of the process, which no clock that is set back changes.
func TestAConnectionWaitsByAClockThatDoesNotJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := accepted(t, limited(), "192.0.2.1:1000")
		require.False(t, c.MustWait())
		c.Wait(10 * time.Second)
		require.True(t, c.MustWait())
		require.Equal(t, int64(time.Since(start)+10*time.Second), c.later.Load())
		time.Sleep(10 * time.Second)
		require.False(t, c.MustWait())
	})
}
