package decode

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Domain of every ErrorInfo.
const Domain = "apportion.dev"

const (
	// maxDetail bounds the violations of a google.rpc.BadRequest, in bytes: they travel in a header.
	maxDetail = 4 << 10
	// MaxText bounds what is quoted of an input in one place.
	MaxText = 256
)

// Fault is an error of the contract.
//
//nolint:errname // An error is a value of this, not named after what it is in Go.
type Fault struct {
	Code   codes.Code
	Reason apportionv1.ErrorReason
	// Field is the path of the field, if the error is about one field and has no violations.
	Field string
	// Text is a human-readable message.
	Text string
	// Violations become a google.rpc.BadRequest.
	Violations *model.Error
	// Metadata of the ErrorInfo.
	Metadata map[string]string
	// Retry is the delay before a retry; 0: a retry is not known to help. It becomes a google.rpc.RetryInfo.
	Retry time.Duration
}

// Error returns the field and the text.
func (f *Fault) Error() string {
	if f.Field == "" {
		return f.Text
	}
	return f.Field + ": " + f.Text
}

// Within returns the same fault with a prefix before each path.
func (f *Fault) Within(prefix string) *Fault {
	return f.repathed(func(path string) string { return prefix + path })
}

// Without returns the same fault without a prefix of its paths.
func (f *Fault) Without(prefix string) *Fault {
	return f.repathed(func(path string) string { return strings.TrimPrefix(path, prefix) })
}

// repathed returns the same fault with other paths. A fault about no field keeps none.
func (f *Fault) repathed(to func(path string) string) *Fault {
	out := *f
	if out.Violations != nil {
		out.Violations = repathed(out.Violations, to)
		out.Text = out.Violations.Error()
	}
	if out.Field != "" {
		out.Field = to(out.Field)
	}
	return &out
}

// Rooted returns an error about the parts of an input with a prefix before their paths, so that each begins at the root of the request.
// Other paths, which begin with no field of these names, stay.
func Rooted(err error, prefix string, fields ...string) error {
	fault, ok := errors.AsType[*Fault](err)
	if !ok {
		return err
	}
	return fault.repathed(func(path string) string {
		if first, _, _ := strings.Cut(path, "."); slices.Contains(fields, first) {
			return prefix + path
		}
		return path
	})
}

// InInput is Rooted for an input whose parts the request holds.
func InInput(err error, prefix string) error {
	return Rooted(err, prefix, "snapshot", "change", "policy")
}

// Invalid returns an INVALID_ARGUMENT with the given violations.
func Invalid(reason apportionv1.ErrorReason, violations *model.Error) *Fault {
	return &Fault{Code: codes.InvalidArgument, Reason: reason, Text: violations.Error(), Violations: violations}
}

// InvalidField returns an INVALID_ARGUMENT with one violation.
func InvalidField(reason apportionv1.ErrorReason, path, format string, args ...any) *Fault {
	violations := &model.Error{}
	violations.Add(path, format, args...)
	return Invalid(reason, violations)
}

// AsFault returns the Fault that an error is or wraps. Every other error is an internal error, with a text that reveals nothing.
func AsFault(err error) *Fault {
	var fault *Fault
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, policy.ErrStopped):
		return &Fault{
			Code: codes.DeadlineExceeded, Reason: apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED,
			Text: "the deadline passed before there was an answer",
		}
	}
	if fault := ofWork(err); fault != nil {
		return fault
	}
	return &Fault{Code: codes.Internal, Reason: apportionv1.ErrorReason_ERROR_REASON_INTERNAL, Text: "internal error"}
}

