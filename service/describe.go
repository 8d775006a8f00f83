package service

import (
	"context"
	"errors"

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
	limits   *Limits
	// bytes is how long the message is.
	bytes int
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
	e.bytes = data.Len()
	err := c.open(data, e)
	var fault *wire.Fault
	switch {
	case errors.As(err, &fault):
		e.fault = fault
	case err != nil:
		e.fault = invalidRequest("", "the message cannot be read")
	}
	return nil
}

// open decodes what is in an envelope.
func (c codec) open(data mem.BufferSlice, e *envelope) error {
	of, ok := shapeOf(e.request)
	if e.limits == nil || !ok {
		return c.CodecV2.Unmarshal(data, e.request)
	}
	request, _ := e.request.(proto.Message)
	whole := data.MaterializeToBuffer(&pool)
	snapshot, rest, taken := []byte(nil), whole.ReadOnlyData(), false
	if e.snapshot != nil {
		snapshot, rest, taken = takeOut(rest, request)
	}
	err := e.limits.question(rest, len(rest), of)
	if err == nil && taken {
		err = proto.Unmarshal(rest, request)
	}
	if taken && err == nil {
		e.snapshot.data, e.snapshot.buffer = snapshot, whole
		return nil
	}
	defer whole.Free()
	if err != nil {
		return err
	}
	if session, ok := request.(*apportionv1.RunSessionRequest); ok && wire.DecodeBatch(whole.ReadOnlyData(), session) {
		return nil
	}
	return proto.Unmarshal(whole.ReadOnlyData(), request)
}

// shapeOf returns what of a request is held to limits before it is decoded; false: it holds next to nothing.
func shapeOf(request any) (shape, bool) {
	switch request.(type) {
	case *apportionv1.SimulateRequest:
		return simulate, true
	case *apportionv1.RunSessionRequest:
		return sessionShape, true
	case inline:
		return unaryShape, true
	}
	return shape{}, false
}

// receiveApart receives a request in an envelope that keeps an inline snapshot apart.
func receiveApart(request any, snapshot *snapshotBytes, limits *Limits, receive func(any) error) error {
	return (&envelope{request: request, snapshot: snapshot, limits: limits}).fill(receive)
}

func (e *envelope) fill(receive func(any) error) error {
	if err := receive(e); err != nil {
		return err
	}
	if e.fault != nil {
		return status.ErrorProto(wire.Status(e.fault))
	}
	return nil
}

// enveloped is a stream that receives in envelopes, and keeps an inline snapshot apart.
type enveloped struct {
	grpc.ServerStream

	context context.Context //nolint:containedctx // It is the stream's.
	// held takes the snapshot of the first message, and tells how long the newest is.
	held   *snapshotBytes
	begun  bool
	limits *Limits
}

// Context carries the snapshot of the message received last.
func (s *enveloped) Context() context.Context { return s.context }

// RecvMsg receives one message. Only the first one of a stream may hold a snapshot.
func (s *enveloped) RecvMsg(request any) error {
	e := envelope{request: request, limits: s.limits}
	if !s.begun {
		s.begun, e.snapshot = true, s.held
	}
	err := e.fill(s.ServerStream.RecvMsg)
	s.held.message = e.bytes
	return err
}

// description is the contract's service, with requests in envelopes.
func description(limits *Limits) *grpc.ServiceDesc {
	d := apportionv1.ApportionService_ServiceDesc
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		handle := d.Methods[i].Handler
		d.Methods[i].Handler = func(service any, ctx context.Context, decode func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
			var snapshot snapshotBytes
			defer snapshot.free()
			return handle(service, withSnapshot(ctx, &snapshot), func(request any) error {
				return receiveApart(request, &snapshot, limits, decode)
			}, i)
		}
	}
	d.Streams = append([]grpc.StreamDesc(nil), d.Streams...)
	for i := range d.Streams {
		handle := d.Streams[i].Handler
		d.Streams[i].Handler = func(service any, stream grpc.ServerStream) error {
			var snapshot snapshotBytes
			defer snapshot.free()
			return handle(service, &enveloped{ServerStream: stream, context: withSnapshot(stream.Context(), &snapshot), held: &snapshot, limits: limits})
		}
	}
	return &d
}
