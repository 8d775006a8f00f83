// Package trace reads histories of jobs: this project's own CSV, the Standard Workload Format of the Parallel Workloads Archive, and
// decision logs of the service.
package trace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/text"
)

// Trace is a history of jobs, in order of arrival.
type Trace struct {
	Jobs []Job
	// Start is the moment of second 0; zero if the source does not say.
	Start time.Time
	// Notes describe what was left out of the source, and what was estimated.
	Notes []string
	// Faulty are the lines that a tolerant reader left out; nil: none.
	Faulty *Error
}

// Strictness says what a reader does about faulty lines.
type Strictness bool

const (
	// Strict refuses a source with faulty lines.
	Strict Strictness = false
	// Tolerant leaves faulty lines out, and counts them in Trace.Faulty.
	Tolerant Strictness = true
)

// Job is a job as its owner submitted it.
type Job struct {
	// Name is unique within a trace.
	Name  string
	Queue string
	// Owner is who submitted it; may be empty.
	Owner string
	// Arrival is in seconds from the start of the trace, 0 or above.
	Arrival  int64
	Priority int32
	// Min is the number of tasks that must run for the job to make progress: at least 1, at most the number of all tasks.
	Min int
	// Seconds is the duration of the job with all its tasks, 1 or above. With half of its tasks running it takes twice as long.
	Seconds int64
	// Wait is how many seconds it waited before it ran, if Waited says that the source states that. A rehearsal does not read it.
	Wait   int64
	Waited bool
	// Unfinished says that it had not ended when the source did: it takes longer than Seconds.
	Unfinished bool
	// Protected is true if no task of the job may be evicted.
	Protected bool
	// Groups contains the tasks; all tasks of a group have the same request.
	Groups []Group
}

// Group is a number of tasks with the same request.
type Group struct {
	Role  string
	Tasks int
	// Request is the request of each task, by name of the resource, each once.
	Request []Amount
}

// Amount is an amount of a resource in the unit of the contract: bytes of memory, whole pods, thousandths of all others.
type Amount struct {
	Resource string
	Amount   float64
}

// Tasks is the number of all tasks.
func (j *Job) Tasks() int {
	n := 0
	for i := range j.Groups {
		n += j.Groups[i].Tasks
	}
	return n
}

// Minimum returns what the tasks that must run together request, by resource: the first Min tasks.
func (j *Job) Minimum() map[string]float64 {
	sum, left := map[string]float64{}, j.Min
	for i := range j.Groups {
		n := min(left, j.Groups[i].Tasks)
		left -= n
		for _, a := range j.Groups[i].Request {
			sum[a.Resource] += float64(n) * a.Amount
		}
	}
	return sum
}

// Limits of a trace. They are far above real traces, and prevent an invalid line from using all memory.
const (
	MaxJobs    = 5_000_000
	MaxTasks   = 100_000
	maxSeconds = int64(100 * 366 * 24 * time.Hour / time.Second)
	// maxAmount limits an amount, so that sums over a trace are exact enough.
	maxAmount = 1e18
)

