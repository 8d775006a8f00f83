// Package floor measures the minimum cost of a call over grpc-go: it transfers bytes that neither side decodes.
package floor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// Bytes is a message as it is on the wire.
type Bytes []byte

// Codec passes Bytes unchanged. It has the name of protobuf's codec, because the bytes may be protobuf.
type Codec struct{}

// Name returns the content subtype.
func (Codec) Name() string { return "proto" }

// Marshal returns the bytes without a copy.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*Bytes)
	if !ok {
		return nil, fmt.Errorf("floor: cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// Unmarshal puts the bytes together.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*Bytes)
	if !ok {
		return fmt.Errorf("floor: cannot receive a %T", v)
	}
	*b = data.Materialize()
	return nil
}

// Methods of the server.
const (
	// Call answers with the bytes of the last call of Reply.
	Call  = "/apportion.bench.Floor/Call"
	Reply = "/apportion.bench.Floor/Reply"
	// Echo and Stream answer with what they receive.
	Echo   = "/apportion.bench.Floor/Echo"
	Stream = "/apportion.bench.Floor/Stream"
)

// StreamDesc describes Stream, for clients.
var StreamDesc = grpc.StreamDesc{StreamName: "Stream", ServerStreams: true, ClientStreams: true, Handler: stream}

type server struct{ reply atomic.Pointer[Bytes] }

// Serve serves until ctx ends.
func Serve(ctx context.Context, listener net.Listener) error {
	s := grpc.NewServer(grpc.ForceServerCodecV2(Codec{}), grpc.MaxRecvMsgSize(1<<30), grpc.MaxSendMsgSize(1<<30))
	floor := &server{}
	floor.reply.Store(&Bytes{})
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "apportion.bench.Floor",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Call", Handler: unary(func(*Bytes) *Bytes { return floor.reply.Load() })},
			{MethodName: "Reply", Handler: unary(func(b *Bytes) *Bytes {
				floor.reply.Store(b)
				return &Bytes{}
			})},
			{MethodName: "Echo", Handler: unary(func(b *Bytes) *Bytes { return b })},
		},
		Streams: []grpc.StreamDesc{StreamDesc},
	}, floor)
	stop := context.AfterFunc(ctx, s.Stop)
	defer stop()
	return s.Serve(listener)
}

func unary(answer func(*Bytes) *Bytes) grpc.MethodHandler {
	return func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var b Bytes
		if err := decode(&b); err != nil {
			return nil, err
		}
		return answer(&b), nil
	}
}

func stream(_ any, s grpc.ServerStream) error {
	for {
		var b Bytes
		if err := s.RecvMsg(&b); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.SendMsg(&b); err != nil {
			return err
		}
	}
}
