package method

import (
	"strconv"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// nothing is the fault of a request without a question.
func nothing(field, text string) ([]*apportionv1.Step, error) { return nil, missing(field, text) }

// NoSnapshot is the fault of an input without a snapshot.
func NoSnapshot() error {
	return missing("input.snapshot", "neither a snapshot nor the digest or name of one is given")
}

// NoPolicy is the fault of an input without a policy. prefix leads to the fields of the input.
func NoPolicy(prefix string) error {
	return missing(prefix+"policy", "neither a policy nor the name of one is given")
}

// UnknownPolicy is the fault of an input that names a policy that is not configured.
func UnknownPolicy(prefix, name string) error {
	return &decode.Fault{
		Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_POLICY_NOT_FOUND, Field: prefix + "policy_name",
		Text: "no policy " + strconv.Quote(name) + " is configured",
	}
}

func missing(field, text string) error {
	return decode.InvalidField(apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, field, "%s", text)
}