// Resources returns the names of all requested resources, sorted.
func (t *Trace) Resources() []string {
	seen := map[string]bool{}
	var names []string
	for i := range t.Jobs {
		for g := range t.Jobs[i].Groups {
			for _, a := range t.Jobs[i].Groups[g].Request {
				if !seen[a.Resource] {
					seen[a.Resource] = true
					names = append(names, a.Resource)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// Queues returns the names of all queues, sorted.
func (t *Trace) Queues() []string {
	seen := map[string]bool{}
	var names []string
	for i := range t.Jobs {
		if q := t.Jobs[i].Queue; !seen[q] {
			seen[q] = true
			names = append(names, q)
		}
	}
	slices.Sort(names)
	return names
}

// Sort sorts jobs by arrival, and jobs with equal arrival by their order in the source.
func (t *Trace) Sort() {
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

// Repeat appends copies to a trace until it is there n times, each copy so many seconds after the one before. The second copy of job-1 is
// job-1/2.
func (t *Trace) Repeat(n int, period int64) error {
	jobs := len(t.Jobs)
	if jobs == 0 || n <= 1 {
		return nil
	}
	if n > MaxJobs/jobs {
		return fmt.Errorf("%s, %d times over, are more than %d", text.Count(jobs, "job"), n, MaxJobs)
	}
	if last := t.Jobs[jobs-1].Arrival; period > (maxSeconds-last)/int64(n-1) {
		return fmt.Errorf("the last of %d copies would end after more than %d seconds", n, maxSeconds)
	}
	for k := 1; k < n; k++ {
		for i := range jobs {
			job := t.Jobs[i]
			job.Name = fmt.Sprintf("%s/%d", job.Name, k+1)
			job.Arrival += int64(k) * period
			t.Jobs = append(t.Jobs, job)
		}
	}
	t.Sort()
	return nil
}

// Error contains the first faults of a source, and their number.
type Error struct {
	Source string
	Faults []Fault
	Total  int
	// columns counts faults by column, and first is the first fault of each, in order.
	columns map[string]int
	first   []Fault
}

// Fault is a fault in a line. Column is empty if the whole line is wrong.
type Fault struct {
	Line            int
	Column, Message string
}

// mostFaults is the maximum number of listed faults.
const mostFaults = 20

func (e *Error) add(line int, column, format string, args ...any) {
	e.Total++
	if e.columns == nil {
		e.columns = map[string]int{}
	}
	first := e.columns[column] == 0
	e.columns[column]++
	if !first && len(e.Faults) >= mostFaults {
		return
	}
	fault := Fault{line, column, fmt.Sprintf(format, args...)}
	if first {
		e.first = append(e.first, fault)
	}
	if len(e.Faults) < mostFaults {
		e.Faults = append(e.Faults, fault)
	}
}

// full reports whether a strict reader need not look for more faults.
func (e *Error) full(s Strictness) bool { return s == Strict && e.Total >= 10*mostFaults }

// settle returns the faults as an error, or notes them in the trace if the reader is tolerant.
func (e *Error) settle(s Strictness, t *Trace) error {
	switch {
	case e.Total == 0:
		return nil
	case s == Strict:
		return e
	}
	t.Faulty = e
	return nil
}

// Summary has a line for each column with faults, with their number and the first of them.
func (e *Error) Summary() []string {
	if e == nil {
		return nil
	}
	lines := make([]string, 0, len(e.first))
	for _, f := range e.first {
		of := ""
		if f.Column != "" {
			of = " because of " + f.Column
		}
		lines = append(lines, fmt.Sprintf("%s: %s left out%s; the first is line %d: %s",
			e.Source, text.Are(e.columns[f.Column], "line"), of, f.Line, f.Message))
	}
	return lines
}

// Error has a line for each fault.
func (e *Error) Error() string {
	var lines []string
	for _, f := range e.Faults {
		at := fmt.Sprintf("%s:%d: ", e.Source, f.Line)
		if f.Column != "" {
			at += f.Column + ": "
		}
		lines = append(lines, at+f.Message)
	}
	if more := e.Total - len(e.Faults); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more faults", more))
	}
	return strings.Join(lines, "\n")
}

// shorten cuts a text from a file for a message.
func shorten(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// fits reports whether an amount is in the valid range.
func fits(amount float64) bool { return amount >= 0 && amount <= maxAmount && !math.IsNaN(amount) }

// Distinct gives each job a name of its own, as a rehearsal needs it: the second run of job-1 in the order of arrival is job-1#2. A run
// of a job arrives when the one before it ended, if that is known and was before it began. A note counts the runs that have new names.
func (t *Trace) Distinct() {
	taken, runs := make(map[string]bool, len(t.Jobs)), map[string]int{}
	for i := range t.Jobs {
		taken[t.Jobs[i].Name] = true
	}
	last, renamed, first := make(map[string]int, len(t.Jobs)), 0, ""
	for i := range t.Jobs {
		job := &t.Jobs[i]
		name := job.Name
		if before, again := last[name]; again {
			if renamed++; renamed == 1 {
				first = name
			}
			for n := max(runs[name], 1); taken[job.Name]; {
				n++
				job.Name, runs[name] = fmt.Sprintf("%s#%d", name, n), n
			}
			taken[job.Name] = true
			job.follow(&t.Jobs[before])
		}
		last[name] = i
	}
	if renamed > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s of jobs that ran before %s a number behind the name; the first is of %q",
			text.Count(renamed, "run"), text.Verb(renamed, "has", "have"), shorten(first)))
		t.Sort()
	}
}

// follow lets a run of a job arrive when the one before it ended.
func (j *Job) follow(before *Job) {
	if !j.Waited || !before.Waited {
		return
	}
	began, ended := j.Arrival+j.Wait, before.Arrival+before.Wait+before.Seconds
	if j.Arrival < ended && ended <= began {
		j.Arrival, j.Wait = ended, began-ended
	}
}

// day is 24 hours, counted from second 0.
const day = int64(24 * time.Hour / time.Second)

// Dealt returns the trace with its days in another order, which the seed determines: the jobs of a day arrive together on another day, at
// the same time of day. With the seed 0 it is the trace as it is.
func (t *Trace) Dealt(seed uint) *Trace {
	if seed == 0 || len(t.Jobs) == 0 {
		return t
	}
	dealt := *t
	dealt.Jobs = slices.Clone(t.Jobs)
	first, last := t.Jobs[0].Arrival/day, t.Jobs[len(t.Jobs)-1].Arrival/day
	order := dealOrder(seed, int(last-first)+1)
	for i := range dealt.Jobs {
		j := &dealt.Jobs[i]
		j.Arrival = (first+int64(order[j.Arrival/day-first]))*day + j.Arrival%day
	}
	dealt.Sort()
	return &dealt
}

// dealOrder returns where each of a number of days goes: to its rank among the digests of seed and day.
func dealOrder(seed uint, days int) []int {
	digests, byDigest, order := make([][sha256.Size]byte, days), make([]int, days), make([]int, days)
	for i := range byDigest {
		text := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(seed)), uint64(i))
		byDigest[i], digests[i] = i, sha256.Sum256(text)
	}
	slices.SortFunc(byDigest, func(a, b int) int { return bytes.Compare(digests[a][:], digests[b][:]) })
	for rank, i := range byDigest {
		order[i] = rank
	}
	return order
}

// Digest is a digest of the jobs, and of the moment at which the trace begins.
func (t *Trace) Digest() ([sha256.Size]byte, error) {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	if err := encoder.Encode(t.Start); err != nil {
		return [sha256.Size]byte{}, err
	}
	for i := range t.Jobs {
		if err := encoder.Encode(&t.Jobs[i]); err != nil { //nolint:musttag // Nothing reads it.
			return [sha256.Size]byte{}, err
		}
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}
