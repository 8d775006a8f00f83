package peer

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/apportion/apportion/bench/internal/fixture"
	"github.com/apportion/apportion/bench/internal/floor"
	"github.com/apportion/apportion/service"
)

// The roles that a peer may have.
const (
	// Service answers as the product does; it knows the policies of package fixture by their names.
	Service = "service"
	// Floor carries bytes.
	Floor = "floor"
)

// RequestBytes lets the snapshot of a million tasks pass.
const RequestBytes = 256 << 20

// Run is the whole life of a process that Start has started.
func Run(role string) error {
	switch role {
	case Floor:
		return Serve(os.Stdin, os.Stdout, floor.Serve)
	case Service:
		policies, err := fixture.Policies()
		if err != nil {
			return err
		}
		s, err := service.New(service.Options{Policies: policies})
		if err != nil {
			return err
		}
		server := service.NewServer(s, service.ServerOptions{RequestBytes: RequestBytes})
		return Serve(os.Stdin, os.Stdout, func(ctx context.Context, l net.Listener) error { return server.Serve(ctx, l) })
	}
	return fmt.Errorf("no role %q", role)
}

// Dial returns a connection to the peer.
func (p *Peer) Dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
}
