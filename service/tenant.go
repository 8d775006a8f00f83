package service

import (
	"context"

	"google.golang.org/grpc/peer"

	"github.com/apportion/apportion/service/connection"
)

type identityKey struct{}

// WithIdentity returns a context with the identity of the caller. Snapshots are held per identity.
func WithIdentity(ctx context.Context, identity string) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// IdentityOf returns the identity of the caller.
func IdentityOf(ctx context.Context) string {
	if identity, ok := ctx.Value(identityKey{}).(string); ok {
		return identity
	}
	return connection.Anonymous
}

// TenantOf returns the key by which the server is shared among callers: the identity, or the address of a caller without one.
func TenantOf(ctx context.Context) string {
	identity := IdentityOf(ctx)
	if identity != connection.Anonymous {
		return identity
	}
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return identity
	}
	return connection.TenantAt(from.Addr)
}
