// Package connection limits the connections that listeners accept: in total, and from one address. At the limit, a new connection replaces
// one that never had a call, or else the one that has been without a call for the longest time. A connection with a call in progress is
// never closed.
package connection

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Pool.
type Options struct {
	// Maximum limits the connections of all listeners together.
	Maximum int
	// Address limits the connections from one IP address, if it is below Maximum; the addresses of an IPv6 /64 count as one. Unix sockets
	// are not limited.
	Address int
	// Idle is the time without a call after which a new connection may replace a connection. A connection that never had a call may be
	// replaced at once.
	Idle time.Duration
}

// Pool contains the connections of several listeners. It is safe for concurrent use.
type Pool struct {
	options Options
	// failing is true if the last attempt to accept failed, as when the process has no file descriptors left.
	failing atomic.Bool
	closed  *prometheus.CounterVec

	mutex sync.Mutex
	open  int
	queue queue
	of    map[netip.Prefix]*source
	// changed is closed, and replaced, when a connection ends or becomes idle.
	changed chan struct{}
}

// source contains the connections from one address.
type source struct {
	open  int
	queue queue
}

// queue contains connections without a call in progress, the longest idle first.
type queue struct {
	unused, idle list.List
}

// The reasons why connections are closed or refused.
const (
	reasonAddress = "address"
	reasonUnused  = "unused"
	reasonIdle    = "idle"
)

// New returns a pool without connections.
func New(o Options) *Pool {
	p := &Pool{
		options: o, of: map[netip.Prefix]*source{}, changed: make(chan struct{}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_connections_closed_total",
			Help: "Connections closed to bound their number: address (too many from it, refused), unused (never had a call), idle.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{reasonAddress, reasonUnused, reasonIdle} {
		p.closed.WithLabelValues(reason)
	}
	return p
}

// Collectors returns the metrics of the pool.
func (p *Pool) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.closed, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apportion_connections", Help: "Connections that are open, of all listeners but admin's.",
	}, func() float64 { return float64(p.Open()) })}
}

// Open returns the number of connections.
func (p *Pool) Open() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.open
}

// Full reports whether a new connection would have to wait: the limit is reached, and no connection can be replaced.
func (p *Pool) Full() bool {
	if p.failing.Load() {
		return true
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.open < p.options.Maximum {
		return false
	}
	victim, _ := p.oldest(&p.queue)
	return victim == nil
}

// outcome is the decision about an accepted connection.
type outcome struct {
	// conn is nil if the connection was not added.
	conn *Conn
	// victim is the connection that it replaces.
	victim *Conn
	// changed and after determine when to try again if all connections are in use. changed is nil if the connection is refused.
	changed <-chan struct{}
	after   time.Duration
}

// take adds a connection to the pool if there is room, or if it can replace another one.
func (p *Pool) take(raw net.Conn) (o outcome) {
	from := prefixOf(raw.RemoteAddr())
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if s := p.of[from]; s != nil && s.open >= p.options.Address && p.options.Address < p.options.Maximum {
		if o.victim, _ = p.oldest(&s.queue); o.victim == nil {
			p.closed.WithLabelValues(reasonAddress).Inc()
			return o
		}
	} else if p.open >= p.options.Maximum {
		if o.victim, o.after = p.oldest(&p.queue); o.victim == nil {
			o.changed = p.changed
			return o
		}
	}
	p.evict(o.victim)
	o.conn = &Conn{Conn: raw, pool: p, from: from}
	p.add(o.conn)
	return o
}

// oldest returns the connection of a queue that can be replaced, or nil and the time until one can be; 0 if none will be idle by time
// alone.
func (p *Pool) oldest(q *queue) (*Conn, time.Duration) {
	if first := q.unused.Front(); first != nil {
		return connOf(first), 0
	}
	first := q.idle.Front()
	if first == nil {
		return nil, 0
	}
	c := connOf(first)
	if left := p.options.Idle - time.Since(c.since); left > 0 {
		return nil, left
	}
	return c, 0
}

// evict removes a connection from the pool; the caller then closes it. It does nothing for nil.
func (p *Pool) evict(c *Conn) {
	if c == nil {
		return
	}
	reason := reasonUnused
	if c.used {
		reason = reasonIdle
	}
	p.closed.WithLabelValues(reason).Inc()
	p.remove(c)
}

// giveWay closes the connection that would be replaced first, and reports whether there was one.
func (p *Pool) giveWay() bool {
	p.mutex.Lock()
	victim, _ := p.oldest(&p.queue)
	p.evict(victim)
	p.mutex.Unlock()
	if victim == nil {
		return false
	}
	victim.discard()
	return true
}

func (p *Pool) add(c *Conn) {
	p.open++
	if c.from.IsValid() {
		if c.source = p.of[c.from]; c.source == nil {
			c.source = &source{}
			p.of[c.from] = c.source
		}
		c.source.open++
	}
	c.enqueue()
}

// remove removes a connection, once.
func (p *Pool) remove(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	c.dequeue()
	p.open--
	if s := c.source; s != nil {
		if s.open--; s.open == 0 {
			delete(p.of, c.from)
		}
	}
	p.announce()
}

// announce wakes the goroutines that wait for room.
func (p *Pool) announce() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// prefixOf returns the range of addresses that count as one peer with an address. It is invalid for a peer without an IP address.
func prefixOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

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
