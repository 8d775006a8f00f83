package service

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// gRPC answers bytes that are no message with INTERNAL, which is what operators are woken for, before any handler or interceptor is asked.
// Here a request is received in an envelope that keeps the fault, so that the answer is the contract's INVALID_ARGUMENT.

// envelope is a request to be received, and then what was wrong with its bytes.
type envelope struct {
	request any
	fault   error
}

// codec is gRPC's own codec, but for envelopes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal never fails for an envelope.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	e, ok := v.(*envelope)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if err := c.CodecV2.Unmarshal(data, e.request); err != nil {
		e.fault = invalidRequest("", "the message cannot be read")
	}
	return nil
}

// receive receives a request in an envelope.
func receive(request any, receive func(any) error) error {
	e := envelope{request: request}
	if err := receive(&e); err != nil {
		return err
	}
	if e.fault != nil {
		return status.ErrorProto(wire.Status(e.fault))
	}
	return nil
}

// enveloped is a stream that receives in envelopes.
type enveloped struct{ grpc.ServerStream }

// RecvMsg receives one message.
func (s enveloped) RecvMsg(request any) error { return receive(request, s.ServerStream.RecvMsg) }

// description is the contract's service, with requests in envelopes.
func description() *grpc.ServiceDesc {
	d := apportionv1.ApportionService_ServiceDesc
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		handle := d.Methods[i].Handler
		d.Methods[i].Handler = func(service any, ctx context.Context, decode func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
			return handle(service, ctx, func(request any) error { return receive(request, decode) }, i)
		}
	}
	d.Streams = append([]grpc.StreamDesc(nil), d.Streams...)
	for i := range d.Streams {
		handle := d.Streams[i].Handler
		d.Streams[i].Handler = func(service any, stream grpc.ServerStream) error { return handle(service, enveloped{stream}) }
	}
	return &d
}
