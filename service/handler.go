package service

import (
	"container/list"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/connection"
)

// call is one call of the contract. gRPC's generated code decodes the request and then calls the method of this value, so a method finds
// the bytes that were received beside the decoded request in its receiver.
type call struct {
	apportionv1.UnimplementedDecisionServiceServer
	apportionv1.UnimplementedSnapshotServiceServer
	apportionv1alpha1.UnimplementedInsightServiceServer

	server *Server
	// messages is nil for a call of this process. Where transported, another transport than gRPC receives and sends.
	messages    *receiver
	transported bool
	// snapshot is the inline snapshot of the first message; it is empty if the decoded request holds the snapshot.
	snapshot snapshot
	// reply is the booking for the next response, nil if there is none.
	reply *reply
	// measured is nil for a call that does not arrive by gRPC.
	measured *measured
	// pending is the message of a stream that was received last, unless the session has taken it.
	pending message
	// chunk is the memory of the last chunk of an upload, which is lent to it.
	chunk atomic.Pointer[mem.Buffer]
	// settled: a session has no question that is not answered, so that a client that resets the call wastes nothing.
	settled bool
}

// Calls are the calls of all services of the contract.
type Calls interface {
	apportionv1.DecisionServiceServer
	apportionv1.SnapshotServiceServer
	apportionv1alpha1.InsightServiceServer
}

// described are the services of the contract as gRPC describes them.
var described = []*grpc.ServiceDesc{
	&apportionv1.DecisionService_ServiceDesc, &apportionv1.SnapshotService_ServiceDesc, &apportionv1alpha1.InsightService_ServiceDesc,
}

// Direct answers calls of this process, without interceptors.
func (s *Server) Direct() Calls { return &call{server: s} }

// served is a service of the contract whose handlers receive the messages themselves.
//
// nolint:contextcheck,nolintlint // The context of a call is its stream's, never one with which the server was made.
func (s *Server) served(of *grpc.ServiceDesc) *grpc.ServiceDesc {
	d := *of
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		method := &d.Methods[i]
		name, handle := "/"+d.ServiceName+"/"+method.MethodName, method.Handler
		method.Handler = func(_ any, ctx context.Context, _ func(any) error, with grpc.UnaryServerInterceptor) (response any, err error) {
			defer connection.Of(ctx).End(ctx)
			m := s.calls.begin(ctx, name)
			c, end, err := s.accept(ctx, name, m)
			if err != nil {
				m.end(err)
				return nil, err
			}
			defer end()
			response, err = handle(c, ctx, func(request any) error { return c.receive(ctx, request) }, with)
			return c.booked(response, err)
		}
	}
	d.Streams = append([]grpc.StreamDesc(nil), d.Streams...)
	for i := range d.Streams {
		stream := &d.Streams[i]
		name, handle, single := "/"+d.ServiceName+"/"+stream.StreamName, stream.Handler, !stream.ClientStreams
		stream.Handler = func(_ any, stream grpc.ServerStream) error {
			ctx := stream.Context()
			m, _ := ctx.Value(measuredKey{}).(*measured)
			c, end, err := s.accept(ctx, name, m)
			if err != nil {
				connection.Of(ctx).End(ctx)
				return err
			}
			defer func() {
				end()
				if !c.settled {
					connection.Of(ctx).End(ctx)
				}
			}()
			return handle(c, &messageStream{ServerStream: stream, call: c, first: true, method: name, single: single})
		}
	}
	return &d
}

// accept admits a call whose headers have come, and which is measured. end gives back what the call holds.
func (s *Server) accept(ctx context.Context, method string, m *measured) (c *call, end func(), err error) {
	messages, err := s.inbox.receive(ctx)
	if err != nil {
		return nil, nil, s.fail(ctx, err)
	}
	if m != nil {
		m.messages = messages
	}
	leave, err := s.begin(ctx, method)
	if err == nil && !s.outbox.budget.Fits(messages.identity, firstBytes) {
		leave()
		err = s.outbox.budget.Busy()
	}
	if err != nil {
		connection.Of(ctx).Wait(decode.AsFault(err).Retry)
		err = s.fail(ctx, err)
		s.refuse(ctx, method, err)
		return nil, nil, err
	}
	sendPlain(ctx)
	c = &call{server: s, messages: messages, measured: m}
	return c, func() {
		if c.reply != nil {
			c.reply.Release()
		}
		c.snapshot.free()
		c.endChunk()
		messages.held.Close()
		leave()
	}, nil
}

// booked returns what gRPC is to send for a unary call. A call that succeeds has ended once its response is encoded.
func (c *call) booked(response any, err error) (any, error) {
	r := c.reply
	c.reply = nil
	if r != nil && err == nil {
		r.response, r.measured, r.last = response, c.measured, true
		return r, nil
	}
	if r != nil {
		r.Release()
		response = nil
	}
	c.measured.end(err)
	return response, err
}

// receive receives the one message of a unary call and decodes it.
func (c *call) receive(ctx context.Context, request any) error {
	m, err := c.only(ctx)
	if err != nil {
		return c.server.fail(ctx, err)
	}
	err = c.messages.decode(ctx, &m, request, &c.snapshot)
	m.drop()
	if err != nil {
		return c.server.fail(ctx, err)
	}
	return nil
}

