// Package history reads what ran in the past from other systems, as evidence for a ledger: Slurm's accounting (sacct), range queries of
// Prometheus, and CSV.
package history

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apportion/apportion/ledger"
)

// Format is a kind of history.
type Format string

// The kinds of history.
const (
	Slurm      Format = "sacct"
	Prometheus Format = "prometheus"
	CSV        Format = "csv"
)

// Formats lists the kinds of history.
func Formats() []Format { return []Format{Slurm, Prometheus, CSV} }

// Options of Read.
type Options struct {
	// Queues maps the queue of a task to its path, the queue first, the root last. A queue that is not listed is below the root.
	Queues map[string][]string
	// Now is the own clock in Unix seconds: tasks that still run were seen then.
	Now int64
	// Metric says what the values of a range query of Prometheus are: the dimension, such as nvidia.com/gpu.
	Metric string
	// QueueLabel and OwnerLabel are the labels of a range query that name queue and owner.
	QueueLabel, OwnerLabel string
}

// Report says what was read.
type Report struct {
	// Rows read, Tasks of which there is evidence, and Skipped rows that used nothing, such as jobs that never started.
	Rows, Tasks, Skipped int
	// Bad counts the rows that could not be read by reason, with an example of each.
	Bad map[string]*Example
}

// Example is a row that could not be read.
type Example struct {
	Count int
	Line  int
	Row   string
}

func (r *Report) bad(line int, row, reason string) {
	if r.Bad == nil {
		r.Bad = map[string]*Example{}
	}
	if r.Bad[reason] == nil {
		const longest = 120
		if len(row) > longest {
			row = strings.ToValidUTF8(row[:longest], "") + "…"
		}
		r.Bad[reason] = &Example{Line: line, Row: row}
	}
	r.Bad[reason].Count++
}

// Warnings tells of each reason how many rows were left out, with an example.
func (r *Report) Warnings() []string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(r.Bad)) {
		e := r.Bad[reason]
		rows := "rows were"
		if e.Count == 1 {
			rows = "row was"
		}
		out = append(out, fmt.Sprintf("%d %s left out: %s, such as line %d: %q", e.Count, rows, reason, e.Line, e.Row))
	}
	return out
}

// Read reads a history and calls use with the evidence of each task. A row that cannot be read is left out and reported; an error means
// that the file is not of the format at all, or cannot be read.
func Read(format Format, from io.Reader, o Options, use func(*ledger.Evidence) error) (*Report, error) {
	r := &reading{Options: o, use: use}
	var err error
	switch format {
	case Slurm:
		err = r.slurm(from)
	case Prometheus:
		err = r.prometheus(from)
	case CSV:
		err = r.csv(from)
	default:
		err = fmt.Errorf("there is no format %q", format)
	}
	return &r.Report, err
}

type reading struct {
	Options
	Report

	use func(*ledger.Evidence) error
}

// take passes on evidence, or reports why the ledger refuses it.
func (r *reading) take(line int, row string, e *ledger.Evidence) {
	if err := r.use(e); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		field, _, _ := strings.Cut(reason, ":")
		switch {
		case strings.Contains(reason, "clock"):
			reason = field + " lies in the future"
		case strings.Contains(reason, "below 0"):
			reason = "an amount is below 0"
		}
		r.bad(line, row, reason)
		return
	}
	r.Tasks++
}

// path returns the path of a queue.
func (r *reading) path(queue string) []string {
	if path := r.Queues[queue]; path != nil {
		return path
	}
	if queue == rootName {
		return []string{rootName}
	}
	return []string{queue, rootName}
}

const rootName = "root"
