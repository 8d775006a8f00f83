package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/text"
)

// SWF configures how a trace in Standard Workload Format is converted to jobs with queues and requests.
type SWF struct {
	// QueueOf is the column that determines the queue: queue, user, group or partition.
	QueueOf string
	// Queues names the queue of each value of that column; * is for all others. Without an entry the queue is named as the header names it
	// (`; Queue: 1 batch`), or else as the column and the value: user-17.
	Queues map[string]string
	// Processor is the request of one processor. If it has no memory, the memory in the trace is used.
	Processor []Amount
	// Strictness says what to do about faulty lines.
	Strictness
	// PerTask is the number of processors of a task; the last task of a job has the rest. 0 counts as 1.
	PerTask int
}

// QueueColumns are the valid values of QueueOf.
var QueueColumns = []string{"queue", "user", "group", "partition"}

// The fields of a line, counted from 0 (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
const (
	swfNumber, swfSubmit, swfWait, swfRun, swfAllocated = 0, 1, 2, 3, 4
	swfProcessors, swfMemory, swfStatus                 = 7, 9, 10
	swfUser, swfGroup, swfQueue, swfPartition           = 11, 12, 14, 15
	swfFields                                           = 18
)

var swfNames = [swfFields]string{
	"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory",
	"requested processors", "requested time", "requested memory", "status", "user", "group", "executable", "queue", "partition",
	"preceding job", "think time",
}

// Read reads a trace in Standard Workload Format, as the Parallel Workloads Archive publishes them: comments that begin with ; and lines of
// 18 numbers, -1 for what is not known. Every job is a gang: all its tasks run, or none. Jobs that never ran, and the parts of jobs that
// were suspended (status 2 to 4), are left out and counted in the notes. The error is an *Error if lines are wrong.
func (s *SWF) Read(source string, r io.Reader) (*Trace, error) {
	in := &swfReader{SWF: s, faults: Error{Source: source}, trace: &Trace{}, header: map[string]string{}, seen: map[int64]int{}}
	if in.column = columnOf(s.QueueOf); in.column < 0 {
		return nil, fmt.Errorf("no column %q contains the queue; choose one of %s", s.QueueOf, strings.Join(QueueColumns, ", "))
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<12), maxLine)
	number := 0
	for lines.Scan() && !in.faults.full(s.Strictness) {
		number++
		text := strings.TrimSpace(lines.Text())
		switch {
		case text == "":
		case text[0] == ';':
			in.comment(text[1:])
		case len(in.trace.Jobs) == MaxJobs:
			in.faults.add(number, "", "more than %d jobs", MaxJobs)
		default:
			in.job(number, strings.Fields(text))
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		in.faults.add(number+1, "", "the line is longer than %d bytes", maxLine)
	} else if err != nil {
		return nil, err
	}
	if err := in.faults.settle(s.Strictness, in.trace); err != nil {
		return nil, err
	}
	in.note()
	in.trace.Sort()
	return in.trace, nil
}

func columnOf(name string) int {
	switch name {
	case "", "queue":
		return swfQueue
	case "user":
		return swfUser
	case "group":
		return swfGroup
	case "partition":
		return swfPartition
	}
	return -1
}

type swfReader struct {
	*SWF
	faults Error
	column int
	// header names queues by number; seen are the job numbers with their positions, and lines has the lines of the jobs.
	header            map[string]string
	seen              map[int64]int
	lines             []int
	repeated          overlaps
	neverRan, partial int
	// before counts jobs that end before they start, back those that were submitted before the job of the line above, which is last.
	before, back, firstBack int
	last                    float64
	trace                   *Trace
}

// comment reads the comments with the start of the trace and the names of queues.
func (s *swfReader) comment(text string) {
	name, value, found := strings.Cut(text, ":")
	if !found {
		return
	}
	value = strings.TrimSpace(value)
	switch strings.TrimSpace(name) {
	case "UnixStartTime":
		if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && seconds > 0 && seconds < math.MaxInt32*4 {
			s.trace.Start = time.Unix(seconds, 0).UTC()
		}
	case "Queue":
		const most = 10_000
		if number, title, named := strings.Cut(value, " "); named && len(s.header) < most {
			s.header[number] = strings.TrimSpace(title)
		}
	}
}

