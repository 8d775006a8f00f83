package service

import "context"

// anonymous is the identity of callers that no interceptor has named.
const anonymous = "anonymous"

type identityKey struct{}

// WithIdentity returns a context that says who calls. Snapshots are held for an identity and found by no other.
func WithIdentity(ctx context.Context, identity string) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// IdentityOf returns who calls.
func IdentityOf(ctx context.Context) string {
	if identity, ok := ctx.Value(identityKey{}).(string); ok {
		return identity
	}
	return anonymous
}
