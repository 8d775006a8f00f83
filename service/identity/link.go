package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
)

// gRPC makes a context with a timer for a call before it asks the tap, and forgets both if the tap refuses: until the deadline that the
// client wrote, which may be years away. A client without any right could so fill the memory with refused calls. Therefore a
// connection's calls live in a context that ends with it, and a connection ends after so many refusals.
const (
	maxRefused = 100
	// lastWords is the time for answers under way before a connection is cut.
	lastWords = 100 * time.Millisecond
)

// link is the state of a connection.
type link struct {
	conn net.Conn
	// chain is the certificate chain of the client, its own certificate first.
	chain []*x509.Certificate

	// shown is the identity that the chain belongs to, as of the table and the material; refused counts refusals since a call was let in.
	// Both are for the connection's reader alone.
	shown   shown
	refused int
	// calls under way, and whether the connection is to end with the last of them.
	calls  atomic.Int64
	ending atomic.Bool
	// activity counts the calls that were admitted. It may be nil.
	activity Activity
}

// Activity is implemented by connections that count the calls admitted by the gate, so that a listener can distinguish used connections
// from unused ones.
type Activity interface {
	// Begin is called when a call is admitted, and end when it ends.
	Begin() (end func())
}

// shown is the identity of a certificate chain, or the reason why there is none.
type shown struct {
	table    *table
	material *material
	caller   *Caller
	err      error
}

// enter counts a call that was let in.
func (l *link) enter(ctx context.Context) {
	l.refused = 0
	l.calls.Add(1)
	end := func() {}
	if l.activity != nil {
		end = l.activity.Begin()
	}
	// Both at once: each AfterFunc is a goroutine.
	context.AfterFunc(ctx, func() {
		end()
		if l.calls.Add(-1) == 0 && l.ending.Load() {
			l.end()
		}
	})
}

// refuse counts a refusal, and ends the connection if there were too many: with the last call under way.
func (l *link) refuse() {
	if l.refused++; l.refused < maxRefused || l.ending.Swap(true) {
		return
	}
	if l.calls.Load() == 0 {
		l.end()
	}
}

func (l *link) end() {
	if l.conn == nil {
		// The connection of another transport, which manages its connections itself.
		return
	}
	time.AfterFunc(lastWords, func() {
		// The error of Close has no reader.
		_ = l.conn.Close()
	})
}

// authInfo carries a link to the calls of its connection.
type authInfo struct {
	credentials.AuthInfo

	link *link
}

// linkOf returns the connection of a call, or nil if its handshake was not ours.
func linkOf(ctx context.Context) *link {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(authInfo)
	if !ok {
		return nil
	}
	return info.link
}

// linking makes a link of every handshake.
type linking struct {
	credentials.TransportCredentials
}

// ServerHandshake performs the handshake of a connection.
func (c linking) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	l := &link{conn: conn}
	l.activity, _ = raw.(Activity)
	if secure, ok := info.(credentials.TLSInfo); ok {
		l.chain = secure.State.PeerCertificates
	}
	return conn, authInfo{info, l}, nil
}

var errNoClient = errors.New("these credentials are a server's")

// ClientHandshake fails: only servers need links.
func (linking) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNoClient
}

// Clone returns the receiver.
func (c linking) Clone() credentials.TransportCredentials {
	return linking{c.TransportCredentials.Clone()}
}

// lifetimes ends the contexts of a connection with it.
type lifetimes struct{}

type cancelKey struct{}

// TagConn returns the context of a connection's calls.
func (lifetimes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, cancelKey{}, cancel)
}

// HandleConn ends that context.
func (lifetimes) HandleConn(ctx context.Context, event stats.ConnStats) {
	if _, over := event.(*stats.ConnEnd); !over {
		return
	}
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TagRPC does nothing.
func (lifetimes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (lifetimes) HandleRPC(context.Context, stats.RPCStats) {}

// WithConnection returns the context of a call over a transport other than gRPC's, with its address and the state of its connection, which
// is nil if it is not encrypted. A gate then has access to the client certificate.
func WithConnection(ctx context.Context, address string, state *tls.ConnectionState) context.Context {
	l := &link{activity: ActivityOf(ctx)}
	info := credentials.TLSInfo{}
	if state != nil {
		l.chain, info.State = state.PeerCertificates, *state
	}
	return peer.NewContext(ctx, &peer.Peer{Addr: from(address), AuthInfo: authInfo{info, l}})
}

type activityKey struct{}

// WithActivity returns the context of the calls on a connection of a transport other than gRPC's.
func WithActivity(ctx context.Context, a Activity) context.Context {
	return context.WithValue(ctx, activityKey{}, a)
}

// ActivityOf returns the activity of a call's connection, or nil.
func ActivityOf(ctx context.Context) Activity {
	a, _ := ctx.Value(activityKey{}).(Activity)
	return a
}

// from is the address of a peer.
type from string

// Network is the network of HTTP.
func (from) Network() string { return "tcp" }

// String gives host:port.
func (f from) String() string { return string(f) }
