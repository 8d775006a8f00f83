package service

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// fail turns whatever a call ended with into the status that is sent: canonical, with an ErrorInfo, and without a word of the inside.
func (s *Server) fail(ctx context.Context, err error) error {
	var limited *decode.Fault
	if passed := lateness(ctx); passed != nil && !errors.As(err, &limited) {
		err = passed
	}
	if st, ok := status.FromError(err); ok && !errors.As(err, &limited) {
		// gRPC itself, or the receiver of the message, has said what is wrong.
		return st.Err()
	}
	fault := decode.AsFault(err)
	if fault.Code == codes.Internal {
		s.log.LogAttrs(ctx, levelOf(fault.Code), "a call failed inside", errorAttr(err))
	}
	if fault.Code == codes.ResourceExhausted && fault.Retry > 0 {
		// Outside of a call there is no trailer to set.
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", pushback(fault)))
	}
	return status.ErrorProto(decode.Status(fault))
}

// pushback is the trailer with the number of milliseconds after which gRPC repeats a call.
func pushback(fault *decode.Fault) string { return strconv.FormatInt(fault.Retry.Milliseconds(), 10) }

// StatusOf returns the status that is sent for an error, and nil for nil.
func StatusOf(err error) error {
	if err == nil {
		return nil
	}
	return status.ErrorProto(decode.Status(err))
}

// lateness returns a fault if the time of a call is up, its caller has gone, or it was ended with a fault.
func lateness(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if fault, ok := errors.AsType[*decode.Fault](context.Cause(ctx)); ok {
		// What ended the call has said why.
		return fault
	}
	// A caller whose deadline passes also cancels. The deadline ended the call even if the cancellation arrives first.
	deadline, limited := ctx.Deadline()
	if errors.Is(ctx.Err(), context.Canceled) && !(limited && !time.Now().Before(deadline)) {
		return &decode.Fault{
			Code: codes.Canceled, Reason: apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED, Text: "the caller has gone",
		}
	}
	return decode.AsFault(policy.ErrStopped)
}

// invalidRequest is a fault of one field of a request; without a path, of the whole message.
func invalidRequest(path, text string) error {
	if path == "" {
		return &decode.Fault{Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, Text: text}
	}
	return decode.InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, path, "%s", text)
}

// protocolFault is a fault of the order of messages.
func protocolFault(text string) error {
	return &decode.Fault{Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_PROTOCOL, Text: text}
}

// exceeded returns a fault if a value is above a limit.
func exceeded(limit string, value, maximum int64, text string) error {
	if value <= maximum {
		return nil
	}
	return decode.Exceeded(limit, value, maximum,
		text+": "+strconv.FormatInt(value, 10)+", at most "+strconv.FormatInt(maximum, 10)+" are taken")
}

const (
	// sessionsRetry is the retry delay if other sessions use the whole limit, since they may end at any time.
	sessionsRetry = time.Second
	// agedRetry is the retry delay if a session ended because of its age: a new one can be opened at once.
	agedRetry = 10 * time.Millisecond
)

// busy is the fault of a limit that others, or time, have reached, and not the size of this request: sent again, it may succeed.
func busy(limit string, value, maximum int64, retry time.Duration, text string) error {
	fault := decode.Exceeded(limit, value, maximum, text)
	fault.Code, fault.Retry = codes.ResourceExhausted, retry
	return fault
}

// late is the fault of a message or a snapshot that takes longer to arrive than a limit allows.
func late(limit string, maximum time.Duration, text string) *decode.Fault {
	fault := decode.Exceeded(limit, maximum.Milliseconds(), maximum.Milliseconds(), text)
	fault.Code = codes.DeadlineExceeded
	return fault
}

// levelOf returns the log level for the end of a call: faults of the server are errors.
func levelOf(code codes.Code) slog.Level {
	switch code {
	case codes.OK, codes.Canceled:
		return slog.LevelDebug
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelError
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

func errorAttr(err error) slog.Attr { return slog.String("error", err.Error()) }
