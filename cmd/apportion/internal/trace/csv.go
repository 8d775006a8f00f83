package trace

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/engine/resource"
	"github.com/apportion/apportion/internal/moment"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// The columns of a CSV trace; all others are resources.
const (
	columnArrival  = "arrival"
	columnJob      = "job"
	columnQueue    = "queue"
	columnOwner    = "owner"
	columnPriority = "priority"
	columnTasks    = "tasks"
	columnMin      = "min"
	columnSeconds  = "seconds"
	columnEvict    = "preemptable"
	columnWait     = "wait"
)

var (
	knownColumns = []string{
		columnArrival, columnJob, columnQueue, columnOwner, columnPriority, columnTasks, columnMin, columnSeconds, columnEvict,
		columnWait,
	}
	requiredColumns = []string{columnArrival, columnQueue, columnSeconds}
)

// ReadCSV reads a trace of one line for each job, below a line that names the columns, in any order:
//
//	arrival   seconds, or a moment like 2006-01-02T15:04:05Z, which is UTC without a zone, as Slurm prints it (required)
//	queue     name of the queue (required)
//	seconds   how long the job takes with all its tasks (required)
//	job       a unique name; default: job- and the number of the line
//	owner     who submitted the job; default: none
//	priority  of the job; default 0
//	tasks     number of tasks; default 1
//	min       how many of them must run at once; default: all
//	wait      how many seconds the job waited before it ran; default: not known
//	preemptable  whether tasks may be evicted, true or false; default: true
//
// Every other column is a resource that each task asks for, such as cpu, memory or gpu, as Kubernetes writes quantities. Lines that begin
// with # are comments. The error is an *Error if the columns are wrong or, unless the reader is tolerant, lines are.
func ReadCSV(source string, r io.Reader, s Strictness) (*Trace, error) {
	bounded := &boundedReader{from: r, line: 1}
	in := &csvReader{
		source: bounded, lines: csv.NewReader(bounded), faults: Error{Source: source}, names: map[string]int{}, trace: &Trace{},
	}
	in.lines.Comment, in.lines.ReuseRecord, in.lines.TrimLeadingSpace = '#', true, true
	if err := in.header(); err != nil {
		return nil, err
	}
	for !in.faults.full(s) {
		fields, err := in.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errLongLine) {
			in.broken(err)
			break
		}
		if err != nil {
			if !in.broken(err) {
				return nil, err
			}
			continue
		}
		if len(in.trace.Jobs) == MaxJobs {
			in.faults.add(in.line(), "", "more than %d jobs", MaxJobs)
			break
		}
		in.job(fields)
	}
	if err := in.faults.settle(s, in.trace); err != nil {
		return nil, err
	}
	in.arrive()
	return in.trace, nil
}

const (
	// maxLine is the largest number of bytes of a line.
	maxLine      = 1 << 16
	maxResources = resource.MaxDimensions
)

var errLongLine = errors.New("the line is too long")

// boundedReader returns errLongLine after maxLine bytes since taken was set to zero. A reader of CSV keeps a line until its end, and
// fields in quotes may have many lines.
type boundedReader struct {
	from io.Reader
	// taken counts bytes; line is the number of the line in which reading is.
	taken, line int
}

func (r *boundedReader) Read(to []byte) (int, error) {
	if r.taken > maxLine {
		return 0, errLongLine
	}
	n, err := r.from.Read(to)
	r.taken += n
	r.line += bytes.Count(to[:n], []byte{'\n'})
	return n, err
}

type csvReader struct {
	source    *boundedReader
	lines     *csv.Reader
	faults    Error
	at        map[string]int
	resources []column
	// names contains the jobs so far, with their positions; repeated are the runs of those that are in further lines.
	names    map[string]int
	repeated overlaps
	// moments are the arrivals of jobs that are given as times; dated is true if arrivals are times, plain if they are seconds. The first
	// arrival that can be read says which.
	moments      []time.Time
	dated, plain bool
	trace        *Trace
	// arrived are the arrivals in the order of lines, which arrivedIn has.
	arrived   []int64
	arrivedIn []int
}

// column is a column of a resource.
type column struct {
	at             int
	name, resource string
}

func (c *csvReader) line() int {
	line, _ := c.lines.FieldPos(0)
	return line
}

