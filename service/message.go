package service

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/buffer"
)

// gRPC reads a message whole before it calls a handler. Here the five bytes with its length are read first, and the rest once there is
// memory for it. Until then a client may have sent the window of the stream, and no more: gRPC's flow control sees to that.

const (
	// spareBytes is the memory that each call may use without booking, because booking small messages costs too much.
	spareBytes = 32 << 10
	// streamWindow is the number of bytes that a client may send before the server reads, connectionWindow the number that may be on its
	// way in a whole connection. A larger message waits for an update of the window, which takes a round trip.
	streamWindow, connectionWindow = 96 << 10, 8 << 20
	// pieceBytes is the size of the piece of a message that gRPC buffers before it is copied to its place.
	pieceBytes = 1 << 20
	// otherMessageBytes bounds the messages that gRPC itself reads: those of health and reflection.
	otherMessageBytes = 64 << 10
	// decodedBytes is the memory of decoded questions for each encoded byte, approximately in the worst case.
	decodedBytes = 64
)

// source is the stream of one call as gRPC's transport has it.
type source interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// inbox receives the messages of all calls.
type inbox struct {
	budget *admission.Budget
	// maximum bounds one message, decompressed.
	maximum int64
	// patience is the maximum time that a call waits for memory.
	patience time.Duration
	limits   *setting.Limit
	// small is small(limits).
	small    int64
	policies policies
}

// receiver receives the messages of one call.
type receiver struct {
	*inbox

	from     source
	identity string
	// held is the memory that the call holds for its messages.
	held *admission.Bookings
	// wire counts the bytes that were received, before decompression.
	wire atomic.Int64
	// given is the policy of the request and its digest, if they are known.
	given rule
	// header is the header of the message that is being received.
	header [5]byte
}

var errNoTransport = errors.New("the call does not come over gRPC's own transport")

// receive prepares to receive the messages of a call. ctx is the context of gRPC's handler.
func (b *inbox) receive(ctx context.Context) (*receiver, error) {
	from, ok := grpc.ServerTransportStreamFromContext(ctx).(source)
	if !ok {
		return nil, errNoTransport
	}
	identity := TenantOf(ctx)
	return &receiver{inbox: b, from: from, identity: identity, held: admission.NewBookings(b.budget, identity, spareBytes)}, nil
}

// message is a received message in memory that is given back after use.
type message struct {
	buffer mem.Buffer
	// length is the number of received bytes.
	length int64
	booked [2]admission.Booking
}

func (m *message) data() []byte { return m.buffer.ReadOnlyData() }

// unbook gives back what was booked. Holders of a reference may keep the memory.
func (m *message) unbook() {
	for i := range m.booked {
		m.booked[i].Release()
	}
}

// free gives back the memory, and what was booked for it.
func (m *message) free() {
	m.drop()
	m.unbook()
}

// drop gives back the memory alone.
func (m *message) drop() {
	if m.buffer != nil {
		m.buffer.Free()
		m.buffer = nil
	}
}

// decoding books so many bytes for what the message is decoded to, or as much as any may have.
func (m *message) decoding(ctx context.Context, in *receiver, bytes int) (err error) {
	m.booked[1], err = in.held.Book(ctx, min(int64(bytes), in.budget.Most()-m.booked[0].Bytes()), in.patience)
	return err
}

// next returns the next message, or io.EOF if there is none. patience limits its wait for memory.
func (in *receiver) next(ctx context.Context, patience time.Duration) (m message, err error) {
	header := &in.header
	if err := in.from.ReadMessageHeader(header[:]); err != nil {
		return message{}, interrupted(ctx, err)
	}
	length := int64(binary.BigEndian.Uint32(header[1:]))
	if length > in.maximum {
		return message{}, in.tooLarge(length)
	}
	if m.booked[0], err = in.held.Book(ctx, min(buffer.Size(length), in.budget.Most()), patience); err != nil {
		return message{}, err
	}
	if m.buffer, err = in.body(ctx, int(length)); err != nil {
		m.booked[0].Release()
		return message{}, err
	}
	m.length = length
	in.wire.Add(length)
	switch header[0] {
	case 0:
		return m, nil
	case 1:
		return in.inflated(ctx, m)
	default:
		m.free()
		return message{}, protocolFault("the compression flag of a message is neither 0 nor 1")
	}
}

