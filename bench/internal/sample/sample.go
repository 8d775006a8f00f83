// Package sample sums up what was measured: quantiles, tables in Markdown, and lines of name=value pairs that scripts compare.
package sample

import (
	"slices"
	"time"
)

// Durations are measurements of one thing.
type Durations []time.Duration

// Quantile returns the smallest duration that a fraction q of all does not exceed; 0 of none.
func (d Durations) Quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	at := int(q*float64(len(sorted))+0.5) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Median returns the middle of some numbers, the lower of two; 0 of none.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}

// Milliseconds of a duration.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Microseconds of a duration.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
