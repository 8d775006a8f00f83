package service

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// codec is gRPC's own codec, but for the responses of the contract.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal encodes a response, those of the contract into memory that is used again.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok, err := encode(v); ok || err != nil {
		return data, err
	}
	return c.CodecV2.Marshal(v)
}

// open decodes a request from its parcel. If snapshot is not nil, the bytes of an inline snapshot are left there.
func (in *incoming) open(
	ctx context.Context, p *parcel, request any, snapshot *snapshotBytes, limits *Limits,
) error {
	message, ok := request.(proto.Message)
	if !ok {
		return errNoMessage
	}
	of, ok := shapeOf(request)
	if !ok {
		// A piece of a snapshot is copied, nothing more.
		if err := p.decoding(ctx, in, p.buffer.Len()); err != nil {
			return err
		}
		return readable(proto.Unmarshal(p.data(), message))
	}
	taken, rest, apart := []byte(nil), p.data(), false
	if snapshot != nil {
		taken, rest, apart = takeOut(rest, message)
	}
	question := len(rest) - of.chunk(rest)
	if err := limits.question(rest, question, of); err != nil {
		return err
	}
	if err := p.decoding(ctx, in, decodedBytes*question+len(rest)-question); err != nil {
		return err
	}
	if apart {
		p.buffer.Ref()
		snapshot.data, snapshot.buffer = taken, p.buffer
		return readable(proto.Unmarshal(rest, message))
	}
	if session, ok := request.(*apportionv1.RunSessionRequest); ok && wire.DecodeBatch(rest, session) {
		return nil
	}
	return readable(proto.Unmarshal(rest, message))
}

var errNoMessage = errors.New("a request is no message")

// readable returns the contract's INVALID_ARGUMENT for bytes that are no message: gRPC's INTERNAL is what operators are woken for.
func readable(err error) error {
	if err != nil {
		return invalidRequest("", "the message cannot be read")
	}
	return nil
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

// enveloped is a stream whose messages are received here, and whose inline snapshot is kept apart.
type enveloped struct {
	grpc.ServerStream

	context  context.Context //nolint:containedctx // It is the stream's.
	incoming *incoming
	snapshot *snapshotBytes
	limits   *Limits
	// patience is how long a message may wait for memory. A stream waits as long as it lasts: its client is held back meanwhile.
	patience time.Duration
	// held is the message received last, unless somebody has taken it over.
	held parcel
}

// Context carries the snapshot of the message received last.
func (s *enveloped) Context() context.Context { return s.context }

// RecvMsg receives one message. Only the first one of a stream may hold a snapshot.
func (s *enveloped) RecvMsg(request any) error {
	snapshot := s.snapshot
	s.snapshot = nil
	s.held.unbook()
	p, err := s.incoming.next(s.ServerStream.Context(), s.patience)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err == nil {
		err = s.incoming.open(s.ServerStream.Context(), &p, request, snapshot, s.limits)
		// What is left of the message is what it was decoded to, and a snapshot that has its own reference.
		p.drop()
		s.held = p
	}
	return err
}

type envelopedKey struct{}

// takeOver leaves it to the caller to give back what is booked for the message of a stream that was received last.
func takeOver(ctx context.Context) parcel {
	s, ok := ctx.Value(envelopedKey{}).(*enveloped)
	if !ok {
		return parcel{}
	}
	p := s.held
	s.held = parcel{}
	return p
}

// description is the contract's service, with messages that are received here.
//
//nolint:contextcheck,nolintlint // The context of a call is that of its stream, never one that the server was made with.
func (s *Server) description() *grpc.ServiceDesc {
	d := apportionv1.ApportionService_ServiceDesc
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		method := &d.Methods[i]
		name, handle := "/"+d.ServiceName+"/"+method.MethodName, method.Handler
		method.Handler = func(service any, ctx context.Context, _ func(any) error, with grpc.UnaryServerInterceptor) (any, error) {
			return s.unaryCall(ctx, name, func(ctx context.Context, decode func(any) error) (any, error) {
				return handle(service, ctx, decode, with)
			})
		}
	}
	d.Streams = append([]grpc.StreamDesc(nil), d.Streams...)
	for i := range d.Streams {
		stream := &d.Streams[i]
		name, handle := "/"+d.ServiceName+"/"+stream.StreamName, stream.Handler
		stream.Handler = func(service any, stream grpc.ServerStream) error {
			return s.streamCall(stream.Context(), name, stream, func(stream grpc.ServerStream) error { return handle(service, stream) })
		}
	}
	return &d
}