// read returns the next line.
func (c *csvReader) read() ([]string, error) {
	c.source.taken = 0
	return c.lines.Read()
}

// broken records a syntax error of the CSV, or a line that is too long, and reports whether it was one.
func (c *csvReader) broken(err error) bool {
	if errors.Is(err, errLongLine) {
		c.faults.add(c.source.line, "", "the line, or a field in quotes that goes on here, is longer than %d bytes", maxLine)
		return true
	}
	parse, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return false
	}
	if errors.Is(parse.Err, csv.ErrFieldCount) {
		c.faults.add(parse.Line, "", "the number of fields differs from the number of columns")
	} else {
		c.faults.add(parse.Line, "", "column %d: %s", parse.Column, parse.Err)
	}
	return true
}

func (c *csvReader) header() error {
	header, err := c.read()
	if errors.Is(err, io.EOF) {
		c.faults.add(1, "", "the first line must name the columns")
		return &c.faults
	}
	if err != nil {
		if c.broken(err) {
			return &c.faults
		}
		return err
	}
	c.at = map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		resource := name
		if name == "gpu" {
			resource = "nvidia.com/gpu"
		}
		_, twice := c.at[resource]
		switch {
		case name == "":
			c.faults.add(c.line(), "", "column %d has no name", i+1)
		case twice:
			c.faults.add(c.line(), shorten(name), "the column is given twice")
		default:
			c.at[resource] = i
			if !slices.Contains(knownColumns, name) {
				c.resources = append(c.resources, column{i, name, resource})
			}
		}
	}
	for _, name := range requiredColumns {
		if _, ok := c.at[name]; !ok {
			c.faults.add(c.line(), name, "the column is missing")
		}
	}
	if len(c.resources) > maxResources {
		c.faults.add(c.line(), "", "%d columns of resources are more than %d", len(c.resources), maxResources)
	}
	if len(c.resources) == 0 {
		c.faults.add(c.line(), "", "a column of a resource is missing, such as cpu or gpu")
	}
	return c.faults.settle(Strict, c.trace)
}

// job reads the line of a job.
func (c *csvReader) job(fields []string) {
	before := c.faults.Total
	line := c.line()
	job := Job{Name: "job-" + strconv.Itoa(line), Queue: c.text(fields, columnQueue)}
	if c.has(columnJob) {
		job.Name = c.text(fields, columnJob)
	}
	first, twice := c.names[job.Name]
	if twice {
		c.faults.add(line, columnJob, "job %q is in line %d already", shorten(job.Name), c.arrivedIn[first])
	}
	if at, given := c.at[columnOwner]; given && strings.TrimSpace(fields[at]) != "" {
		job.Owner = c.text(fields, columnOwner)
	}
	moment := c.arrival(&job, fields)
	job.Seconds = c.number(fields, columnSeconds, 1, maxSeconds, 1)
	const maxPriority = 1<<31 - 1
	job.Priority = int32(c.number(fields, columnPriority, -maxPriority, maxPriority, 0))
	tasks := c.number(fields, columnTasks, 1, MaxTasks, 1)
	job.Min = int(c.number(fields, columnMin, 1, tasks, tasks))
	if job.Wait = c.number(fields, columnWait, 0, maxSeconds, -1); job.Wait >= 0 {
		job.Waited = true
	} else {
		job.Wait = 0
	}
	job.Protected = !c.truth(fields, columnEvict)
	job.Groups = []Group{{Role: "task", Tasks: int(tasks), Request: c.request(fields)}}
	if c.faults.Total > before {
		if twice && c.faults.Total == before+1 {
			c.repeated.add(runOf(&job, first, line, c.seconds(&job, moment)))
		}
		return
	}
	c.names[job.Name] = len(c.trace.Jobs)
	c.trace.Jobs, c.arrivedIn = append(c.trace.Jobs, job), append(c.arrivedIn, line)
	if c.dated {
		c.moments = append(c.moments, moment)
	}
}

func (c *csvReader) has(column string) bool {
	_, ok := c.at[column]
	return ok
}

func (c *csvReader) text(fields []string, column string) string {
	name := text.FromCell(strings.TrimSpace(fields[c.at[column]]))
	const most = 1000
	if name == "" || len(name) > most {
		c.faults.add(c.line(), column, "a name of 1 to %d bytes is needed", most)
	}
	return strings.Clone(name)
}

