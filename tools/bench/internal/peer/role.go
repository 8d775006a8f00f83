package peer

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/apportion/apportion/internal/memory"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/buffer"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
)

// The roles that a peer may have.
const (
	// Service answers as the product does; it knows the policies of package fixture by their names.
	Service = "service"
	// Floor transfers bytes.
	Floor = "floor"
)

// RequestBytes is the message limit, large enough for a snapshot of a million tasks.
const RequestBytes = 256 << 20

// Run is the main function of a process that Start has started.
func Run(role string) error {
	switch role {
	case Floor:
		return Serve(os.Stdin, os.Stdout, floor.Serve)
	case Service:
		return runService()
	}
	return fmt.Errorf("no role %q", role)
}

func runService() error {
	policies, err := fixture.Policies()
	if err != nil {
		return err
	}
	processor.Spare()
	buffer.Map(memory.Outside())
	server, err := service.New(service.Options{Policies: policies, Limit: setting.Limit{MessageBytes: RequestBytes}})
	if err != nil {
		return err
	}
	return Serve(os.Stdin, os.Stdout, func(ctx context.Context, l net.Listener) error { return server.Serve(ctx, l) })
}

// Dial returns a connection to the peer.
func (p *Peer) Dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
}
