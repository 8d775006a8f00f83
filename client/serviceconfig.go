package client

import _ "embed"

// serviceConfig is client/service-config.json, the gRPC service config for clients in every language.
//
//go:embed service-config.json
var serviceConfig string

// ServiceConfig returns the gRPC service config in JSON that a client without this package should use. It balances calls over all replicas
// that serve, and repeats a call up to four times where its replica was lost or refused it because it was busy. The server's trailer
// grpc-retry-pushback-ms sets the pause before the next attempt, and forbids one where it would not help.
//
// A Client balances by the same config and repeats calls by itself, because gRPC cannot repeat a message above its buffer (256 KiB).
func ServiceConfig() string { return serviceConfig }
