package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// connection is a connection that knows which responses its peer has not taken yet. One that stays for longer than AnswerTime ends the
// connection: gRPC gives no way to end a stream whose handler has returned.
type connection struct {
	net.Conn

	server *Server
	// tenant is that of callers without an identity.
	tenant string

	mutex sync.Mutex
	// credit is how many more calls may begin before others have ended well, as of a time.
	credit float64
	asOf   time.Time
	// oldest and newest are the ends of the list of responses that the peer has not taken, in the order in which they were made.
	oldest, newest *reply
	timer          *time.Timer
	closed         bool
}

// hold notes a response that the transport takes over.
func (c *connection) hold(r *reply) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		r.release()
		return
	}
	r.held, r.before, r.since = true, c.newest, time.Now()
	if c.newest == nil {
		c.oldest = r
	} else {
		c.newest.after = r
	}
	c.newest = r
	if c.timer == nil {
		c.timer = time.AfterFunc(c.server.options.Deadline.Answer, c.check)
	}
}

// drop notes that the transport has let go of a response.
func (c *connection) drop(r *reply) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.remove(r)
}

// remove takes a response out of the list, if it is there.
func (c *connection) remove(r *reply) {
	if !r.held {
		return
	}
	if r.before == nil {
		c.oldest = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		c.newest = r.before
	} else {
		r.after.before = r.before
	}
	r.held, r.before, r.after = false, nil, nil
}

// check closes the connection if its oldest response was not taken in time, and otherwise looks again when it would be.
func (c *connection) check() {
	c.mutex.Lock()
	oldest := c.oldest
	if oldest == nil || c.closed {
		c.timer = nil
		c.mutex.Unlock()
		return
	}
	if left := c.server.options.Deadline.Answer - time.Since(oldest.since); left > 0 {
		c.timer.Reset(left)
		c.mutex.Unlock()
		return
	}
	c.mutex.Unlock()
	c.server.metrics.untaken.Inc()
	c.ending("an answer was not read in time")
	// The peer does not take what it was sent. There is no use for the error.
	_ = c.Close()
}

// Close closes the connection and releases the memory booked for its responses, because gRPC does not free the responses of a closed
// connection.
func (c *connection) Close() error {
	c.mutex.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	for c.oldest != nil {
		c.oldest.release()
		c.remove(c.oldest)
	}
	c.mutex.Unlock()
	return c.Conn.Close()
}

// RemoteAddr returns the address of the peer. It leads the calls of the connection to it.
func (c *connection) RemoteAddr() net.Addr { return remoteAddr{c.Conn.RemoteAddr(), c} }

// NetConn returns the underlying connection.
func (c *connection) NetConn() net.Conn { return c.Conn }

// Begin counts a call on the connection until end is called.
func (c *connection) Begin() (end func()) {
	if counting, ok := c.Conn.(interface{ Begin() func() }); ok {
		return counting.Begin()
	}
	return func() {}
}

type remoteAddr struct {
	net.Addr

	connection *connection
}

// connectionOf returns the connection of a call, or nil if it did not come over a listener of the server.
func connectionOf(ctx context.Context) *connection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	address, _ := p.Addr.(remoteAddr)
	return address.connection
}

// listener makes a connection of what a listener accepts.
type listener struct {
	net.Listener

	server *Server
}

// Accept waits for a connection.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: raw, server: l.server, tenant: tenantAt(raw.RemoteAddr()), asOf: time.Now()}
	c.credit = l.server.offenders.credit(raw.RemoteAddr(), c.most())
	return c, nil
}

// ending logs that the server closes a connection.
func (c *connection) ending(why string) {
	c.server.log.LogAttrs(context.Background(), slog.LevelWarn, "a connection is closed",
		slog.String("reason", why), slog.String("peer_address", c.RemoteAddr().String()))
}

// A client may reset its calls as fast as it can write, and each costs more than the frames do. So a call takes a credit of its connection,
// which gets it back when the call ends by an answer. What was reset, or refused by its headers, comes back at a rate alone.

// resetSeconds is for how long a connection may have saved credit.
const resetSeconds = 5

// most is the most credit that a connection has: that of all calls that it may have at a time, and what it may save.
func (c *connection) most() float64 {
	o := &c.server.options
	return float64(o.Connection.Streams) + resetSeconds*float64(o.Connection.Resets)
}

// begin takes the credit of a call. It closes the connection and returns false if there is none.
func (c *connection) begin() bool {
	if c == nil {
		return true
	}
	c.mutex.Lock()
	if c.closed {
		c.mutex.Unlock()
		return false
	}
	now := time.Now()
	c.credit = min(c.credit+now.Sub(c.asOf).Seconds()*float64(c.server.options.Connection.Resets), c.most())
	c.asOf = now
	c.credit--
	spent := c.credit < 0
	c.mutex.Unlock()
	if !spent {
		return true
	}
	c.server.metrics.reset.Inc()
	c.server.offenders.note(c.Conn.RemoteAddr())
	c.ending("too many of its calls were reset or refused")
	// The peer is no client. There is no use for the error.
	_ = c.Close()
	return false
}

// answered gives the credit of a call back, unless its client has reset it.
func (c *connection) answered(ctx context.Context) {
	if c == nil || errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.credit = min(c.credit+1, c.most())
}
