package identity

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Gate lets calls in, or not. It is for any number of goroutines.
type Gate struct {
	authority *Authority
	table     atomic.Pointer[table]
}

// NewGate returns a gate that lets everybody in until Admit says whom. authority is nil where connections are not encrypted.
func NewGate(authority *Authority) *Gate {
	g := &Gate{authority: authority}
	g.table.Store(&table{})
	return g
}

// Admit replaces the identities, for calls from now on: all of them, or none if one is faulty. Without any, everybody may do everything.
func (g *Gate) Admit(identities []Identity) error {
	t, err := newTable(identities)
	if err != nil {
		return err
	}
	g.table.Store(t)
	return nil
}

// ServerOptions of a server that this gate stands before, credentials included.
func (g *Gate) ServerOptions() []grpc.ServerOption {
	transport := insecure.NewCredentials()
	if g.authority != nil {
		transport = credentials.NewTLS(g.authority.Config())
	}
	return []grpc.ServerOption{grpc.Creds(linking{transport}), grpc.StatsHandler(lifetimes{})}
}

// Tap lets a call in whose headers, or whose connection, show an identity that may call the method. Of knows it afterwards.
func (g *Gate) Tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	t := g.table.Load()
	l := linkOf(ctx)
	if len(t.identities) == 0 {
		if l != nil {
			l.enter(ctx)
		}
		return context.WithValue(ctx, callerKey{}, everybody), nil
	}
	caller, err := g.caller(t, l, call)
	if err == nil {
		err = caller.MayCall(call.FullMethodName)
	}
	if err != nil {
		if l != nil {
			l.refuse()
		}
		return ctx, status.ErrorProto(wire.Status(err))
	}
	if l != nil {
		l.enter(ctx)
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// caller finds out who calls. A token that is shown counts, even where a certificate was shown too: it is what the caller chose to show
// with this call, while a connection may be shared.
func (g *Gate) caller(t *table, l *link, call *tap.Info) (*Caller, error) {
	if values := call.Header["authorization"]; len(values) > 0 {
		token, ok := bearer(values)
		if !ok {
			return nil, unauthenticated("the authorization header must hold one bearer token")
		}
		owner := t.tokens.owner(token)
		if owner < 0 {
			return nil, unauthenticated("the bearer token is not known")
		}
		return t.callers[owner], nil
	}
	if l == nil || len(l.chain) == 0 || g.authority == nil {
		return nil, unauthenticated("neither a certificate nor a bearer token was shown")
	}
	return g.shown(t, l)
}

// shown finds out whom the certificate of a connection belongs to: once, and again when identities or authorities change.
func (g *Gate) shown(t *table, l *link) (*Caller, error) {
	m, now := g.authority.current.Load(), time.Now()
	if l.shown.table != t || l.shown.material != m {
		l.shown = shown{table: t, material: m}
		if err := m.verify(l.chain, now); err != nil {
			l.shown.err = unauthenticated("the certificate shown is not trusted, or no longer")
		} else if l.shown.caller = t.shown(l.chain[0]); l.shown.caller == nil {
			l.shown.err = &wire.Fault{
				Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
				Text: "the names in the certificate shown belong to nobody who may call",
			}
		}
	}
	if l.shown.err == nil && now.After(l.chain[0].NotAfter) {
		return nil, unauthenticated("the certificate shown has expired")
	}
	return l.shown.caller, l.shown.err
}

func unauthenticated(text string) error {
	return &wire.Fault{Code: codes.Unauthenticated, Reason: apportionv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, Text: text}
}
