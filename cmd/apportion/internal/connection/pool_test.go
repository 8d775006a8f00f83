package connection_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/connection"
)

// door is a listener to which connections are handed.
type door struct {
	incoming chan net.Conn
	fault    chan error
	closed   chan struct{}
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case err := <-d.fault:
		return nil, err
	default:
	}
	select {
	case c := <-d.incoming:
		return c, nil
	case err := <-d.fault:
		return nil, err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	close(d.closed)
	return nil
}

func (d *door) Addr() net.Addr { return &net.TCPAddr{} }

// fake is a connection from an address.
type fake struct {
	net.Conn

	from   net.Addr
	closed chan struct{}
}

func (f *fake) RemoteAddr() net.Addr { return f.from }

func (f *fake) Close() error {
	close(f.closed)
	return nil
}

func (f *fake) open() bool {
	select {
	case <-f.closed:
		return false
	default:
		return true
	}
}

// house is a pool whose listener accepts all the time.
type house struct {
	*connection.Pool

	door  *door
	taken chan *connection.Conn
	ended chan error
}

func open(o connection.Options) *house {
	h := &house{
		Pool: connection.New(o), door: &door{make(chan net.Conn, 100), make(chan error, 1), make(chan struct{})},
		taken: make(chan *connection.Conn, 100), ended: make(chan error, 10),
	}
	l := h.Listener(h.door)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				h.ended <- err
				if errors.Is(err, net.ErrClosed) {
					return
				}
				continue
			}
			h.taken <- connection.Find(c)
		}
	}()
	synctest.Wait()
	return h
}

func (h *house) close(t *testing.T) {
	t.Helper()
	require.NoError(t, h.Listener(h.door).Close())
	synctest.Wait()
}

// come is a new connection, and what became of it: nil if it was closed or waits.
func (h *house) come(from string) (*fake, *connection.Conn) {
	f := &fake{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), closed: make(chan struct{})}
	h.door.incoming <- f
	synctest.Wait()
	select {
	case c := <-h.taken:
		return f, c
	default:
		return f, nil
	}
}

func TestOneAddressHasItsNumberOfConnectionsAndNoMore(t *testing.T) {
	for name, peers := range map[string][4]string{
		"IPv4":               {"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "192.0.2.2:1"},
		"IPv6, by network":   {"[2001:db8:0:1::1]:1", "[2001:db8:0:1::2]:1", "[2001:db8:0:1:ffff::]:1", "[2001:db8:0:2::1]:1"},
		"IPv4 within IPv6":   {"[::ffff:192.0.2.1]:1", "192.0.2.1:2", "[::ffff:192.0.2.1]:3", "[::ffff:192.0.2.2]:1"},
		"a link with a zone": {"[fe80::1%eth0]:1", "[fe80::2%eth0]:1", "[fe80::3%eth1]:1", "[fe81::1%eth0]:1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(connection.Options{Maximum: 10, Address: 2, Idle: time.Minute})
				defer h.close(t)
				first, used := h.come(peers[0])
				end := used.Begin()
				second, _ := h.come(peers[1])
				third, c := h.come(peers[2])
				require.NotNil(t, c)
				require.False(t, second.open(), "the one that never had a call gives way")
				c.Begin()
				refused, c := h.come(peers[1])
				require.Nil(t, c)
				require.False(t, refused.open(), "all from there are in use")
				_, c = h.come(peers[3])
				require.NotNil(t, c, "another address has its own")
				end()
				time.Sleep(59 * time.Second)
				refused, _ = h.come(peers[1])
				require.False(t, refused.open())
				time.Sleep(time.Second)
				_, c = h.come(peers[1])
				require.NotNil(t, c)
				require.False(t, first.open(), "one without a call for a minute gives way")
				require.True(t, third.open())
				require.Equal(t, 3, h.Open())
			})
		})
	}
}

func TestWithoutRoomTheOldestConnectionWithoutACallGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(connection.Options{Maximum: 3, Address: 3, Idle: time.Minute})
		defer h.close(t)
		_, a := h.come("192.0.2.1:1")
		endA := a.Begin()
		b, _ := h.come("192.0.2.2:1")
		c, _ := h.come("192.0.2.3:1")
		_, d := h.come("192.0.2.4:1")
		require.NotNil(t, d)
		require.Equal(t, []bool{false, true}, []bool{b.open(), c.open()})
		d.Begin()
		require.False(t, h.Full())
		_, e := h.come("192.0.2.5:1")
		require.False(t, c.open())
		e.Begin()()
		require.True(t, h.Full(), "the last call on the third connection has just ended")

		waits, f := h.come("192.0.2.6:1")
		require.Nil(t, f)
		require.True(t, waits.open())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Same(t, waits, (<-h.taken).Conn, "a connection gives way once it has been idle for a minute")

		_, f = h.come("192.0.2.7:1")
		require.NotNil(t, f)
		f.Begin()
		waits, f = h.come("192.0.2.8:1")
		require.Nil(t, f)
		require.NoError(t, a.Close())
		endA()
		synctest.Wait()
		require.Same(t, waits, (<-h.taken).Conn, "a connection ends and another is taken")
		require.Equal(t, 3, h.Open())
	})
}

func TestAListenerThatEndsReleasesTheConnectionThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connection.New(connection.Options{Maximum: 1, Address: 1, Idle: time.Minute})
		d := &door{make(chan net.Conn, 2), make(chan error), make(chan struct{})}
		l := p.Listener(d)
		f := func() *fake { return &fake{from: &net.UnixAddr{}, closed: make(chan struct{})} }
		first, second := f(), f()
		d.incoming <- first
		c, err := l.Accept()
		require.NoError(t, err)
		connection.Find(c).Begin()
		d.incoming <- second
		ended := make(chan error)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.False(t, second.open())
		require.NoError(t, c.Close())
		require.Zero(t, p.Open())
		require.False(t, p.Full())
	})
}

func TestWithoutFileDescriptorsAnIdleConnectionGivesWayAndElseTheServerIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(connection.Options{Maximum: 10, Address: 10, Idle: time.Minute})
		defer h.close(t)
		none := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		idle, _ := h.come("192.0.2.1:1")
		h.door.fault <- none
		_, c := h.come("192.0.2.2:1")
		require.NotNil(t, c)
		require.False(t, idle.open())
		require.False(t, h.Full())
		c.Begin()
		h.door.fault <- none
		synctest.Wait()
		require.ErrorIs(t, <-h.ended, syscall.EMFILE)
		require.True(t, h.Full())
		_, c = h.come("192.0.2.3:1")
		require.NotNil(t, c)
		require.False(t, h.Full())
	})
}
