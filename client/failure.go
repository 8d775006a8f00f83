package client

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Reason returns the reason of an error of the service or of an answer; unspecified if it has none.
func Reason(err error) apportionv1.ErrorReason {
	return decode.ReasonOf(status.Convert(err).Proto())
}

// Violation is one error in the input.
type Violation struct {
	// Path of the field, such as `snapshot.jobs[17].queue`.
	Path string
	// Detail describes the error.
	Detail string
}

// Violations returns the errors in the input that an error lists, and their total number.
func Violations(err error) (listed []Violation, total int) {
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.BadRequest:
			for _, v := range detail.GetFieldViolations() {
				listed = append(listed, Violation{Path: v.GetField(), Detail: v.GetDescription()})
			}
		case *errdetails.ErrorInfo:
			if count, err := strconv.Atoi(detail.GetMetadata()["violations"]); err == nil {
				total = count
			}
		}
	}
	return listed, max(total, len(listed))
}

// called is an error of a call.
type called interface {
	error
	GRPCStatus() *status.Status
}

// Describe returns the text of an error: its violations, one per line, or its message. Of an error that wraps one of a call, the message of
// that one stands where its text would.
func Describe(err error) string {
	listed, total := Violations(err)
	if len(listed) == 0 {
		if of, ok := errors.AsType[called](err); ok {
			return strings.Replace(err.Error(), of.Error(), of.GRPCStatus().Message(), 1)
		}
		return err.Error()
	}
	lines := make([]string, 0, len(listed)+1)
	for _, v := range listed {
		lines = append(lines, v.Path+": "+v.Detail)
	}
	if total > len(listed) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(listed)))
	}
	return strings.Join(lines, "\n")
}
