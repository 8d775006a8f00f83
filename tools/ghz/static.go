package main

import (
	"strings"

	_ "google.golang.org/grpc/health" // Replicas are asked whether they serve.
	"google.golang.org/grpc/resolver"
)

// balanced takes turns among the addresses that say that they serve, as the project's Go client does.
const balanced = `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}`

// static resolves static:///HOST:PORT,HOST:PORT to these addresses.
type static struct{}

func init() { resolver.Register(static{}) } //nolint:gochecknoinits // gRPC knows resolvers by registration alone.

// Scheme of the addresses.
func (static) Scheme() string { return "static" }

// Build gives a connection its addresses, once.
func (static) Build(target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	state := resolver.State{ServiceConfig: conn.ParseServiceConfig(balanced)}
	for _, address := range strings.Split(target.Endpoint, ",") {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
	}
	conn.UpdateState(state)
	return static{}, nil
}

// ResolveNow does nothing: the addresses stay.
func (static) ResolveNow(resolver.ResolveNowOptions) {}

// Close does nothing.
func (static) Close() {}