// unaryCall receives the message of a unary call and has it answered.
func (s *Server) unaryCall(
	ctx context.Context, method string, answer func(context.Context, func(any) error) (any, error),
) (response any, err error) {
	in, err := s.service.inbox.receive(ctx)
	if err != nil {
		return nil, s.service.fail(ctx, err)
	}
	defer func() { s.measure(ctx, method, in, err) }()
	end, err := s.service.begin(ctx, method)
	if err != nil {
		err = s.service.fail(ctx, err)
		s.taps.refuse(ctx, method, err)
		return nil, err
	}
	defer end()
	defer in.end()
	var snapshot snapshotBytes
	defer snapshot.free()
	return answer(withSnapshot(ctx, &snapshot), func(request any) error {
		p, err := s.arrive(ctx, in)
		if err != nil {
			return s.service.fail(ctx, err)
		}
		err = in.open(ctx, &p, request, &snapshot, &s.service.options.Limits)
		p.drop()
		if err != nil {
			return s.service.fail(ctx, err)
		}
		return nil
	})
}

// arrive receives the one message of a unary call, in the time that it has for it.
func (s *Server) arrive(ctx context.Context, in *incoming) (parcel, error) {
	late := time.AfterFunc(s.messageTime(), func() { s.tooSlow(ctx) })
	defer late.Stop()
	arrived := s.service.gate.expect(in.identity)
	defer arrived()
	p, err := in.next(ctx, in.patience)
	if errors.Is(err, io.EOF) {
		return parcel{}, protocolFault("the call has no message")
	}
	if err != nil {
		return parcel{}, err
	}
	if err := in.last(ctx); err != nil {
		p.free()
		return parcel{}, err
	}
	return p, nil
}

// tooSlow ends a call whose message does not come.
func (s *Server) tooSlow(ctx context.Context) {
	if end, ok := ctx.Value(endKey{}).(context.CancelCauseFunc); ok {
		limit := s.messageTime().Milliseconds()
		fault := wire.Exceeded("deadline.message", limit, limit, "the message did not come in time")
		fault.Code = codes.DeadlineExceeded
		end(fault)
	}
}

func (s *Server) messageTime() time.Duration {
	return orDefault(s.options.MessageTime, defaultMessageTime)
}

// streamCall receives the messages of a stream.
func (s *Server) streamCall(
	ctx context.Context, method string, stream grpc.ServerStream, answer func(grpc.ServerStream) error,
) (err error) {
	in, err := s.service.inbox.receive(ctx)
	if err != nil {
		return s.service.fail(ctx, err)
	}
	defer func() { s.measure(ctx, method, in, err) }()
	end, err := s.service.begin(ctx, method)
	if err != nil {
		err = s.service.fail(ctx, err)
		s.taps.refuse(ctx, method, err)
		return err
	}
	defer end()
	defer in.end()
	var snapshot snapshotBytes
	defer snapshot.free()
	e := &enveloped{ServerStream: stream, incoming: in, snapshot: &snapshot, limits: &s.service.options.Limits, patience: -1}
	e.context = context.WithValue(withSnapshot(ctx, &snapshot), envelopedKey{}, e)
	return answer(e)
}

// chunk is how many bytes of a message are part of a snapshot, which stay as they are.
func (z shape) chunk(data []byte) int {
	chunk := 0
	if len(z.steps) > 1 {
		each(data, chunkField, func(one []byte) { chunk += len(one) })
	}
	return chunk
}

// chunkField is where a message of a session has a piece of its snapshot.
const chunkField protowire.Number = 2
