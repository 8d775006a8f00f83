package volcano

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Periods that a value of MaintenanceAnnotation may not have.
var (
	errNoPeriod  = errors.New("not a period like 2006-01-02T15:04:05Z/2006-01-02T17:04:05Z")
	errBackwards = errors.New("the period does not end after it begins")
	errTooFar    = errors.New("the years of a period are 1971 to 2261")
)

// maintenance reads the periods in which a node is to be drained. What is not a period is left out, with a warning.
func (r *reader) maintenance(v *objects.Value) (list []*apportionv1.NodeReservation) {
	written := r.TextAt(v)
	if written == "" {
		return nil
	}
	for period := range strings.SplitSeq(written, ",") {
		one, err := Downtime(period)
		switch {
		case err != nil:
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"%s, so no downtime is planned for it: %q", err, strings.TrimSpace(period))
		case len(list) == model.MaxReservations:
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"a node has at most %d periods of downtime; the others are left out", model.MaxReservations)
			return list
		default:
			list = append(list, one)
		}
	}
	return list
}

// Downtime reads a period of MaintenanceAnnotation: it keeps the whole node for no job.
func Downtime(period string) (*apportionv1.NodeReservation, error) {
	begin, end, _ := strings.Cut(strings.TrimSpace(period), "/")
	from, err := time.Parse(time.RFC3339, begin)
	until, wrong := time.Parse(time.RFC3339, end)
	switch {
	case err != nil || wrong != nil:
		return nil, errNoPeriod
	case !from.Before(until):
		return nil, errBackwards
	case !countable(from) || !countable(until):
		return nil, errTooFar
	}
	return &apportionv1.NodeReservation{From: from.UnixNano(), Until: until.UnixNano(), Reason: "maintenance"}, nil
}

// WriteDowntime is the inverse of Downtime. A period without an end ends with the slash.
func WriteDowntime(period *apportionv1.NodeReservation) string {
	end := ""
	if period.GetUntil() != 0 {
		end = writtenMoment(period.GetUntil())
	}
	return fmt.Sprintf("%s/%s", writtenMoment(period.GetFrom()), end)
}

func writtenMoment(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}

// countable reports whether Unix nanoseconds can state a time.
func countable(at time.Time) bool {
	year := at.UTC().Year()
	return year >= 1971 && year <= 2261
}

// momentOf reads a time of which Unix nanoseconds can be stated.
func momentOf(text string) (nanoseconds int64, known bool) {
	at, err := time.Parse(time.RFC3339, text)
	return at.UnixNano(), err == nil && countable(at)
}