func (s *swfReader) job(line int, fields []string) {
	if len(fields) != swfFields {
		s.faults.add(line, "", "%d fields, %d are needed", len(fields), swfFields)
		return
	}
	var numbers [swfFields]float64
	for i, text := range fields {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(number) > maxAmount || math.IsNaN(number) {
			s.faults.add(line, swfNames[i], "%q is not a number", shorten(text))
			return
		}
		numbers[i] = number
	}
	processors := numbers[swfProcessors]
	if processors <= 0 {
		processors = numbers[swfAllocated]
	}
	if numbers[swfSubmit] >= 0 && numbers[swfSubmit] < s.last {
		if s.back++; s.back == 1 {
			s.firstBack = line
		}
	}
	s.last = max(numbers[swfSubmit], 0)
	switch status := numbers[swfStatus]; {
	case status >= 2 && status <= 4:
		s.partial++
		return
	case numbers[swfRun] < -1:
		s.before++
		return
	case numbers[swfRun] <= 0 || processors <= 0:
		s.neverRan++
		return
	}
	s.add(line, fields, &numbers, processors)
}

// add adds a job that ran.
func (s *swfReader) add(line int, fields []string, numbers *[swfFields]float64, processors float64) {
	number := int64(numbers[swfNumber])
	perTask := max(s.PerTask, 1)
	switch {
	case numbers[swfSubmit] < 0 || numbers[swfSubmit] > float64(maxSeconds):
		s.faults.add(line, swfNames[swfSubmit], "%q is not a time from 0 to %d seconds", shorten(fields[swfSubmit]), maxSeconds)
		return
	case numbers[swfRun] > float64(maxSeconds):
		s.faults.add(line, swfNames[swfRun], "%q is not a time up to %d seconds", shorten(fields[swfRun]), maxSeconds)
		return
	case processors > float64(MaxTasks)*float64(perTask):
		s.faults.add(line, swfNames[swfProcessors], "%q is more than %d tasks of %d", shorten(fields[swfProcessors]), MaxTasks, perTask)
		return
	}
	count := int(math.Ceil(processors))
	job := Job{
		Name: "job-" + strconv.FormatInt(number, 10), Queue: s.queue(fields[s.column]),
		Arrival: int64(numbers[swfSubmit]), Seconds: max(int64(math.Ceil(numbers[swfRun])), 1),
	}
	if whole := count / perTask; whole > 0 {
		job.Groups = append(job.Groups, Group{Role: "task", Tasks: whole, Request: s.request(perTask, numbers[swfMemory])})
	}
	if rest := count % perTask; rest > 0 {
		job.Groups = append(job.Groups, Group{Role: "rest", Tasks: 1, Request: s.request(rest, numbers[swfMemory])})
	}
	job.Min = job.Tasks()
	if wait := numbers[swfWait]; wait >= 0 && wait <= float64(maxSeconds) {
		job.Wait, job.Waited = int64(wait), true
	}
	if numbers[swfUser] >= 0 {
		job.Owner = "user-" + fields[swfUser]
	}
	if first, twice := s.seen[number]; twice {
		s.faults.add(line, swfNames[swfNumber], "job %d is in line %d already", number, s.lines[first])
		s.repeated.add(runOf(&job, first, line, job.Arrival))
		return
	}
	s.seen[number] = len(s.trace.Jobs)
	s.trace.Jobs, s.lines = append(s.trace.Jobs, job), append(s.lines, line)
}

// queue returns the queue of a value of the column.
func (s *swfReader) queue(value string) string {
	if name, ok := s.Queues[value]; ok {
		return name
	}
	if name, ok := s.Queues["*"]; ok {
		return name
	}
	if name, ok := s.header[value]; ok && s.column == swfQueue && name != "" {
		return name
	}
	return swfNames[s.column] + "-" + value
}

// request returns the request of a number of processors; kilobytes is the memory of one.
func (s *swfReader) request(processors int, kilobytes float64) []Amount {
	request := make([]Amount, 0, len(s.Processor)+1)
	memory := false
	for _, a := range s.Processor {
		memory = memory || a.Resource == "memory"
		request = append(request, Amount{a.Resource, a.Amount * float64(processors)})
	}
	if !memory && kilobytes > 0 {
		request = append(request, Amount{"memory", kilobytes * 1024 * float64(processors)})
	}
	return request
}

func (s *swfReader) note() {
	note := func(n int, what string) {
		if n > 0 {
			s.trace.Notes = append(s.trace.Notes, s.faults.Source+": "+text.Are(n, "job")+" left out: "+what)
		}
	}
	if s.back > 0 {
		s.trace.Notes = append(s.trace.Notes, fmt.Sprintf(
			"%s: %s %s before the job of the line above, as if the clock had jumped; the first is line %d",
			s.faults.Source, text.Count(s.back, "job"), text.Verb(s.back, "arrives", "arrive"), s.firstBack))
	}
	s.repeated.note(s.faults.Source, s.trace, func(of int) run {
		return runOf(&s.trace.Jobs[of], of, s.lines[of], s.trace.Jobs[of].Arrival)
	})
	note(s.before, "ends before it starts")
	note(s.neverRan, "never ran")
	note(s.partial, "part of a job that was suspended")
}