// last returns a fault unless the client has no more to send.
func (in *receiver) last(ctx context.Context) error {
	var header [5]byte
	switch err := in.from.ReadMessageHeader(header[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return interrupted(ctx, err)
	}
	return protocolFault("a unary call has one message")
}

func (in *receiver) tooLarge(length int64) error {
	return decode.Exceeded("message_bytes", length, in.maximum,
		"the message is too large; a snapshot can be sent in chunks and named by its digest")
}

// body reads length bytes into consecutive memory.
func (in *receiver) body(ctx context.Context, length int) (mem.Buffer, error) {
	if length <= spareBytes {
		read, err := in.from.Read(length)
		if err != nil {
			return nil, broken(ctx, err)
		}
		defer read.Free()
		return read.MaterializeToBuffer(&buffer.Messages), nil
	}
	whole := buffer.Messages.Get(length)
	for at := 0; at < length; {
		read, err := in.from.Read(min(length-at, pieceBytes))
		if err != nil {
			buffer.Messages.Put(whole)
			return nil, broken(ctx, err)
		}
		at += read.CopyTo((*whole)[at:])
		read.Free()
	}
	return mem.NewBuffer(whole, &buffer.Messages), nil
}

// inflated returns a message decompressed. Its memory grows with the bytes that arrive.
func (in *receiver) inflated(ctx context.Context, packed message) (message, error) {
	defer packed.free()
	compressor := encoding.GetCompressor(in.from.RecvCompress())
	if compressor == nil {
		return message{}, protocolFault("a message is compressed, but the call has no grpc-encoding")
	}
	reader, err := compressor.Decompress(mem.BufferSlice{packed.buffer}.Reader())
	if err != nil {
		return message{}, undecompressed(err)
	}
	m, err := in.grown(ctx, reader, 4*int64(packed.buffer.Len()))
	if err != nil {
		return message{}, undecompressed(err)
	}
	return m, nil
}

// grown reads a message to its end into memory that is booked before it is taken: first so many bytes, then twice as many as before. It
// returns the reader's errors as they are.
func (in *receiver) grown(ctx context.Context, from io.Reader, first int64) (m message, err error) {
	var data []byte
	for {
		if len(data) == cap(data) {
			room := min(max(first, 2*int64(cap(data)), 4<<10), in.maximum+1)
			more, err := in.held.Book(ctx, room, in.patience)
			if err != nil {
				m.unbook()
				return message{}, err
			}
			data = append(make([]byte, 0, room), data...)
			m.unbook()
			m.booked[0] = more
		}
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > in.maximum {
			m.unbook()
			return message{}, in.tooLarge(int64(len(data)))
		}
		if errors.Is(err, io.EOF) {
			m.buffer, m.length = mem.SliceBuffer(data), int64(len(data))
			return m, nil
		}
		if err != nil {
			m.unbook()
			return message{}, err
		}
	}
}

// interrupted is the fault of a stream that ended between messages.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return broken(ctx, err)
}

// broken is the fault of a stream that ended within a message.
func broken(ctx context.Context, err error) error {
	if fault, ok := errors.AsType[*decode.Fault](context.Cause(ctx)); ok {
		return fault
	}
	if _, ok := errors.AsType[*decode.Fault](err); ok {
		return err
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return protocolFault("the stream ended within a message")
	}
	return &decode.Fault{
		Code: codes.Canceled, Reason: apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED, Text: "the connection was lost",
	}
}

// undecompressed returns the fault of a message that cannot be decompressed, and any other fault as it is.
func undecompressed(err error) error {
	if _, ok := errors.AsType[*decode.Fault](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return invalidRequest("", "the message cannot be decompressed")
}
