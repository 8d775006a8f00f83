package method

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Changed returns the change of the snapshot that an input names, which is its first event, and the position of the first event after it.
// nil and 0: the first event is another one, or the input contains the snapshot.
func Changed(in *apportionv1.Input) (*apportionv1.Change, int) {
	events := in.GetEvents()
	if len(events) == 0 || in.GetSnapshot() != nil || events[0].GetChange() == nil {
		return nil, 0
	}
	return events[0].GetChange(), 1
}

// NotChanged returns the fault of a first event, a change that cannot be made, as that of any other event. prefix leads to the input.
func NotChanged(err error, prefix string) error {
	fault := decode.AsFault(err).Within(prefix + "events[0].")
	if fault.Reason == apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT {
		fault.Reason = apportionv1.ErrorReason_ERROR_REASON_INVALID_STEP
	}
	return fault
}
