package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
	edge "github.com/apportion/apportion/service"
)

// server is the service with a connection in memory.
type server struct {
	*grpc.ClientConn

	end    context.CancelFunc
	served chan error
}

func serve(ctx context.Context, policies map[string]*apportionv1.Policy) (*server, error) {
	answering, err := edge.New(edge.Options{Policies: policies})
	if err != nil {
		return nil, err
	}
	const buffer = 1 << 20
	listener := bufconn.Listen(buffer)
	connection, err := grpc.NewClient("passthrough:///conformance", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	s := &server{ClientConn: connection, end: end, served: make(chan error, 1)}
	go func() { s.served <- answering.Serve(ctx, listener) }()
	return s, nil
}

func (s *server) stop() error {
	err := s.Close()
	s.end()
	return errors.Join(err, <-s.served)
}

// play makes one call, and returns its requests and responses in order: a response follows the request that it answers.
func (s *server) play(ctx context.Context, name string, requests []proto.Message) ([]message, error) {
	call, err := methodOf(name)
	if err != nil {
		return nil, err
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(call.Output().FullName())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// On the wire every call is a stream in both directions.
	stream, err := s.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method.PathOf(call))
	if err != nil {
		return nil, err
	}
	var exchange []message
	for i, m := range requests {
		exchange = append(exchange, message{request, m})
		if err := stream.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		last := i == len(requests)-1
		if last && (!call.IsStreamingServer() || !call.IsStreamingClient()) {
			if err := stream.CloseSend(); err != nil {
				return nil, err
			}
		}
		if !last && !answered(m) {
			continue
		}
		answer := output.New().Interface()
		if err := stream.RecvMsg(answer); err != nil {
			if !last {
				return nil, fmt.Errorf("request %d failed, and is not the last one: %w", i+1, err)
			}
			return append(exchange, message{failure, status.Convert(err).Proto()}), nil
		}
		exchange = append(exchange, message{response, answer})
	}
	return exchange, nil
}

// answered reports whether a request that is not the last one has a response of its own.
func answered(m proto.Message) bool {
	conversation, ok := m.(*apportionv1.RunSessionRequest)
	if !ok {
		return false
	}
	return conversation.GetBatch() != nil || conversation.GetChunk().GetLast() ||
		conversation.GetOpen() != nil && conversation.GetOpen().GetChunked() == nil
}
