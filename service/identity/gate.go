package identity

import (
	"context"
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Gate admits or refuses calls. It is safe for concurrent use.
type Gate struct {
	authority *Authority
	table     atomic.Pointer[table]

	mutex sync.Mutex
	// lasting are the calls under way that last.
	lasting map[*lasting]struct{}
	// reviews counts the reviews that have begun.
	reviews atomic.Int64
}

// NewGate returns a gate that admits every caller until Admit is called. authority is nil if connections are not encrypted.
func NewGate(authority *Authority) *Gate {
	g := &Gate{authority: authority, lasting: map[*lasting]struct{}{}}
	g.table.Store(&table{})
	return g
}

// Admit replaces all identities, or none if one is invalid. It applies to new calls, and through Review to running ones. Without
// identities, every caller may do everything.
func (g *Gate) Admit(identities []Identity) error {
	t, err := newTable(identities)
	if err != nil {
		return err
	}
	g.table.Store(t)
	g.Review()
	return nil
}

// ServerOptions returns the options of a server with this gate, including credentials.
func (g *Gate) ServerOptions() []grpc.ServerOption {
	transport := insecure.NewCredentials()
	if g.authority != nil {
		transport = credentials.NewTLS(g.authority.Config())
	}
	return []grpc.ServerOption{grpc.Creds(linking{transport}), grpc.StatsHandler(lifetimes{})}
}

// Tap admits a call if its headers or its connection authenticate an identity that may call the method. Of then returns the identity. A
// long-lived call is ended when its permission is revoked.
func (g *Gate) Tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	reviews := g.reviews.Load()
	t, l := g.table.Load(), linkOf(ctx)
	shows := credentialOf(call, l)
	caller, err := g.caller(t, l, &shows)
	if err == nil {
		err = caller.MayCall(call.FullMethodName)
	}
	if err != nil {
		if l != nil {
			l.refuse()
		}
		return ctx, status.ErrorProto(decode.Status(err))
	}
	if l != nil {
		l.enter(ctx)
	}
	if lasts(call.FullMethodName) {
		return g.follow(ctx, &lasting{method: call.FullMethodName, caller: caller, shows: shows}, reviews), nil
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// credential is the credential of a call: a token, or the certificate of its connection.
type credential struct {
	// header is true if there is an authorization header, and bearer if it contains a token.
	header, bearer bool
	token          Hash
	chain          []*x509.Certificate
}

func credentialOf(call *tap.Info, l *link) credential {
	var c credential
	if values := call.Header["authorization"]; len(values) > 0 {
		var token string
		c.header = true
		token, c.bearer = bearer(values)
		c.token = HashOf(token)
	}
	if l != nil {
		c.chain = l.chain
	}
	return c
}

// caller returns the identity of the caller. A token takes precedence over a certificate: the caller chose it for this call, while a
// connection may be shared. Without a link, the certificate is verified again.
func (g *Gate) caller(t *table, l *link, shows *credential) (*Caller, error) {
	switch {
	case len(t.identities) == 0:
		return anyone, nil
	case shows.header && !shows.bearer:
		return nil, unauthenticated("the authorization header must hold one bearer token")
	case shows.header:
		owner := t.tokens.owner(shows.token)
		if owner < 0 {
			return nil, unauthenticated("the bearer token is not known")
		}
		return t.callers[owner], nil
	case len(shows.chain) == 0 || g.authority == nil:
		return nil, unauthenticated("the client presented neither a certificate nor a bearer token")
	}
	s := shown{table: t, material: g.authority.current.Load()}
	switch {
	case l == nil:
		s.find(shows.chain)
	case l.shown.table != s.table || l.shown.material != s.material:
		s.find(shows.chain)
		l.shown = s
	default:
		s = l.shown
	}
	if s.err == nil && time.Now().After(shows.chain[0].NotAfter) {
		return nil, unauthenticated("the presented certificate has expired")
	}
	return s.caller, s.err
}

// find returns the identity that a chain belongs to: once for a connection, and again when identities or authorities change.
func (s *shown) find(chain []*x509.Certificate) {
	if err := s.material.verify(chain, time.Now()); err != nil {
		s.err = unauthenticated("the presented certificate is not trusted")
	} else if s.caller = s.table.shown(chain[0]); s.caller == nil {
		s.err = &decode.Fault{
			Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
			Text: "no identity matches a name in the presented certificate",
		}
	}
}

func unauthenticated(text string) error {
	return &decode.Fault{Code: codes.Unauthenticated, Reason: apportionv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, Text: text}
}
