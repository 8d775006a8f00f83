package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

const (
	minute = int64(60)
	hour   = 60 * minute
	day    = 24 * hour
)

// generateTrace draws a day of three groups that share a cluster. Equal seeds draw equal days.
//
//   - production retrains its models through the working hours: gangs that run whole or not at all;
//   - research has elastic sweeps, half of them overnight, which run with any number of workers; a few are urgent;
//   - students have small jobs, most of them in the afternoon before the exercise is due.
func generateTrace(seed uint64) []Submission {
	draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a day is to be repeatable, not secret
	between := func(low, high int64) int64 { return low + draw.Int64N(high-low+1) }
	pick := func(choices ...int64) int64 { return choices[draw.IntN(len(choices))] }

	var trace []Submission
	add := func(queue string, s Submission) {
		s.Queue = queue
		s.Each.CPU, s.Each.MemoryGiB = 7*s.Each.GPU, 60*s.Each.GPU
		trace = append(trace, s)
	}
	for range 24 {
		tasks := pick(1, 2, 2, 3)
		add("production", Submission{
			Arrival: between(7*hour, 19*hour), Tasks: int(tasks), Min: int(tasks),
			Each: Room{GPU: pick(2, 4, 4, 8)}, Seconds: between(25, 110) * minute,
		})
	}
	for i := range 28 {
		start, end := int64(0), 6*hour
		if i%2 == 1 {
			start, end = 8*hour, 22*hour
		}
		sweep := Submission{
			Arrival: between(start, end), Tasks: int(between(6, 20)), Min: int(between(1, 3)),
			Each: Room{GPU: pick(1, 1, 2)}, Seconds: between(45, 150) * minute,
		}
		if i%7 == 3 {
			sweep.Priority, sweep.Min = 10, 6
		}
		add("research", sweep)
	}
	for i := range 40 {
		start, end := 9*hour, 21*hour
		if i%2 == 1 {
			start, end = 14*hour, 17*hour
		}
		tasks := pick(1, 1, 1, 2)
		add("students", Submission{
			Arrival: between(start, end), Tasks: int(tasks), Min: 1,
			Each: Room{GPU: 1}, Seconds: between(15, 75) * minute,
		})
	}
	slices.SortStableFunc(trace, func(a, b Submission) int { return cmp.Compare(a.Arrival, b.Arrival) })
	count := make(map[string]int)
	for i := range trace {
		s := &trace[i]
		count[s.Queue]++
		s.Name = fmt.Sprintf("%s-%02d", s.Queue, count[s.Queue])
	}
	return trace
}
