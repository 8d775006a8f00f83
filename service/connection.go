package service

import (
	"container/list"
	"context"
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

	limit   time.Duration
	expired func(*connection)

	mutex sync.Mutex
	// unread holds *unreadReply in the order in which they were made, places their elements.
	unread list.List
	places map[*reply]*list.Element
	timer  *time.Timer
	closed bool
}

type unreadReply struct {
	*reply

	since time.Time
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
	c.places[r] = c.unread.PushBack(unreadReply{r, time.Now()})
	if c.timer == nil {
		c.timer = time.AfterFunc(c.limit, c.check)
	}
}

// drop notes that the transport has let go of a response.
func (c *connection) drop(r *reply) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if place, ok := c.places[r]; ok {
		c.unread.Remove(place)
		delete(c.places, r)
	}
}

// check closes the connection if its oldest response was not taken in time, and otherwise looks again when it would be.
func (c *connection) check() {
	c.mutex.Lock()
	oldest := c.unread.Front()
	if oldest == nil || c.closed {
		c.timer = nil
		c.mutex.Unlock()
		return
	}
	response, _ := oldest.Value.(unreadReply)
	if left := c.limit - time.Since(response.since); left > 0 {
		c.timer.Reset(left)
		c.mutex.Unlock()
		return
	}
	c.mutex.Unlock()
	c.expired(c)
	// The peer does not take what it was sent. There is no use for the error.
	_ = c.Close()
}

// Close closes the connection and gives back what is booked for its responses: gRPC frees no response of a connection that is closed.
func (c *connection) Close() error {
	c.mutex.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	for e := c.unread.Front(); e != nil; e = e.Next() {
		if response, ok := e.Value.(unreadReply); ok {
			response.release()
		}
	}
	c.unread.Init()
	clear(c.places)
	c.mutex.Unlock()
	return c.Conn.Close()
}

// RemoteAddr returns the address of the peer. It leads the calls of the connection to it.
func (c *connection) RemoteAddr() net.Addr { return remoteAddr{c.Conn.RemoteAddr(), c} }

// NetConn returns the connection beneath.
func (c *connection) NetConn() net.Conn { return c.Conn }

// Begin notes a call on a connection that counts its calls. end notes that it is over.
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

	limit   time.Duration
	expired func(*connection)
}

// Accept waits for a connection.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: raw, limit: l.limit, expired: l.expired, places: map[*reply]*list.Element{}}, nil
}

// expired notes a connection that is closed because its client does not read an answer.
func (s *Server) expired(c *connection) {
	s.metrics.untaken.Inc()
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "a connection is closed because an answer was not read in time",
		slog.String("peer_address", c.RemoteAddr().String()))
}
