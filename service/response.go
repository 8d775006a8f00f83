package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/buffer"
	"github.com/apportion/apportion/service/connection"
)

// A handler returns before gRPC has sent the response: it waits in the transport until the client reads it, which may be never. So what a
// response takes is booked before it is encoded, and given back when the transport lets go of the memory, or its connection is closed.

// outbox is the memory of responses from when they are made until the transport has sent them.
type outbox struct {
	budget *admission.Budget
	// patience is the maximum time that a call waits for memory.
	patience time.Duration
	// sent holds the *reply of messages that are handed to the stream of a call, whose interceptors see the messages themselves.
	sent sync.Map
}

// reply is a response with the memory that is booked for it. It is handed to gRPC in place of the response, and encoded by codec.
type reply struct {
	response any

	outbox   *outbox
	identity string
	from     *connection.Conn
	booked   atomic.Int64
	// measured is the call of the response, or nil. The call ends with a response that is its last.
	measured *measured
	last     bool
	// room is the Room that contains the response, nil if the response has its own memory.
	room *wire.Room

	// unread is its place on its connection.
	unread connection.Unread
}

const (
	// firstBytes is the memory booked for a response before it is made. Most responses need no more.
	firstBytes = 64 << 10
	// leastBytes is about what gRPC keeps of a stream whose response is not sent.
	leastBytes = 4 << 10
)

// reserve books memory for a response to the caller of ctx, or as much as any may have.
func (o *outbox) reserve(ctx context.Context, bytes int64, patience time.Duration) (*reply, error) {
	return o.reserveFor(ctx, TenantOf(ctx), connection.Of(ctx), bytes, patience)
}

// reserveFor is reserve for a tenant whose call came over a connection.
func (o *outbox) reserveFor(
	ctx context.Context, tenant string, from *connection.Conn, bytes int64, patience time.Duration,
) (*reply, error) {
	r := &reply{outbox: o, identity: tenant, from: from}
	if err := r.grow(ctx, nil, bytes, patience); err != nil {
		return nil, err
	}
	return r, nil
}

// part makes p a reply of at most so many bytes, with as much of what is booked for r as those take.
func (r *reply) part(p *reply, bytes int64) {
	p.outbox, p.identity, p.from = r.outbox, r.identity, r.from
	booked := min(max(bytes, leastBytes), r.booked.Load())
	r.booked.Add(-booked)
	p.booked.Store(booked)
}

// grow books memory up to a total of so many bytes, or up to the maximum of one claim. While work with a turn waits for memory, others have
// its slot.
func (r *reply) grow(ctx context.Context, turn *admission.Turn, bytes int64, patience time.Duration) error {
	b := r.outbox.budget
	more := min(max(bytes, leastBytes), b.Most()) - r.booked.Load()
	if more <= 0 {
		return nil
	}
	if !b.Take(r.identity, more) {
		if err := turn.Rest(ctx, func() error { return b.Wait(ctx, r.identity, more, patience) }); err != nil {
			return err
		}
	}
	r.booked.Add(more)
	return nil
}

// shrink gives back what is booked beyond so many bytes.
func (r *reply) shrink(bytes int64) {
	bytes = max(bytes, leastBytes)
	if booked := r.booked.Load(); booked > bytes && r.booked.CompareAndSwap(booked, bytes) {
		r.outbox.budget.Give(r.identity, booked-bytes)
	}
}

// Release gives back all that is booked. A second time it does nothing.
func (r *reply) Release() {
	if booked := r.booked.Swap(0); booked > 0 {
		r.outbox.budget.Give(r.identity, booked)
	}
}

// send hands a message with what is booked for it to a stream.
func (o *outbox) send(stream grpc.ServerStream, message any, r *reply) error {
	r.response = message
	o.sent.Store(message, r)
	err := stream.SendMsg(message)
	if r := o.take(message); r != nil {
		// It was not encoded.
		r.Release()
	}
	return err
}

// take returns the reply of a message that is being sent, once, or nil.
func (o *outbox) take(message any) *reply {
	value, _ := o.sent.LoadAndDelete(message)
	r, _ := value.(*reply)
	return r
}

// codec is gRPC's own codec, but for the responses of the contract.
type codec struct {
	encoding.CodecV2

	outbox *outbox
}

func newCodec(o *outbox) codec { return codec{encoding.GetCodecV2(protocodec.Name), o} }

