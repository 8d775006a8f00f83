// Package connection closes connections whose peers waste calls or do not read what they asked for. A connection leads its calls to it, so
// that whoever answers them can say what became of each.
package connection

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Bounds hold all connections of a server to what a peer may waste and leave unread.
type Bounds struct {
	// Streams is how many calls a connection has at a time, and Resets how many it may waste in a second.
	Streams, Resets int
	// Answer is the time in which a peer takes a response.
	Answer time.Duration
	Log    *slog.Logger
	// Untaken and Reset count the connections that are closed because an answer was not read, or because calls were wasted.
	Untaken, Reset prometheus.Counter

	offenders offenders
}

// Booked is memory that is booked for a response.
type Booked interface{ Release() }

// Unread is the place of a response among those that the peer of a connection has not read.
type Unread struct {
	// booked is nil for a response that no connection holds.
	booked        Booked
	before, after *Unread
	since         time.Time
}

// Conn is a connection with the responses that its peer has not read yet. One that stays for longer than Bounds.Answer ends the
// connection: gRPC gives no way to end a stream whose handler has returned.
type Conn struct {
	net.Conn

	bounds *Bounds
	// later is the time until which calls were told to wait, in nanoseconds since start.
	later atomic.Int64
	// tenant is the tenant of callers without an identity.
	tenant string

	mutex sync.Mutex
	// credit is the number of further calls that may be wasted, as of a time.
	credit float64
	asOf   time.Time
	// offender answers for what is wasted: the address of the peer, or the first identity that a call has shown.
	offender   string
	identified bool
	// oldest and newest are the ends of the list of responses that the peer has not taken, in the order in which they were made.
	oldest, newest *Unread
	timer          *time.Timer
	closed         bool
}

// Hold notes a response that the transport takes over. What is booked for it is released if the connection is closed.
func (c *Conn) Hold(r *Unread, booked Booked) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		booked.Release()
		return
	}
	r.booked, r.before, r.since = booked, c.newest, time.Now()
	if c.newest == nil {
		c.oldest = r
	} else {
		c.newest.after = r
	}
	c.newest = r
	if c.timer == nil {
		c.timer = time.AfterFunc(c.bounds.Answer, c.check)
	}
}

// Drop notes that the transport has let go of a response.
func (c *Conn) Drop(r *Unread) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.remove(r)
}

// remove takes a response out of the list, if it is there.
func (c *Conn) remove(r *Unread) {
	if r.booked == nil {
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
	r.booked, r.before, r.after = nil, nil, nil
}

// check closes the connection if its oldest response was not taken in time, and otherwise looks again when it would be.
func (c *Conn) check() {
	c.mutex.Lock()
	oldest := c.oldest
	if oldest == nil || c.closed {
		c.timer = nil
		c.mutex.Unlock()
		return
	}
	if left := c.bounds.Answer - time.Since(oldest.since); left > 0 {
		c.timer.Reset(left)
		c.mutex.Unlock()
		return
	}
	c.mutex.Unlock()
	c.bounds.Untaken.Inc()
	c.ending("an answer was not read in time")
	// The peer does not read what the server sends. There is no use for the error.
	_ = c.Close()
}

// Close closes the connection and releases the memory booked for its responses, because gRPC does not free the responses of a closed
// connection.
func (c *Conn) Close() error {
	c.mutex.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	for c.oldest != nil {
		c.oldest.booked.Release()
		c.remove(c.oldest)
	}
	c.mutex.Unlock()
	return c.Conn.Close()
}

// RemoteAddr returns the address of the peer. It leads the calls of the connection to it.
func (c *Conn) RemoteAddr() net.Addr { return remoteAddr{c.Conn.RemoteAddr(), c} }

// NetConn returns the underlying connection.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Begin counts a call on the connection until end is called.
func (c *Conn) Begin() (end func()) {
	if counting, ok := c.Conn.(interface{ Begin() func() }); ok {
		return counting.Begin()
	}
	return func() {}
}

type remoteAddr struct {
	net.Addr

	conn *Conn
}

// Of returns the connection of a call, or nil if it did not come over a listener of Bounds. All methods of nil do nothing.
func Of(ctx context.Context) *Conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return at(p.Addr)
}

func at(address net.Addr) *Conn {
	of, _ := address.(remoteAddr)
	return of.conn
}

// Anonymous is the identity of callers that nothing has named.
const Anonymous = "anonymous"

// TenantAt returns the tenant of callers without an identity at an address.
func TenantAt(address net.Addr) string {
	if address == nil {
		return Anonymous
	}
	if c := at(address); c != nil {
		return c.tenant
	}
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return Anonymous
	}
	return Anonymous + "@" + host
}

