package connection

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Conn is a connection of a pool until it is closed.
type Conn struct {
	net.Conn

	pool   *Pool
	from   netip.Prefix
	source *source

	// What follows is guarded by the pool's mutex: the calls under way, whether there ever was one, since when there is none, the places in
	// the queues of the pool and of the source, and whether the pool has forgotten the connection.
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

// Begin notes a call that was let in. end notes that it is over.
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

// enqueue puts a connection without a call into the queues.
func (c *Conn) enqueue() {
	c.since = time.Now()
	c.inPool = c.pool.queue.add(c)
	if c.source != nil {
		c.inSource = c.source.queue.add(c)
	}
}

// dequeue takes it out of them, if it is there.
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

// discard closes a connection that the pool has forgotten.
func (c *Conn) discard() {
	// Its peer sees the end of the connection. There is no use for the error.
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

// Find returns the connection of a pool that is, or lies below, a connection, or nil. TLS is such a layer.
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