// only receives the message of a unary call, within MessageTime.
func (c *call) only(ctx context.Context) (message, error) {
	late := c.server.late.begin(func() { endCall(ctx, c.server.MessageLate()) })
	defer c.server.late.done(late)
	arrived := c.server.admission.Receiving(c.messages.identity)
	defer arrived()
	m, err := c.messages.next(ctx, c.messages.patience)
	if errors.Is(err, io.EOF) {
		return message{}, protocolFault("the call has no message")
	}
	if err != nil {
		return message{}, err
	}
	if err := c.messages.last(ctx); err != nil {
		m.free()
		return message{}, err
	}
	return m, nil
}

// messageLate is the fault of a message that did not come within a limit.
func messageLate(limit time.Duration) error {
	return late("deadline.message", limit, "the message did not arrive in time")
}

// takePending hands the booking of the message received last to the caller, who gives it back.
func (c *call) takePending() message {
	m := c.pending
	c.pending = message{}
	return m
}

// messageStream is a stream whose messages are received by its call.
type messageStream struct {
	grpc.ServerStream

	call *call
	// first is true if no message has been received: only the first one may hold a snapshot.
	first bool
	// method is its full name.
	method string
	// single: the client sends one message.
	single bool
}

// begun bounds how long the first message may take, which holds a place for a session or an upload, until it is called.
func (s *messageStream) begun() (came func()) {
	limit := &s.call.server.options.Limit
	within, fault := limit.SessionIdle, func() error { return sessionIdle(limit.SessionIdle) }
	if s.method == apportionv1.SnapshotService_UploadSnapshot_FullMethodName {
		within, fault = limit.UploadTime, func() error { return uploadLate(limit.UploadTime) }
	}
	if within < 0 {
		return func() {}
	}
	ctx := s.Context()
	timer := time.AfterFunc(within, func() { endCall(ctx, fault()) })
	return func() { timer.Stop() }
}

// RecvMsg receives one message. It waits for memory as long as the stream lasts, which blocks the client.
func (s *messageStream) RecvMsg(request any) error {
	if s.single {
		return s.call.receive(s.Context(), request)
	}
	const patience = admission.Forever
	ctx, messages := s.Context(), s.call.messages
	var inline *snapshot
	if s.first {
		inline = &s.call.snapshot
		came := s.begun()
		defer came()
	}
	s.first = false
	s.call.pending.unbook()
	m, err := messages.next(ctx, patience)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err == nil && s.call.lend(&m, request) {
		s.call.pending = m
		return nil
	}
	if err == nil {
		err = messages.decode(ctx, &m, request, inline)
		// Only the decoded message is left, and a snapshot that has its own reference.
		m.drop()
		s.call.pending = m
	}
	return err
}

// SendMsg sends one message once there is memory for it, which blocks the client.
func (s *messageStream) SendMsg(response any) error {
	r, out := s.call.reply, s.call.server.outbox
	s.call.reply = nil
	if r == nil {
		message, ok := response.(proto.Message)
		if !ok {
			return errNoMessage
		}
		var err error
		if r, err = out.reserve(s.Context(), int64(proto.Size(message)), admission.Forever); err != nil {
			return err
		}
	}
	r.measured = s.call.measured
	if len(s.call.server.options.Stream) == 0 {
		r.response = response
		err := s.ServerStream.SendMsg(r)
		if err != nil {
			// Perhaps it was not encoded.
			r.Release()
		}
		return err
	}
	return out.send(s.ServerStream, response, r)
}

// overdue ends what lasts for longer than a limit that is the same for all. One timer serves them all, since what began first is overdue
// first: a timer of its own for each small call would cost a tenth of the call.
type overdue struct {
	limit time.Duration

	mutex sync.Mutex
	// pending holds lasting values in the order in which they began.
	pending list.List
	timer   *time.Timer
	// armed says that the timer runs.
	armed bool
}

type lasting struct {
	due time.Time
	end func()
}

// begin notes that something begins. end is called after the limit, unless done is called before with what begin returns.
func (o *overdue) begin(end func()) *list.Element {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch {
	case o.timer == nil:
		o.timer = time.AfterFunc(o.limit, o.check)
	case !o.armed:
		o.timer.Reset(o.limit)
	}
	o.armed = true
	return o.pending.PushBack(lasting{time.Now().Add(o.limit), end})
}

// done notes that something has ended.
func (o *overdue) done(e *list.Element) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	// It does nothing if check has removed the element.
	o.pending.Remove(e)
}

// check ends what is overdue, and looks again when the next is.
func (o *overdue) check() {
	for _, end := range o.take() {
		end()
	}
}

func (o *overdue) take() (ends []func()) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	for {
		first := o.pending.Front()
		if first == nil {
			o.armed = false
			return ends
		}
		l, _ := first.Value.(lasting)
		if left := l.due.Sub(now); left > 0 {
			o.timer.Reset(left)
			return ends
		}
		o.pending.Remove(first)
		ends = append(ends, l.end)
	}
}