// Marshal encodes a response; responses of the contract use pooled memory.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*reply)
	if !ok {
		r = c.outbox.take(v)
	}
	if r == nil {
		return c.CodecV2.Marshal(v)
	}
	l, encoded, err := encode(r.response)
	r.encodedAs(len(encoded), err)
	// The response is not looked at again, and would take memory that is not booked until the client has read it.
	r.response = nil
	if r.room != nil {
		giveRoom(r.room)
		r.room = nil
	}
	if err != nil {
		l.Put(nil)
		r.Release()
		return nil, err
	}
	if !l.small && (len(encoded) < cap(l.memory)/2 || cap(encoded) < smallestLent) {
		// A copy, so that a small response does not keep much more memory than is booked for it.
		kept := append(make([]byte, 0, max(len(encoded), smallestLent)), encoded...)
		l.Put(nil)
		l = &lent{memory: kept, copied: true}
		encoded = kept
	}
	l.out, l.reply = encoded, r
	r.shrink(int64(cap(l.memory)))
	r.from.Hold(&r.unread, r)
	return mem.BufferSlice{mem.NewBuffer(&l.out, l)}, nil
}

// generated is a message with generated code that encodes it.
type generated interface {
	SizeVT() int
	MarshalToSizedBufferVT(data []byte) (int, error)
}

// encode encodes a response at the end of lent memory.
func encode(response any) (l *lent, encoded []byte, err error) {
	switch m := response.(type) {
	case generated:
		size := m.SizeVT()
		l = lend(size)
		encoded = l.memory[len(l.memory)-size:]
		_, err = m.MarshalToSizedBufferVT(encoded)
	case proto.Message:
		// An interceptor of the embedding program may answer with a message of its own.
		encoded, err = proto.Marshal(m)
		l = &lent{memory: encoded, copied: true}
	default:
		l, err = &lent{copied: true}, errNoMessage
	}
	return l, encoded, err
}

// encodedAs measures the response, which was encoded as so many bytes or not at all.
func (r *reply) encodedAs(bytes int, err error) {
	m := r.measured
	if m == nil {
		return
	}
	m.sent.Add(int64(bytes))
	if !r.last {
		return
	}
	if err != nil {
		// gRPC sends this code.
		err = status.Error(codes.Internal, "the response cannot be encoded")
	}
	m.end(err)
}

// rooms keeps the memory of the messages of responses for the next ones.
var rooms = sync.Pool{New: func() any { return new(wire.Room) }}

// takeRoom returns memory for the messages of a response that is encoded before anything else may look at it, nil if there are observers
// or interceptors, which may keep the messages.
func takeRoom(seen *record, interceptors int) *wire.Room {
	if len(seen.observers) > 0 || interceptors > 0 {
		return nil
	}
	room, _ := rooms.Get().(*wire.Room)
	return room
}

// giveRoom empties a Room for the next response.
func giveRoom(room *wire.Room) {
	room.Empty()
	rooms.Put(room)
}

// lent is memory that a response is encoded in, and that gRPC holds until the response is written to the connection.
type lent struct {
	memory []byte
	// out is the part that gRPC holds, at the end of memory.
	out []byte
	// reply is the response in this memory.
	reply *reply
	// copied is true if the memory was allocated for this response.
	copied bool
	// small is true if the memory is a smallResponse.
	small bool
}

// lentPool keeps the memory of responses for the next ones, and smallPool memory of leastBytes.
var (
	lentPool  buffer.Idle[*lent]
	smallPool = sync.Pool{New: func() any { return &lent{memory: make([]byte, smallResponse, leastBytes), small: true} }}
)

const (
	// smallestLent is the size of the smallest memory that gRPC gives back. As many bytes follow the end of a smallResponse.
	smallestLent  = 1<<10 + 1
	smallResponse = leastBytes - smallestLent
	// largestLent is a size from which on memory is not kept.
	largestLent = 8 << 20
)

// lend returns memory for a response of a size. Small ones are encoded where they stay: this much is booked for each.
func lend(size int) *lent {
	if size <= smallResponse {
		l, _ := smallPool.Get().(*lent)
		return l
	}
	l, ok := lentPool.Get()
	if !ok {
		l = new(lent)
	}
	if size > len(l.memory) {
		l.memory = make([]byte, size+size/8)
	}
	return l
}

// Put returns the memory to the pool; with Get it implements gRPC's buffer pool.
func (l *lent) Put(*[]byte) {
	if r := l.reply; r != nil {
		l.reply = nil
		r.from.Drop(&r.unread)
		r.Release()
	}
	l.out = nil
	if buffer.Spoil != nil {
		buffer.Spoil(l.memory[:cap(l.memory)])
	}
	switch {
	case l.copied || len(l.memory) > largestLent:
	case l.small:
		smallPool.Put(l)
	default:
		lentPool.Put(l)
	}
}

// Get returns new memory. gRPC does not call it.
func (l *lent) Get(length int) *[]byte {
	fresh := make([]byte, length)
	return &fresh
}

// sendPlain makes gRPC send the responses of a call as they are. gRPC compresses a response if the request was compressed; it then keeps a
// copy that is not booked.
func sendPlain(ctx context.Context) {
	if from, ok := grpc.ServerTransportStreamFromContext(ctx).(source); !ok || from.RecvCompress() == "" {
		return
	}
	// It fails where the headers were sent, which they are with the first response alone.
	_ = grpc.SetSendCompressor(ctx, encoding.Identity)
}
