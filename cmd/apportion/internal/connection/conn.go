package connection

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Conn is a connection in a pool, until it is closed.
type Conn struct {
	net.Conn

	pool   *Pool
	from   netip.Prefix
	source *source

	// The pool's mutex guards the following fields: the calls in progress, whether there ever was a call, since when there is none, the
	// positions in the queues of the pool and of the source, and whether the pool has removed the connection.
	calls            int
	used             bool
	since            time.Time
	inPool, inSource *list.Element
	gone             bool
}

func connOf(e *list.Element) *Conn {
	c, _ := e.Value.(*Conn)
	return c
}

// Begin records the start of an admitted call. end records its end.
func (c *Conn) Begin() (end func()) {
	c.pool.mutex.Lock()
	defer c.pool.mutex.Unlock()
	c.dequeue()
	c.calls++
	c.used = true
	return sync.OnceFunc(func() {
		c.pool.mutex.Lock()
		defer c.pool.mutex.Unlock()
		if c.calls--; c.calls == 0 && !c.gone {
			c.enqueue()
			c.pool.announce()
		}
	})
}

// enqueue adds a connection without a call to the queues.
func (c *Conn) enqueue() {
	c.since = time.Now()
	c.inPool = c.pool.queue.add(c)
	if c.source != nil {
		c.inSource = c.source.queue.add(c)
	}
}

// dequeue removes the connection from the queues, if it is in them.
func (c *Conn) dequeue() {
	if c.inPool == nil {
		return
	}
	c.pool.queue.remove(c, c.inPool)
	if c.source != nil {
		c.source.queue.remove(c, c.inSource)
	}
	c.inPool, c.inSource = nil, nil
}

// Close closes the connection and leaves the pool.
func (c *Conn) Close() error {
	c.pool.mutex.Lock()
	c.pool.remove(c)
	c.pool.mutex.Unlock()
	return c.Conn.Close()
}

// discard closes a connection that the pool has removed.
func (c *Conn) discard() {
	// The error is ignored, because the peer sees the end of the connection.
	_ = c.Conn.Close()
}

func (q *queue) of(c *Conn) *list.List {
	if c.used {
		return &q.idle
	}
	return &q.unused
}

func (q *queue) add(c *Conn) *list.Element { return q.of(c).PushBack(c) }

func (q *queue) remove(c *Conn, e *list.Element) { q.of(c).Remove(e) }

// Find returns the pool's connection that is, or is wrapped by, a connection such as one with TLS; nil if there is none.
func Find(conn net.Conn) *Conn {
	for conn != nil {
		if c, ok := conn.(*Conn); ok {
			return c
		}
		layer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = layer.NetConn()
	}
	return nil
}
