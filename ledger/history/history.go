// Package history reads what ran in the past from other systems, as evidence for a ledger: Slurm's accounting (sacct), range queries of
// Prometheus, and CSV.
package history

import (
	"cmp"
	"fmt"
	"io"
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
	// Queues maps the queue of a task to its path, the queue first, the root last. A queue that is not listed is below the root. Tree says
	// that the list is that of a tree: other queues are reported.
	Queues map[string][]string
	Tree   bool
	// Now is the own clock in Unix seconds, after which nothing counts.
	Now int64
	// AsOf is when the history was written, in Unix seconds: tasks that still run were seen then. 0: the newest time that it has.
	AsOf int64
	// Metric says what the values of a range query of Prometheus are: the dimension, such as nvidia.com/gpu.
	Metric string
	// QueueLabel and OwnerLabel are the labels of a range query that name queue and owner.
	QueueLabel, OwnerLabel string
	// Step is the distance of two samples of a range query in seconds. 0: that of all its samples.
	Step int64
}

// Read reads a history into a ledger: evidence of each task. A row that cannot be read is left out and reported; an error means that the
// file is not of the format at all, or cannot be read.
func Read(format Format, from io.Reader, o Options, to *ledger.Ledger) (*Report, error) {
	r := newReading(o, to)
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
	r.end()
	return &r.Report, err
}

type reading struct {
	Options
	Report

	to *ledger.Ledger
	// newest is the newest time that was read, in Unix seconds, and running are the tasks without an end, which ran until then.
	newest  int64
	running []running
	// uncounted are the resources of which a report has told.
	uncounted map[string]bool
	// series are those that were read, by queue and owner the first of them.
	series map[string]string
}

func newReading(o Options, to *ledger.Ledger) *reading {
	return &reading{Options: o, to: to, uncounted: map[string]bool{}, series: map[string]string{}}
}

// running is a task without an end. It was suspended for some seconds.
type running struct {
	line      int
	row       string
	evidence  *ledger.Evidence
	suspended int64
}

// sensible is the first time that a history may state, in Unix seconds: the year 2000. Schedulers print 1970 where they know no time.
const sensible = 946684800

// take takes in evidence, or reports why the ledger refuses it. It returns whether the task counts.
func (r *reading) take(line int, row string, e *ledger.Evidence) bool {
	if e.Start < sensible {
		r.bad(line, row, "the start is before the year 2000")
		return false
	}
	contradicts := r.to.Contradicts(e)
	if err := r.to.Enter(e, r.Now); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		field, _, _ := strings.Cut(reason, ":")
		switch {
		case strings.Contains(reason, "clock"):
			reason = field + " lies in the future"
		case strings.Contains(reason, "below 0"):
			reason = "an amount is below 0"
		}
		r.bad(line, row, reason)
		return false
	}
	if contradicts {
		r.note(line, row, "task and start are those of an earlier row with another queue, owner, amount or end; one of both counts")
	}
	until := e.Seen
	if e.Ended {
		until = e.End
	}
	held := false
	for _, amount := range e.Amounts {
		held = held || amount > 0
	}
	if held && until > e.Start {
		r.Tasks++
	} else {
		r.Skipped++
	}
	return true
}

// end takes in the tasks that still run.
func (r *reading) end() {
	r.Report.AsOf = cmp.Or(r.Options.AsOf, r.newest)
	for _, task := range r.running {
		task.evidence.Seen = max(task.evidence.Start, r.Report.AsOf-task.suspended)
		if r.take(task.line, task.row, task.evidence) {
			r.Running++
		}
	}
	r.running = nil
}

// path returns the path of a queue.
func (r *reading) path(queue string) []string {
	if path := r.Queues[queue]; path != nil {
		return path
	}
	if queue == rootName {
		return []string{rootName}
	}
	if r.Tree {
		r.outside(queue)
	}
	return []string{queue, rootName}
}

const rootName = "root"
