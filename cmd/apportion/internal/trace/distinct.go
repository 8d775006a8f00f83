package trace

import (
	"fmt"

	"github.com/apportion/apportion/internal/text"
)

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