// number reads a whole number; an absent column or an empty field is otherwise.
func (c *csvReader) number(fields []string, column string, least, most, otherwise int64) int64 {
	i, ok := c.at[column]
	if !ok {
		return otherwise
	}
	text := strings.TrimSpace(fields[i])
	if text == "" && !slices.Contains(requiredColumns, column) {
		return otherwise
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < least || number > most {
		c.faults.add(c.line(), column, "%q is not a whole number from %d to %d", shorten(text), least, most)
		return otherwise
	}
	return number
}

// truth reads true or false; an absent column or an empty field is true.
func (c *csvReader) truth(fields []string, column string) bool {
	i, ok := c.at[column]
	if !ok || strings.TrimSpace(fields[i]) == "" {
		return true
	}
	truth, err := strconv.ParseBool(strings.TrimSpace(fields[i]))
	if err != nil {
		c.faults.add(c.line(), column, "%q is neither true nor false", shorten(fields[i]))
	}
	return truth
}

// arrival reads seconds or a moment. All lines of a file give the same; one that gives the other, or neither, is at fault by itself.
func (c *csvReader) arrival(job *Job, fields []string) time.Time {
	text := strings.TrimSpace(fields[c.at[columnArrival]])
	at, err := moment.Parse(text)
	switch {
	case err == nil && c.plain:
		c.faults.add(c.line(), columnArrival, "some arrivals are times and some are seconds")
	case err == nil:
		c.dated = true
	case c.dated:
		c.faults.add(c.line(), columnArrival, "%q is not a time like 2006-01-02T15:04:05Z, as other arrivals are", shorten(text))
	default:
		before := c.faults.Total
		job.Arrival = c.number(fields, columnArrival, 0, maxSeconds, 0)
		c.plain = c.plain || c.faults.Total == before
	}
	return at
}

func (c *csvReader) request(fields []string) []Amount {
	var request []Amount
	for _, column := range c.resources {
		text := strings.TrimSpace(fields[column.at])
		if text == "" {
			continue
		}
		amount, err := quantity.Parse(column.resource, text)
		if err != nil || !fits(amount) {
			c.faults.add(c.line(), column.name, "%q is not a quantity of Kubernetes, such as 500m or 16Gi", shorten(text))
			continue
		}
		if amount > 0 {
			request = append(request, Amount{column.resource, amount})
		}
	}
	return request
}

// seconds returns when a job arrives, in seconds from a time that is the same for all jobs.
func (c *csvReader) seconds(job *Job, moment time.Time) int64 {
	if c.dated {
		return moment.Unix()
	}
	return job.Arrival
}

// arrive converts moments to seconds and sorts the jobs.
func (c *csvReader) arrive() {
	t := c.trace
	defer c.noteJumps()
	c.repeated.note(c.faults.Source, t, func(of int) run {
		moment := time.Time{}
		if c.dated {
			moment = c.moments[of]
		}
		return runOf(&t.Jobs[of], of, c.arrivedIn[of], c.seconds(&t.Jobs[of], moment))
	})
	if len(c.moments) > 0 {
		t.Start = slices.MinFunc(c.moments, time.Time.Compare).UTC()
		for i, moment := range c.moments {
			t.Jobs[i].Arrival = min(int64(moment.Sub(t.Start)/time.Second), maxSeconds)
		}
	}
	for i := range t.Jobs {
		c.arrived = append(c.arrived, t.Jobs[i].Arrival)
	}
	t.Sort()
}

// noteJumps notes jobs that arrive long before the job of the line above, in a file that is in order of arrival but for few.
func (c *csvReader) noteJumps() {
	const long, few = 24 * 3600, 10
	back, first := 0, 0
	for i, at := range c.arrived {
		if i > 0 && at < c.arrived[i-1]-long {
			if back++; back == 1 {
				first = c.arrivedIn[i]
			}
		}
	}
	if back > 0 && back*few < len(c.arrived) {
		c.trace.Notes = append(c.trace.Notes, fmt.Sprintf(
			"%s: %s %s a day or more before the job of the line above, as if the clock had jumped; "+
				"the first is line %d", c.faults.Source, text.Count(back, "job"), text.Verb(back, "arrives", "arrive"), first))
	}
}