// Listen returns a listener whose connections are held to the bounds.
func (b *Bounds) Listen(l net.Listener) net.Listener { return listener{l, b} }

// listener makes a connection of what a listener accepts.
type listener struct {
	net.Listener

	bounds *Bounds
}

// Accept waits for a connection.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		Conn: raw, bounds: l.bounds, tenant: TenantAt(raw.RemoteAddr()), asOf: time.Now(), offender: offenderAt(raw.RemoteAddr()),
	}
	c.credit = l.bounds.offenders.credit(c.offender, c.most())
	return c, nil
}

// ending logs that the server closes a connection.
func (c *Conn) ending(why string) {
	c.bounds.Log.LogAttrs(context.Background(), slog.LevelWarn, "a connection is closed",
		slog.String("reason", why), slog.String("peer_address", c.RemoteAddr().String()))
}

// A client may reset its calls as fast as it can write, and each costs the server more than its frames cost the client. So a call that is
// wasted takes a credit of its connection when it ends: a call that its client has reset before its deadline (a session: before all its
// questions are answered), a call without the required identity, and a call of a method that does not exist. What the server refuses
// because it is busy, and what comes too late, costs none. Without credit, calls are refused; the connection is closed when a peer spends
// as much again on refused calls.

const (
	// resetSeconds is for how long a connection may have saved credit.
	resetSeconds = 5
	// lateReset is how near the end of its time a call may be reset by a client that has given up at that time.
	lateReset = 20 * time.Millisecond
)

// most is the maximum credit of a connection: the credit of all calls that it may have at a time, and what it may save.
func (c *Conn) most() float64 {
	return float64(c.bounds.Streams) + resetSeconds*float64(c.bounds.Resets)
}

// spend takes credit, or gives it back if it is negative, and returns what is left. The mutex is held.
func (c *Conn) spend(credit float64) float64 {
	now := time.Now()
	gained := now.Sub(c.asOf).Seconds() * float64(c.bounds.Resets)
	c.credit = min(min(c.credit+gained, c.most())-credit, c.most())
	c.asOf = now
	return c.credit
}

// Admit returns a fault if the connection has no credit for another call. It closes the connection of a peer that continues.
func (c *Conn) Admit() *decode.Fault {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	left := c.spend(0)
	if left >= 0 && !c.closed {
		c.mutex.Unlock()
		return nil
	}
	left = c.spend(1)
	ends, offender := left < -c.most() && !c.closed, c.offender
	c.mutex.Unlock()
	if ends {
		c.bounds.Reset.Inc()
		c.bounds.offenders.note(offender)
		c.ending("too many of its calls were wasted")
		// The peer is no client. There is no use for the error.
		_ = c.Close()
	}
	resets := c.bounds.Resets
	return &decode.Fault{
		Code: codes.ResourceExhausted, Reason: apportionv1.ErrorReason_ERROR_REASON_OVERLOADED,
		Text:     "too many calls of this connection were reset, or showed no identity",
		Retry:    max(time.Duration(-left/float64(resets)*float64(time.Second)), time.Second),
		Metadata: map[string]string{"limit": "connection.resets", "maximum": strconv.Itoa(resets)},
	}
}

// start is the origin of times that are kept as numbers. They do not depend on the clock of the machine, which may be set back.
var start = time.Now()

// Wait notes that a call was told to ask again after a time.
func (c *Conn) Wait(retry time.Duration) {
	if c != nil {
		c.later.Store(int64(time.Since(start) + retry))
	}
}

// MustWait reports whether a call was told to wait until a time that is still to come.
func (c *Conn) MustWait() bool {
	if c == nil {
		return false
	}
	later := c.later.Load()
	return later != 0 && int64(time.Since(start)) < later
}

// Waste takes the credit of a call that is wasted.
func (c *Conn) Waste() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.spend(1)
}

// End takes the credit of a call that ends if it is wasted.
func (c *Conn) End(ctx context.Context) {
	if c != nil && resetEarly(ctx) {
		c.Waste()
	}
}

// Keep gives the credit of a call back that was taken when it began, unless it is wasted.
func (c *Conn) Keep(ctx context.Context) {
	if c == nil || resetEarly(ctx) {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.spend(-1)
}

// resetEarly reports whether the client has reset a call before its time was over.
func resetEarly(ctx context.Context) bool {
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= lateReset
}

// Authenticated notes that a call has shown an identity. From the first one on, the identity and not the address of the peer answers for
// what the connection wastes, so that callers that share an address do not pay for each other.
func (c *Conn) Authenticated(identity string) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.identified {
		return
	}
	c.identified, c.offender = true, identity
	c.credit = c.bounds.offenders.credit(identity, c.most())
}
