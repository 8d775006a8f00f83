package history

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/apportion/apportion/internal/moment"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/ledger"
)

// table reads rows of columns that a first row names.
type table struct {
	columns map[string]int
	row     []string
}

func (t *table) field(name string) string {
	if at, is := t.columns[strings.ToLower(name)]; is && at < len(t.row) {
		return strings.TrimSpace(t.row[at])
	}
	return ""
}

func (t *table) has(name string) bool {
	_, is := t.columns[strings.ToLower(name)]
	return is
}

func (t *table) needs(names ...string) error {
	for _, name := range names {
		if !t.has(name) {
			return fmt.Errorf("the first line names no column %s", name)
		}
	}
	return nil
}

func header(row []string) *table {
	t := &table{columns: map[string]int{}}
	for i, name := range row {
		t.columns[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))] = i
	}
	return t
}

// csv reads a file with the columns task, queue, start and end, and perhaps owner; every other column is a dimension, with a Kubernetes
// quantity, such as nvidia.com/gpu. An empty end means that the task still runs.
func (r *reading) csv(from io.Reader) error {
	rows := csv.NewReader(from)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	first, err := rows.Read()
	if err != nil {
		return fmt.Errorf("the first line: %w", err)
	}
	t := header(first)
	names := append([]string{}, first...)
	if err := t.needs("task", "queue", "start", "end"); err != nil {
		return err
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.Rows++
		if fault := (&csv.ParseError{}); errors.As(err, &fault) {
			r.bad(fault.StartLine, "", fault.Err.Error())
			continue
		}
		if err != nil {
			return err
		}
		line, _ := rows.FieldPos(0)
		t.row = row
		text := strings.Join(row, ",")
		if len(row) != len(names) {
			r.bad(line, text, "the row has another number of columns than the first line")
			continue
		}
		e, reason := r.csvTask(t, names)
		if reason != "" {
			r.bad(line, text, reason)
			continue
		}
		r.row(line, text, e, t.field("start"), t.field("end"), 0)
	}
}

func (r *reading) csvTask(t *table, names []string) (*ledger.Evidence, string) {
	task, queue := text.FromCell(t.field("task")), text.FromCell(t.field("queue"))
	if task == "" || queue == "" {
		return nil, "it names no task, or no queue"
	}
	e := &ledger.Evidence{Task: task, Owner: text.FromCell(t.field("owner")), Amounts: map[string]int64{}}
	for i, name := range names {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		switch strings.ToLower(name) {
		case "task", "queue", "owner", "start", "end":
			continue
		}
		given := strings.TrimSpace(t.row[i])
		if given == "" {
			continue
		}
		amount, err := quantity.Parse(name, given)
		if err != nil || amount >= math.MaxInt64 {
			return nil, "the amount of " + name + " is no quantity"
		}
		e.Amounts[name] = int64(amount)
	}
	if len(e.Amounts) == 0 {
		return nil, "it has no amount"
	}
	e.Path = r.path(queue)
	return e, ""
}

// row takes in a task that ran from a start to an end, without the time for which it was suspended.
func (r *reading) row(line int, row string, e *ledger.Evidence, start, end string, suspended int64) {
	from, err := parseTime(start)
	if err != nil {
		r.bad(line, row, "the start is no time")
		return
	}
	e.Start = from
	if end == "" || end == unknownTime {
		r.see(from)
		r.running = append(r.running, running{line, row, e, suspended})
		return
	}
	until, err := parseTime(end)
	switch {
	case err != nil:
		r.bad(line, row, "the end is no time")
		return
	case until < from:
		r.bad(line, row, "the end is before the start")
		return
	}
	r.see(from)
	r.see(until)
	e.Ended, e.End = true, max(from, until-suspended)
	e.Seen = e.End
	r.take(line, row, e)
}

// see takes note of a time, unless it lies in the future.
func (r *reading) see(at int64) {
	if at <= r.Now {
		r.newest = max(r.newest, at)
	}
}

// unknownTime is how Slurm writes a time that has not come.
const unknownTime = "Unknown"

// parseTime reads Unix seconds, and times as package moment does.
func parseTime(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	at, err := moment.Parse(text)
	return at.Unix(), err
}
