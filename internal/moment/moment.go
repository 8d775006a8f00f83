// Package moment reads points in time as people and other programs write them.
package moment

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Parse reads a time of RFC 3339, a day, and a time without a zone, as Slurm prints it, which is UTC.
func Parse(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time like 2006-01-02T15:04:05Z", text)
}

// What may be wrong with a period.
var (
	errNoPeriod  = errors.New("not a period like 2006-01-02T15:04:05Z/2006-01-02T17:04:05Z")
	errBackwards = errors.New("the period does not end after it begins")
	errTooFar    = errors.New("the years of a period are 1971 to 2261")
)

// Period reads START/END, two times of RFC 3339, in Unix nanoseconds.
func Period(text string) (from, until int64, err error) {
	begin, end, _ := strings.Cut(strings.TrimSpace(text), "/")
	first, err := time.Parse(time.RFC3339, begin)
	last, wrong := time.Parse(time.RFC3339, end)
	switch {
	case err != nil || wrong != nil:
		return 0, 0, errNoPeriod
	case !first.Before(last):
		return 0, 0, errBackwards
	case !Countable(first) || !Countable(last):
		return 0, 0, errTooFar
	}
	return first.UnixNano(), last.UnixNano(), nil
}

// Countable reports whether Unix nanoseconds can state a time.
func Countable(at time.Time) bool {
	year := at.UTC().Year()
	return year >= 1971 && year <= 2261
}
