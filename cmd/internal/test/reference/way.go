package reference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service"
)

// Evaluator answers steps about an input. An error is a gRPC status.
type Evaluator func(context.Context, *apportionv1.Input, []*apportionv1.Step) ([]*apportionv1.Answer, *apportionv1.Basis, error)

// Way is a way along which answers come.
type Way struct {
	Name     string
	Evaluate Evaluator
	// Open opens a session.
	Open func(context.Context, *apportionv1.Snapshot, *apportionv1.Policy) (Session, error)
}

// InProcess answers without a service: the snapshot is compiled, a session opened, and each step done in it.
func InProcess() Way {
	return Way{Name: "process", Open: openLocal, Evaluate: func(_ context.Context, input *apportionv1.Input, steps []*apportionv1.Step,
	) ([]*apportionv1.Answer, *apportionv1.Basis, error) {
		model, err := decode.Compile(input.GetSnapshot())
		if err != nil {
			return nil, nil, statusOf(err)
		}
		session, err := wire.Open(model, input.GetPolicy(), wire.Options{})
		if err != nil {
			return nil, nil, statusOf(err)
		}
		answers := make([]*apportionv1.Answer, len(steps))
		for i, step := range steps {
			answers[i] = session.Do(step)
		}
		return answers, session.Basis(), nil
	}}
}

func statusOf(err error) error { return status.FromProto(decode.Status(err)).Err() }

// Called answers through a service: all steps in one call of Simulate.
func Called(client apportionv1.DecisionServiceClient) Way {
	return Way{Name: "service", Evaluate: func(ctx context.Context, input *apportionv1.Input, steps []*apportionv1.Step,
	) ([]*apportionv1.Answer, *apportionv1.Basis, error) {
		response, err := client.Simulate(ctx, &apportionv1.SimulateRequest{Input: input, Steps: steps})
		return response.GetAnswers(), response.GetBasis(), err
	}}
}

// Served is Called on a service in this process, over connections that are buffers. stop ends the service.
func Served() (way Way, stop func() error, err error) {
	answering, err := service.New(service.Options{})
	if err != nil {
		return Way{}, nil, err
	}
	listener := bufconn.Listen(connectionBuffer)
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), dialer,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return Way{}, nil, err
	}
	sessions, err := client.Dial(target, client.WithPlaintext(), client.WithDialOptions(dialer))
	if err != nil {
		return Way{}, nil, errors.Join(err, connection.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- answering.Serve(ctx, listener) }()
	stop = func() error {
		closed := errors.Join(sessions.Close(), connection.Close())
		cancel()
		return errors.Join(closed, <-served)
	}
	way = Called(apportionv1.NewDecisionServiceClient(connection))
	way.Open = openWith(sessions)
	return way, stop, nil
}

// target stands for a service behind a buffer.
const target = "passthrough:///reference"

// connectionBuffer is the size of a connection's buffer in each direction, in bytes.
const connectionBuffer = 1 << 20

// Ways returns the way of a name, or all where it is empty. stop ends what they need.
func Ways(name string) (ways []Way, stop func() error, err error) {
	stop = func() error { return nil }
	if name == "" || name == "process" {
		ways = append(ways, InProcess())
	}
	if name == "" || name == "service" {
		var served Way
		if served, stop, err = Served(); err != nil {
			return nil, nil, err
		}
		ways = append(ways, served)
	}
	if len(ways) == 0 {
		return nil, nil, fmt.Errorf("no way is named %q; there are process and service", name)
	}
	return ways, stop, nil
}
