package trace

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/apportion/apportion/internal/text"
)

// run is when a job runs, as a line of a source says, in seconds. of is the position of the first job of its name in the trace.
type run struct {
	of, line    int
	from, until int64
}

// runOf returns the run that a line states of a job which arrives at a time: from its arrival on if it is not known how long it waits.
func runOf(job *Job, of, line int, arrival int64) run {
	from := arrival + job.Wait
	return run{of, line, from, from + job.Seconds}
}

// overlaps finds the jobs that a source states to run twice at the same time.
type overlaps struct {
	// repeated are the runs of jobs that a source has more than once, but for the first of each.
	repeated []run
}

// mostRepeated bounds the memory; the runs beyond it are not compared.
const mostRepeated = 1_000_000

func (o *overlaps) add(one run) {
	if len(o.repeated) < mostRepeated {
		o.repeated = append(o.repeated, one)
	}
}

// found returns how many jobs run twice at the same time, and two such runs of the first of them, in the order of their lines. first
// returns the first run of a job.
func (o *overlaps) found(first func(of int) run) (jobs int, pair [2]run) {
	runs := o.repeated
	slices.SortFunc(runs, func(l, r run) int { return cmp.Compare(l.of, r.of) })
	for begin := 0; begin < len(runs); {
		end := begin
		for end < len(runs) && runs[end].of == runs[begin].of {
			end++
		}
		two, overlap := overlapping(append(slices.Clone(runs[begin:end]), first(runs[begin].of)))
		if overlap {
			if jobs++; jobs == 1 || two[1].line < pair[1].line {
				pair = two
			}
		}
		begin = end
	}
	return jobs, pair
}

// overlapping returns two of the runs of one job that are at the same time, in the order of their lines; false if there are none.
func overlapping(runs []run) (pair [2]run, found bool) {
	slices.SortFunc(runs, func(l, r run) int { return cmp.Or(cmp.Compare(l.from, r.from), cmp.Compare(l.line, r.line)) })
	last := runs[0]
	for _, one := range runs[1:] {
		if one.from < last.until {
			two := [2]run{last, one}
			if one.line < last.line {
				two = [2]run{one, last}
			}
			if !found || two[1].line < pair[1].line {
				pair, found = two, true
			}
		}
		if one.until > last.until {
			last = one
		}
	}
	return pair, found
}

// note notes the jobs of a trace that run twice at the same time, as lines of a source say.
func (o *overlaps) note(source string, t *Trace, first func(of int) run) {
	if n, pair := o.found(first); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s, as if a line were wrong; the first is %q, in lines %d and %d",
			atOnce(source, n), shorten(t.Jobs[pair[0].of].Name), pair[0].line, pair[1].line))
	}
}

func atOnce(source string, jobs int) string {
	return fmt.Sprintf("%s: %s %s twice at the same time", source, text.Count(jobs, "job"), text.Verb(jobs, "runs", "run"))
}
