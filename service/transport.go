package service

import (
	"context"
	"io"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/service/admission"
)

// Calls may come over other transports than gRPC's. Admit lets them in once their headers are known, a Transfer receives and decodes their
// message as a message of gRPC is, and Call answers them, so that all that holds for calls of gRPC holds for them. What an answer takes is
// booked until the context of the call ends, which must be when the answer has been sent.

// Admit calls the taps for a call, and returns its context or the status that refuses it. The call is counted until the given context ends.
func (s *Server) Admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	in, err := s.tap(ctx, call)
	if err != nil {
		return in, err
	}
	end, err := s.begin(in, call.FullMethodName)
	if err != nil {
		err = StatusOf(err)
		s.refuse(in, call.FullMethodName, err)
		return in, err
	}
	context.AfterFunc(ctx, end)
	return in, nil
}

// Call answers a unary call within the interceptors: it is logged, and a panic becomes INTERNAL.
func (s *Server) Call(ctx context.Context, method string, request any, handle grpc.UnaryHandler) (any, error) {
	info := &grpc.UnaryServerInfo{Server: s.Direct(), FullMethod: method}
	for _, intercept := range slices.Backward(s.unary) {
		next := handle
		handle = func(ctx context.Context, request any) (any, error) { return intercept(ctx, request, info, next) }
	}
	return handle(ctx, request)
}

// Transfer is the message of a unary call admitted by Admit. Its memory is booked before it is allocated.
type Transfer struct {
	call    *call
	message message
}

// NewTransfer returns an empty transfer for the caller of ctx. Close must be called at its end.
func (s *Server) NewTransfer(ctx context.Context) *Transfer {
	identity := TenantOf(ctx)
	held := admission.NewBookings(s.inbox.budget, identity, spareBytes)
	return &Transfer{call: &call{server: s, transported: true, messages: &receiver{inbox: s.inbox, identity: identity, held: held}}}
}

// Close releases the memory of the transfer.
func (t *Transfer) Close() {
	t.Drop()
	t.call.messages.held.Close()
}

// Drop releases the memory of the message, once the call is answered.
func (t *Transfer) Drop() {
	t.call.snapshot.free()
	t.message.free()
}

// Hold waits for memory for the answer, which is booked until Close.
func (t *Transfer) Hold(ctx context.Context, bytes int64) error {
	_, err := t.call.messages.held.Book(ctx, bytes, t.call.messages.patience)
	return t.status(ctx, err)
}

// Receive receives the message from a reader that ends with it. announced is its length, or below 0 if it is unknown. Memory is booked as
// the message grows. Errors of all methods are statuses.
func (t *Transfer) Receive(ctx context.Context, from io.Reader, announced int64) error {
	in := t.call.messages
	if announced > in.maximum {
		return t.status(ctx, in.tooLarge(announced))
	}
	arrived := t.call.server.admission.Receiving(in.identity)
	defer arrived()
	m, err := in.grown(ctx, from, min(max(announced, 0), spareBytes-1)+1)
	if err != nil {
		return t.status(ctx, broken(ctx, err))
	}
	t.replace(m)
	in.wire.Add(m.length)
	return nil
}

// Data returns the message.
func (t *Transfer) Data() []byte { return t.message.data() }

// Cut removes a frame from the message: its first bytes.
func (t *Transfer) Cut(first int) {
	data := t.message.data()[first:]
	t.message.buffer, t.message.length = mem.SliceBuffer(data), int64(len(data))
}

// Decompress decompresses the message. Memory is booked as it grows.
func (t *Transfer) Decompress(ctx context.Context, decompressor func(io.Reader) (io.Reader, error)) error {
	from, err := decompressor(mem.BufferSlice{t.message.buffer}.Reader())
	if err != nil {
		return t.status(ctx, undecompressed(err))
	}
	m, err := t.call.messages.grown(ctx, from, 4*t.message.length)
	if err != nil {
		return t.status(ctx, undecompressed(err))
	}
	t.replace(m)
	return nil
}

// Transcode converts a message from another encoding to protobuf's. It waits for its turn, with the maximum memory that decoding takes for
// each byte of the message.
func (t *Transfer) Transcode(ctx context.Context, method string, factor int64, into proto.Message, decode func(data []byte) error) error {
	s := t.call.server
	p := follow(ctx)
	leave, err := s.enter(p, rankOf(method, math.MaxInt), factor*t.message.length)
	if err != nil {
		return t.status(ctx, err)
	}
	defer leave()
	if err := decode(t.message.data()); err != nil {
		return t.status(ctx, err)
	}
	booked, err := t.call.messages.held.Book(ctx, int64(proto.Size(into)), t.call.messages.patience)
	if err != nil {
		return t.status(ctx, err)
	}
	data, err := proto.Marshal(into)
	if err != nil {
		booked.Release()
		return t.status(ctx, invalidRequest("", "a text is not UTF-8"))
	}
	t.replace(message{buffer: mem.SliceBuffer(data), length: int64(len(data)), booked: [2]admission.Booking{booked}})
	return nil
}

// Decode decodes the message into a request, within the limits of a request, except its snapshot, which is compiled from its bytes.
func (t *Transfer) Decode(ctx context.Context, request proto.Message) error {
	return t.status(ctx, t.call.messages.decode(ctx, &t.message, request, &t.call.snapshot))
}

// Service answers the decoded request by the method of the call.
func (t *Transfer) Service() Calls { return t.call }

func (t *Transfer) replace(m message) {
	t.message.free()
	t.message = m
}

// status returns the status that a call ends with, and nil for nil.
func (t *Transfer) status(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return t.call.server.fail(ctx, err)
}

// MessageTime returns the maximum time for the message of a unary call to arrive.
func (s *Server) MessageTime() time.Duration { return s.options.Deadline.Message }

// MessageLate returns the error of a unary call whose message does not arrive in time.
func (s *Server) MessageLate() error { return messageLate(s.options.Deadline.Message) }
