package service

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/setting"
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

// wasted begins calls on a new connection from an address, all of which are reset, until it is closed. It returns how many it began.
func wasted(t *testing.T, s *Server, address string) int {
	t.Helper()
	accepted, err := listener{accepting{address: address}, s}.Accept()
	require.NoError(t, err)
	c, ok := accepted.(*connection)
	require.True(t, ok)
	n := 0
	for c.begin() {
		n++
	}
	return n
}

func TestAnAddressWhoseConnectionsAreClosedBeginsWithLessCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{
			Connection: setting.Connection{Streams: 100, Resets: 20}, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		const first = "192.0.2.1:1000"
		for _, want := range []int{200, 100, 50, 25, leastCredit, leastCredit} {
			require.Equal(t, want, wasted(t, s, first))
		}
		require.Equal(t, 200, wasted(t, s, "192.0.2.2:1000"), "another address")
		require.Equal(t, leastCredit, wasted(t, s, "[::ffff:192.0.2.1]:2000"), "the same address as IPv6 writes it")
		time.Sleep(6 * forgiveAfter)
		require.Equal(t, 100, wasted(t, s, first), "one closing of seven is left")
		time.Sleep(2*forgiveAfter + time.Second)
		require.Equal(t, 200, wasted(t, s, first))

		require.Equal(t, 200, wasted(t, s, "[2001:db8::1]:1000"))
		require.Equal(t, 100, wasted(t, s, "[2001:db8::2]:1000"), "the same network")
		require.Equal(t, 200, wasted(t, s, "[2001:db8:0:1::1]:1000"))
	})
}

func TestOffendersAreBoundInNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o offenders
		address := func(i int) net.Addr {
			return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1))
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
		require.InDelta(t, 1000, o.credit(&net.UnixAddr{Name: "/run/socket", Net: "unix"}, 1000), 0)
	})
}
