// Package duration writes durations in the one form in which people read them: as flags and settings take them, such as 168h or 1h30m.
package duration

import (
	"strings"
	"time"
)

// Format returns a duration without the units that are zero at its end: 168h, 5m, 1h30m. time.ParseDuration reads it again.
func Format(d time.Duration) string {
	said := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(said, zero) {
			said = said[:len(said)-2]
		}
	}
	return said
}

// Rough returns a duration that need not be exact, such as a wait or a forecast: in seconds below a minute, in minutes below two days, and
// in hours beyond. The page has the same function in ui/src/core/duration.ts.
func Rough(d time.Duration) string {
	unit := time.Second
	switch size := d.Abs(); {
	case size >= 48*time.Hour:
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
