package history

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/contract/quantity"
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

func (t *table) needs(names ...string) error {
	for _, name := range names {
		if _, is := t.columns[strings.ToLower(name)]; !is {
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
		r.take(line, text, e)
	}
}

func (r *reading) csvTask(t *table, names []string) (*ledger.Evidence, string) {
	e := &ledger.Evidence{Task: t.field("task"), Owner: t.field("owner"), Path: r.path(t.field("queue")), Amounts: map[string]int64{}}
	if e.Task == "" || t.field("queue") == "" {
		return nil, "it names no task, or no queue"
	}
	for i, name := range names {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		switch strings.ToLower(name) {
		case "task", "queue", "owner", "start", "end":
			continue
		}
		text := strings.TrimSpace(t.row[i])
		if text == "" {
			continue
		}
		amount, err := quantity.Parse(name, text)
		if err != nil || amount >= math.MaxInt64 {
			return nil, "the amount of " + name + " is no quantity"
		}
		e.Amounts[name] = int64(amount)
	}
	return e, r.times(e, t.field("start"), t.field("end"))
}

// times sets when a task ran; a text that says what is wrong, if something is.
func (r *reading) times(e *ledger.Evidence, start, end string) string {
	from, err := parseTime(start)
	if err != nil {
		return "the start is no time"
	}
	e.Start, e.Seen = from, max(from, r.Now)
	if end == "" || end == unknownTime {
		return ""
	}
	until, err := parseTime(end)
	if err != nil {
		return "the end is no time"
	}
	if until < from {
		return "the end is before the start"
	}
	e.Seen, e.End, e.Ended = until, until, true
	return ""
}

// unknownTime is how Slurm writes a time that has not come.
const unknownTime = "Unknown"

// parseTime reads Unix seconds, RFC 3339, and Slurm's form, which has no zone and counts as UTC.
func parseTime(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Unix(), nil
		}
	}
	return 0, errors.New("no time")
}

// slurm reads `sacct --allusers --allocations --parsable2 --format=JobID,Account,User,Start,End,AllocTRES` with its first line. The account
// is the queue, the user the owner; a job is one task.
func (r *reading) slurm(from io.Reader) error {
	lines := bufio.NewScanner(from)
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	var t *table
	for line := 1; lines.Scan(); line++ {
		row := strings.Split(strings.TrimSuffix(lines.Text(), "\r"), "|")
		if t == nil {
			t = header(row)
			if err := t.needs("JobID", "Account", "User", "Start", "End", "AllocTRES"); err != nil {
				return err
			}
			continue
		}
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		t.row = row
		r.Rows++
		r.slurmJob(line, lines.Text(), t)
	}
	if t == nil && lines.Err() == nil {
		return errors.New("the file is empty")
	}
	return lines.Err()
}

func (r *reading) slurmJob(line int, row string, t *table) {
	id, start := t.field("JobID"), t.field("Start")
	if len(t.row) < len(t.columns) {
		r.bad(line, row, "the row has fewer columns than the first line")
		return
	}
	if strings.Contains(id, ".") || start == unknownTime || start == "None" || t.field("AllocTRES") == "" {
		// A step of a job, which the job contains, or a job that never started.
		r.Skipped++
		return
	}
	e := &ledger.Evidence{Task: "slurm/" + id, Owner: t.field("User"), Path: r.path(t.field("Account"))}
	if id == "" || t.field("Account") == "" {
		r.bad(line, row, "it names no job, or no account")
		return
	}
	amounts, reason := tres(t.field("AllocTRES"))
	if reason == "" {
		reason = r.times(e, start, t.field("End"))
	}
	if reason != "" {
		r.bad(line, row, reason)
		return
	}
	e.Amounts = amounts
	r.take(line, row, e)
}

// tres reads Slurm's cpu=4,mem=16G,gres/gpu=2,node=1,billing=4. Devices are nvidia.com/gpu; energy, billing and nodes are not resources
// here, and a type of device (gres/gpu:a100) is part of gres/gpu.
func tres(text string) (map[string]int64, string) {
	out := map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		dimension := map[string]string{"cpu": "cpu", "mem": "memory", "gres/gpu": "nvidia.com/gpu"}[name]
		if dimension == "" {
			continue
		}
		if dimension == "memory" && value != "" && strings.ContainsAny(value[len(value)-1:], "KMGTP") {
			// Slurm's units of memory are powers of 1024.
			value += "i"
		}
		amount, err := quantity.Parse(dimension, value)
		if err != nil || amount >= math.MaxInt64 {
			return nil, "AllocTRES has an amount of " + name + " that is no quantity"
		}
		out[dimension] = int64(amount)
	}
	return out, ""
}
