package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Submission is one line of a trace: a job as its owner submits it.
type Submission struct {
	// Arrival is in seconds from the beginning of the day.
	Arrival int64
	Name    string
	Queue   string
	// Priority: jobs with a higher one come first.
	Priority int32
	// Tasks may run at once; Min of them must, or none does.
	Tasks, Min int
	// Each is the request of one task.
	Each Room
	// Seconds is the running time of the job with all its tasks. With half of its tasks running it takes twice as long.
	Seconds int64
}

// columns of a trace file.
var columns = []string{
	"arrival_seconds", "job", "queue", "priority", "tasks", "min_tasks",
	"gpus_per_task", "cpus_per_task", "memory_gib_per_task", "run_seconds",
}

// readTrace reads a trace, which must be in order of arrival.
func readTrace(r io.Reader) ([]Submission, error) {
	reader := csv.NewReader(r)
	reader.Comment = '#'
	header, err := reader.Read()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(header, columns) {
		return nil, fmt.Errorf("the columns are %q, not %q", header, columns)
	}
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("there are no jobs")
	}
	trace := make([]Submission, 0, len(lines))
	names := make(map[string]bool, len(lines))
	last := int64(0)
	for i, line := range lines {
		s, err := readSubmission(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("job %d: %w", i+1, err)
		case s.Arrival < last:
			return nil, fmt.Errorf("job %s arrives before the one above it", s.Name)
		case names[s.Name]:
			return nil, fmt.Errorf("job %s occurs twice", s.Name)
		}
		last, names[s.Name] = s.Arrival, true
		trace = append(trace, s)
	}
	return trace, nil
}

func readSubmission(line []string) (Submission, error) {
	numbers := make([]int64, len(line))
	for i, text := range line {
		if i == 1 || i == 2 {
			continue
		}
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil || number < 0 && i != 3 {
			return Submission{}, fmt.Errorf("%s: %q is not a number that it could be", columns[i], text)
		}
		numbers[i] = number
	}
	s := Submission{
		Arrival: numbers[0], Name: line[1], Queue: line[2], Priority: int32(numbers[3]),
		Tasks: int(numbers[4]), Min: int(numbers[5]),
		Each:    Room{GPU: numbers[6], CPU: numbers[7], MemoryGiB: numbers[8]},
		Seconds: numbers[9],
	}
	if s.Tasks < 1 || s.Tasks > 1000 || s.Min < 1 || s.Min > s.Tasks || s.Seconds < 1 {
		return Submission{}, fmt.Errorf("%s has %d tasks of which %d must run, for %d seconds", s.Name, s.Tasks, s.Min, s.Seconds)
	}
	return s, nil
}

// writeTrace writes a trace as readTrace reads it.
func writeTrace(w io.Writer, trace []Submission) error {
	writer := csv.NewWriter(w)
	if err := writer.Write(columns); err != nil {
		return err
	}
	for i := range trace {
		s := &trace[i]
		line := []string{strconv.FormatInt(s.Arrival, 10), s.Name, s.Queue}
		for _, number := range []int64{
			int64(s.Priority), int64(s.Tasks), int64(s.Min), s.Each.GPU, s.Each.CPU, s.Each.MemoryGiB, s.Seconds,
		} {
			line = append(line, strconv.FormatInt(number, 10))
		}
		if err := writer.Write(line); err != nil {
			return err
		}
	}
	writer.Flush()
	return writer.Error()
}
