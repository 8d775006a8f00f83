package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
)

type contract = service.Calls

// serve sets the handlers of all calls by their paths, but of those in which clients send streams.
func (h *handler) serve(options ...connect.HandlerOption) {
	h.calls = map[string]http.Handler{}
	serve(h, "EvaluateShares", contract.EvaluateShares, options)
	serve(h, "CheckEnqueue", contract.CheckEnqueue, options)
	serve(h, "Explain", contract.Explain, options)
	serve(h, "Plan", contract.Plan, options)
	serve(h, "Remedies", contract.Remedies, options)
	serve(h, "Forecast", contract.Forecast, options)
	serve(h, "Simulate", contract.Simulate, options)
	serve(h, "ListSnapshots", contract.ListSnapshots, options)
	serve(h, "GetServerInfo", contract.GetServerInfo, options)
	serve(h, "GetHistory", contract.GetHistory, options)
	serve(h, "GetUsage", contract.GetUsage, options)
	stream(h, "DownloadSnapshot", contract.DownloadSnapshot, options)
}

// serve sets the handler of one call, which changes nothing, so that it may also be sent by GET.
func serve[Request, Response any](
	h *handler, name string, answer func(contract, context.Context, *Request) (*Response, error), options []connect.HandlerOption,
) {
	path := pathOf(name)
	h.calls[path] = connect.NewUnaryHandlerSimple(path,
		func(ctx context.Context, r *Request) (*Response, error) { return call(ctx, h, name, r, answer) },
		described(name, options)...)
}

// stream sets the handler of one call that answers with several messages.
func stream[Request, Response any](
	h *handler, name string, answer func(contract, *Request, grpc.ServerStreamingServer[Response]) error, options []connect.HandlerOption,
) {
	path := pathOf(name)
	h.calls[path] = connect.NewServerStreamHandlerSimple(path,
		func(ctx context.Context, r *Request, to *connect.ServerStream[Response]) error {
			_, err := call(ctx, h, name, r, func(calls contract, ctx context.Context, r *Request) (*Response, error) {
				return nil, answer(calls, r, &sending[Response]{ctx: ctx, to: to})
			})
			return err
		}, described(name, options)...)
}

// described are the options of a call that changes nothing.
func described(name string, options []connect.HandlerOption) []connect.HandlerOption {
	return append([]connect.HandlerOption{
		connect.WithSchema(method.Named(name)), connect.WithIdempotency(connect.IdempotencyNoSideEffects),
	}, options...)
}

// sending sends the messages of an answer over HTTP. The memory of the largest is booked until all are sent: they are written one by one.
type sending[Response any] struct {
	grpc.ServerStream

	ctx  context.Context //nolint:containedctx // It is the stream's.
	to   *connect.ServerStream[Response]
	held int
}

// Context returns the context of the call.
func (s *sending[Response]) Context() context.Context { return s.ctx }

// Send sends a message, and returns when it is written.
func (s *sending[Response]) Send(m *Response) error {
	in, _ := s.ctx.Value(incomingKey{}).(*incoming)
	if size := in.sentSize(m); size > s.held {
		if err := in.transfer.Hold(s.ctx, int64(size-s.held)); err != nil {
			return err
		}
		s.held = size
	}
	if err := s.to.Send(m); err != nil {
		return status.Error(codes.Canceled, "the client takes no more")
	}
	return nil
}

// pathOf returns the path of a call.
func pathOf(name string) string { return method.PathOf(method.Named(name)) }

// overloaded is the code of calls for which there is no room.
const overloaded = codes.ResourceExhausted

// sent turns a status of gRPC into an error of Connect: the same code, text and details.
func sent(err error) *connect.Error {
	st := status.Convert(err)
	out := connect.NewError(connect.Code(st.Code()), errors.New(st.Message()))
	for _, detail := range st.Proto().GetDetails() {
		if d, err := connect.NewErrorDetail(detail); err == nil {
			out.AddDetail(d)
		}
		var retry errdetails.RetryInfo
		if detail.MessageIs(&retry) && detail.UnmarshalTo(&retry) == nil {
			seconds := math.Ceil(retry.GetRetryDelay().AsDuration().Seconds())
			out.Meta().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
		}
	}
	return out
}

// codeName is a code as gRPC writes it: NOT_FOUND.
func codeName(code connect.Code) string { return strings.ToUpper(code.String()) }
