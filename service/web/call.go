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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

type contract = apportionv1.ApportionServiceServer

// serve sets the handlers of all unary calls by their paths.
func (h *handler) serve(options ...connect.HandlerOption) {
	h.calls = map[string]http.Handler{}
	serve(h, "EvaluateShares", contract.EvaluateShares, options)
	serve(h, "CheckEnqueue", contract.CheckEnqueue, options)
	serve(h, "CheckAllocatable", contract.CheckAllocatable, options)
	serve(h, "SelectVictims", contract.SelectVictims, options)
	serve(h, "ScoreNodes", contract.ScoreNodes, options)
	serve(h, "Explain", contract.Explain, options)
	serve(h, "Plan", contract.Plan, options)
	serve(h, "Remedies", contract.Remedies, options)
	serve(h, "Forecast", contract.Forecast, options)
	serve(h, "Simulate", contract.Simulate, options)
	serve(h, "ListSnapshots", contract.ListSnapshots, options)
	serve(h, "GetSnapshot", contract.GetSnapshot, options)
	serve(h, "GetHistory", contract.GetHistory, options)
	serve(h, "GetUsage", contract.GetUsage, options)
}

// serve sets the handler of one call, which changes nothing, so that it may also be sent by GET.
func serve[Request, Response any](
	h *handler, name string, answer func(contract, context.Context, *Request) (*Response, error), options []connect.HandlerOption,
) {
	described := apportionv1.File_apportion_v1_service_proto.Services().ByName("ApportionService").Methods().ByName(protoreflect.Name(name))
	path := pathOf(name)
	h.calls[path] = connect.NewUnaryHandlerSimple(path,
		func(ctx context.Context, r *Request) (*Response, error) { return call(ctx, h, name, r, answer) },
		connect.WithSchema(described), connect.WithIdempotency(connect.IdempotencyNoSideEffects), connect.WithHandlerOptions(options...))
}

// pathOf returns the path of a call.
func pathOf(name string) string {
	return "/" + apportionv1.ApportionService_ServiceDesc.ServiceName + "/" + name
}

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
