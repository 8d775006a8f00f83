package client

import _ "embed"

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
