// Package duration has the one form in which people read and write durations: 30s, 1h30m, 7d, 11d4h. Flags and settings take what it
// writes.
package duration

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Format returns a duration without the units that are zero at its end, with days from 48 hours on: 5m, 1h30m, 36h, 7d, 11d4h. Parse reads
// it again.
func Format(d time.Duration) string {
	if days, rest := d/day, d%day; days >= 2 || days <= -2 {
		if rest == 0 {
			return fmt.Sprintf("%dd", days)
		}
		return fmt.Sprintf("%dd%s", days, Format(rest.Abs()))
	}
	said := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(said, zero) {
			said = said[:len(said)-2]
		}
	}
	return said
}

// Parse reads what time.ParseDuration reads, with days of 24 hours as the first unit: 7d, 1.5d, 11d4h.
func Parse(text string) (time.Duration, error) {
	number, rest, found := strings.Cut(text, "d")
	if !found || strings.Trim(number, "+-.0123456789") != "" {
		return time.ParseDuration(text)
	}
	days, err := time.ParseDuration(number + "h")
	if err != nil || days.Abs() > math.MaxInt64/24 || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, errNoDuration
	}
	if rest == "" {
		return 24 * days, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil {
		return 0, errNoDuration
	}
	if strings.HasPrefix(number, "-") {
		more = -more
	}
	if sum := 24*days + more; (sum < 24*days) == (more < 0) {
		return sum, nil
	}
	return 0, errNoDuration
}

var errNoDuration = errors.New("not a duration such as 90s, 1h30m or 7d")

// Rough returns a duration that need not be exact, such as a wait or a forecast: in seconds below a minute, in minutes below two days, and
// in days and hours beyond. The page has the same function in ui/src/core/duration.ts.
func Rough(d time.Duration) string {
	unit := time.Second
	switch size := d.Abs(); {
	case size >= 2*day:
		unit = time.Hour
	case size >= time.Minute:
		unit = time.Minute
	}
	return Format(d.Round(unit))
}

// Seconds is Rough of a number of seconds, of at most the whole hours that a duration can hold, about 292 years.
func Seconds(seconds int64) string {
	const most = int64((1<<63-1)/time.Hour) * int64(time.Hour/time.Second)
	return Rough(time.Duration(min(max(seconds, -most), most)) * time.Second)
}
