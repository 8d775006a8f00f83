package service

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// gRPC answers bytes that are no message with INTERNAL, which is what operators are woken for, before any handler or interceptor is asked.
// Here a request is received in an envelope that keeps the fault, so that the answer is the contract's INVALID_ARGUMENT.

// envelope is a request to be received, and then what was wrong with its bytes. If snapshot is not nil, the bytes of an inline snapshot
// are left there.
type envelope struct {
	request  any
	fault    error
	snapshot *snapshotBytes
}

// codec is gRPC's own codec, but for envelopes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal encodes a response, those of the contract into memory that is used again.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok, err := encode(v); ok || err != nil {
		return data, err
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal never fails for an envelope.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	e, ok := v.(*envelope)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if err := c.open(data, e); err != nil {
		e.fault = invalidRequest("", "the message cannot be read")
	}
	return nil
}

// open decodes what is in an envelope.
func (c codec) open(data mem.BufferSlice, e *envelope) error {
	if request, ok := e.request.(*apportionv1.RunSessionRequest); ok {
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		if wire.DecodeBatch(whole.ReadOnlyData(), request) {
			return nil
		}
		return proto.Unmarshal(whole.ReadOnlyData(), request)
	}
	request, ok := e.request.(inline)
	if e.snapshot == nil || !ok {
		return c.CodecV2.Unmarshal(data, e.request)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	snapshot, taken, err := takeOut(whole.ReadOnlyData(), request)
	if taken && err == nil {
		e.snapshot.data, e.snapshot.buffer = snapshot, whole
		return nil
	}
	defer whole.Free()
	if err != nil {
		return err
	}
	return proto.Unmarshal(whole.ReadOnlyData(), request)
}

// receive receives a request in an envelope.
func receive(request any, receive func(any) error) error {
	return receiveApart(request, nil, receive)
}

// receiveApart receives a request in an envelope that keeps an inline snapshot apart.
func receiveApart(request any, snapshot *snapshotBytes, receive func(any) error) error {
	e := envelope{request: request, snapshot: snapshot}
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
			var snapshot snapshotBytes
			defer snapshot.free()
			return handle(service, withSnapshot(ctx, &snapshot), func(request any) error { return receiveApart(request, &snapshot, decode) }, i)
		}
	}
	d.Streams = append([]grpc.StreamDesc(nil), d.Streams...)
	for i := range d.Streams {
		handle := d.Streams[i].Handler
		d.Streams[i].Handler = func(service any, stream grpc.ServerStream) error { return handle(service, enveloped{stream}) }
	}
	return &d
}
