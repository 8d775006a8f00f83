package service

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"
)

// anonymous is the identity of callers that neither a tap nor an interceptor has named.
const anonymous = "anonymous"

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
	return anonymous
}

// TenantOf returns the key by which the server is shared among callers: the identity, or the address of a caller without one.
func TenantOf(ctx context.Context) string {
	identity := IdentityOf(ctx)
	if identity != anonymous {
		return identity
	}
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return identity
	}
	if address, ok := from.Addr.(remoteAddr); ok {
		return address.connection.tenant
	}
	return tenantAt(from.Addr)
}

// tenantAt returns the tenant of callers without an identity at an address.
func tenantAt(address net.Addr) string {
	if address == nil {
		return anonymous
	}
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return anonymous
	}
	return anonymous + "@" + host
}
