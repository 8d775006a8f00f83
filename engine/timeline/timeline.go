// Package timeline lets the time of a simulated cluster pass from event to event. What happens in it is the World's.
package timeline

import "math"

// Never is later than every event.
const Never = int64(math.MaxInt64)

// World is a simulated cluster. J is a job. Times are in a unit of the world's own.
type World[J any] interface {
	// Arrival returns when a job arrives.
	Arrival(job J) int64
	// Next returns when something other than an arrival happens next, such as the end of a job, and Never if nothing does.
	Next() int64
	// Pass lets time go on to a moment, at which jobs may end.
	Pass(to int64)
	// Arrive adds a job that arrives now.
	Arrive(job J)
	// Decide is called at each time with events, after all of them.
	Decide() error
}

// Simulate goes from event to event until nothing happens any more, or Decide fails. The jobs are in order of arrival.
func Simulate[J any](w World[J], jobs []J) error {
	for {
		next := w.Next()
		if len(jobs) > 0 {
			next = min(next, w.Arrival(jobs[0]))
		}
		if next == Never {
			return nil
		}
		w.Pass(next)
		for ; len(jobs) > 0 && w.Arrival(jobs[0]) == next; jobs = jobs[1:] {
			w.Arrive(jobs[0])
		}
		if err := w.Decide(); err != nil {
			return err
		}
	}
}