// Status returns the status that is sent for an error: with an ErrorInfo, and a BadRequest of the violations that fit. Metadata `field` is
// the Field (`narrow` if narrowing it makes the answer smaller), `violations` the number of violations.
func Status(err error) *status.Status {
	fault := AsFault(err)
	st := &status.Status{Code: int32(fault.Code), Message: Cut(fault.Error(), 2*MaxText)}
	info := &errdetails.ErrorInfo{Reason: ReasonName(fault.Reason), Domain: Domain, Metadata: maps.Clone(fault.Metadata)}
	set := func(key, value string) {
		if info.Metadata == nil {
			info.Metadata = map[string]string{}
		}
		info.Metadata[key] = value
	}
	switch {
	case fault.Field == "":
	case fault.Reason == apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE:
		set("narrow", Cut(fault.Field, MaxText))
	default:
		set("field", Cut(fault.Field, MaxText))
	}
	violations := fault.Violations
	if violations == nil || len(violations.Violations) == 0 {
		st.Details = appendDetail(st.Details, info)
		if fault.Retry > 0 {
			st.Details = appendDetail(st.Details, &errdetails.RetryInfo{RetryDelay: durationpb.New(fault.Retry)})
		}
		return st
	}
	set("violations", strconv.Itoa(violations.Total))
	st.Message = summary(violations)
	st.Details = appendDetail(st.Details, info)
	st.Details = appendDetail(st.Details, badRequest(violations))
	return st
}

// ReasonName returns an error reason without its prefix, as in an ErrorInfo.
func ReasonName(reason apportionv1.ErrorReason) string {
	return strings.TrimPrefix(reason.String(), "ERROR_REASON_")
}

// ReasonOf returns the reason of a status, unspecified if it has none.
func ReasonOf(st *status.Status) apportionv1.ErrorReason {
	for _, detail := range st.GetDetails() {
		var info errdetails.ErrorInfo
		if detail.MessageIs(&info) && detail.UnmarshalTo(&info) == nil {
			return apportionv1.ErrorReason(apportionv1.ErrorReason_value["ERROR_REASON_"+info.GetReason()])
		}
	}
	return apportionv1.ErrorReason_ERROR_REASON_UNSPECIFIED
}

func summary(v *model.Error) string {
	first := v.Violations[0]
	text := Cut(first.Path, MaxText) + ": " + Cut(first.Detail, MaxText)
	if v.Total > 1 {
		text += fmt.Sprintf(" (and %d more)", v.Total-1)
	}
	return text
}

func badRequest(v *model.Error) *errdetails.BadRequest {
	bad, size := &errdetails.BadRequest{}, 0
	for _, violation := range v.Violations {
		field := &errdetails.BadRequest_FieldViolation{Field: Cut(violation.Path, MaxText), Description: Cut(violation.Detail, MaxText)}
		if size += proto.Size(field) + 3; size > maxDetail {
			break
		}
		bad.FieldViolations = append(bad.FieldViolations, field)
	}
	return bad
}

func appendDetail(details []*anypb.Any, m proto.Message) []*anypb.Any {
	// Equal errors are equal byte by byte; the order of metadata is otherwise random.
	detail := &anypb.Any{}
	if err := anypb.MarshalFrom(detail, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		return details
	}
	return append(details, detail)
}

// Cut shortens a text to at most limit bytes, at a boundary of characters.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// Prefixed returns violations with a prefix before each path.
func Prefixed(v *model.Error, prefix string) *model.Error {
	return repathed(v, func(path string) string { return prefix + path })
}

// repathed returns the same violations with other paths.
func repathed(v *model.Error, to func(path string) string) *model.Error {
	out := &model.Error{Total: v.Total, Violations: make([]model.Violation, len(v.Violations))}
	for i, violation := range v.Violations {
		out.Violations[i] = model.Violation{Path: to(violation.Path), Detail: violation.Detail}
	}
	return out
}

// ofWork returns the fault of a question that exceeds its bound of work, if an error reports that.
func ofWork(err error) *Fault {
	e, ok := errors.AsType[*policy.WorkError](err)
	if !ok {
		return nil
	}
	return Exceeded("work", e.Needed(), e.Maximum, "the question costs more than is allowed: "+e.Error())
}

// Exceeded returns the fault of a request that exceeds a limit: a retry fails again.
func Exceeded(limit string, value, maximum int64, text string) *Fault {
	return &Fault{
		Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED, Text: text,
		Metadata: map[string]string{
			"limit": limit, "value": strconv.FormatInt(value, 10), "maximum": strconv.FormatInt(maximum, 10),
		},
	}
}

// Silenced returns a fault without texts and numbers from the snapshot.
func (f *Fault) Silenced() *Fault {
	return &Fault{Code: f.Code, Reason: f.Reason, Text: "the question has no answer for a caller that may see only its own queues"}
}
