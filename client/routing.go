package client

import (
	"context"
	_ "embed"

	"google.golang.org/grpc/metadata"
)

// RoutingHeader is the name of the metadata that a Mirror sends with each of its calls. Its value is a random constant of the mirror. A
// load balancer that chooses the replica by a consistent hash of this header keeps a mirror with the replica that holds its snapshots:
// Envoy's ring hash by a hash policy on the header, HAProxy's `balance hdr(apportion-mirror)` with `hash-type consistent`, and gRPC's
// ring_hash with requestHashHeader.
const RoutingHeader = "apportion-mirror"

// mirrorServiceConfig is client/mirror-service-config.json.
//
//go:embed mirror-service-config.json
var mirrorServiceConfig string

// MirrorServiceConfig returns the gRPC service config in JSON for calls with RoutingHeader: the config of ServiceConfig with a ring hash of
// this header instead of round robin. A Client uses it for the calls of its mirrors.
func MirrorServiceConfig() string { return mirrorServiceConfig }

// routed marks the context of a call about a mirror.
type routed struct{}

// route returns a context whose calls go to the replica with the mirror's snapshots.
func (m *Mirror) route(ctx context.Context) context.Context {
	return context.WithValue(metadata.AppendToOutgoingContext(ctx, RoutingHeader, m.routing), routed{}, true)
}

// replica returns the service for a call with ctx.
func (c *Client) replica(ctx context.Context) *stubs {
	if ctx.Value(routed{}) != nil {
		return c.mirrored
	}
	return c.remote
}

// serviceConfig is client/service-config.json, the gRPC service config for clients in every language.
//
//go:embed service-config.json
var serviceConfig string

// ServiceConfig returns the gRPC service config in JSON that a client without this package should use. It balances calls over all healthy
// replicas, and retries a call up to four times if its replica was lost or busy. The server's trailer grpc-retry-pushback-ms sets the delay
// before the next attempt, or forbids a retry if it would not help.
//
// A Client uses the same load balancing and retries calls itself, because gRPC cannot retry a message above its buffer (256 KiB).
func ServiceConfig() string { return serviceConfig }
