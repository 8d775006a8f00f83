// Package moment reads points in time as people and other programs write them.
package moment

import (
	"fmt"
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
