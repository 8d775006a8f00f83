package web

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
