package peer

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/apportion/apportion/internal/memory"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
)

// The roles that a peer may have.
const (
	// Service answers as the product does; it knows the policies of package fixture by their names.
	Service = "service"
	// Patient is a Service that lets calls wait for a minute: if their latency is measured, not which of them are refused.
	Patient = "patient"
	// Bounded is a Service whose memory and calls are limited to Bound.
	Bounded = "bounded"
	// Floor transfers bytes.
	Floor = "floor"
)

// Bound contains the limits of a Bounded peer.
var Bound = admission.Options{Memory: 96 << 20, Receiving: 96 << 20, Calls: 512}

// RequestBytes is the message limit, large enough for a snapshot of a million tasks.
const RequestBytes = 256 << 20

// Run is the main function of a process that Start has started.
func Run(role string) error {
	switch role {
	case Floor:
		return Serve(os.Stdin, os.Stdout, floor.Serve)
	case Service:
		return runService(admission.Options{})
	case Bounded:
		return runService(Bound)
	case Patient:
		return runService(admission.Options{Wait: time.Minute, Receiving: 4 << 30, Memory: 8 << 30})
	}
	return fmt.Errorf("no role %q", role)
}

func runService(overload admission.Options) error {
	policies, err := fixture.Policies()
	if err != nil {
		return err
	}
	processor.Spare()
	service.MapMessages(memory.Outside())
	server, err := service.New(service.Options{Policies: policies, Overload: overload, Limit: setting.Limit{MessageBytes: RequestBytes}})
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
