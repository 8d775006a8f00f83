package offline

import (
	"encoding/json"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// notHeld is the fault of a digest that names no snapshot here.
func notHeld() error {
	return &decode.Fault{
		Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND, Field: "input.snapshot_digest",
		Text: "no such snapshot is held here; send it again",
	}
}

// notKept is the fault of a name of a snapshot: without a server none is kept up to date.
func notKept(name string) error {
	return &decode.Fault{
		Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NAME_NOT_FOUND, Field: "input.snapshot_name",
		Text: "this server keeps no snapshot " + strconv.Quote(name),
	}
}

// codeNames are the codes of faults as the Connect protocol writes them.
var codeNames = map[codes.Code]string{
	codes.Canceled: "canceled", codes.InvalidArgument: "invalid_argument", codes.DeadlineExceeded: "deadline_exceeded",
	codes.NotFound: "not_found", codes.PermissionDenied: "permission_denied", codes.ResourceExhausted: "resource_exhausted",
	codes.FailedPrecondition: "failed_precondition", codes.OutOfRange: "out_of_range", codes.Unimplemented: "unimplemented",
	codes.Internal: "internal", codes.Unavailable: "unavailable",
}

// FaultJSON returns an error as the page reads it: code, message and reason.
func FaultJSON(err error) []byte {
	fault := decode.AsFault(err)
	code := codeNames[fault.Code]
	if code == "" {
		code = "unknown"
	}
	text, err := json.Marshal(map[string]string{
		"code": code, "message": decode.Status(fault).GetMessage(), "reason": decode.ReasonName(fault.Reason),
	})
	if err != nil {
		return []byte(`{"code": "internal"}`)
	}
	return text
}

// FaultStatus returns an error as the encoded google.rpc.Status that a service sends.
func FaultStatus(err error) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(decode.Status(err))
	if err != nil {
		return nil
	}
	return data
}
