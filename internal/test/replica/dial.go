package replica

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/apportion/apportion/client"
)

// Dial connects to all replicas, as with the addresses of a headless service, and balances round robin among those that report SERVING.
func Dial(replicas []*Replica, options ...grpc.DialOption) (*client.Client, error) {
	addresses := manual.NewBuilderWithScheme("replicas")
	state := resolver.State{}
	for _, r := range replicas {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: r.Address})
	}
	addresses.InitialState(state)
	return client.Dial("replicas:///", client.WithPlaintext(), client.WithDialOptions(append(options, grpc.WithResolvers(addresses))...))
}
