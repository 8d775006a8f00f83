//go:build !js

package trace

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/ledger"
)

// OfLedger returns the jobs of a ledger, those that still run as unfinished.
func OfLedger(source string, l *ledger.Ledger) *Trace {
	t := &Trace{}
	jobs := l.Jobs()
	for i := range jobs {
		if at := time.Unix(jobs[i].Arrived, 0).UTC(); t.Start.IsZero() || at.Before(t.Start) {
			t.Start = at
		}
	}
	running := 0
	for i := range jobs {
		from := &jobs[i]
		job := Job{
			Name: from.Name, Queue: from.Queue, Owner: from.Owner, Priority: from.Priority,
			Arrival: min(from.Arrived-t.Start.Unix(), maxSeconds), Wait: min(from.Began-from.Arrived, maxSeconds), Waited: true,
			Seconds: min(max(from.Ended-from.Began, 1), maxSeconds), Unfinished: from.Runs,
		}
		if from.Runs {
			running++
		}
		tasks := min(max(from.Tasks, 1), MaxTasks)
		job.Min = min(max(from.Min, 1), tasks)
		group := Group{Role: "task", Tasks: tasks}
		for _, name := range slices.Sorted(maps.Keys(from.Request)) {
			if name != "pods" {
				group.Request = append(group.Request, Amount{name, float64(from.Request[name])})
			}
		}
		job.Groups = []Group{group}
		t.Jobs = append(t.Jobs, job)
	}
	noteTwice(source, t, jobs)
	t.Sort()
	if running > 0 {
		t.Notes = append(t.Notes, source+": "+text.Count(running, "job")+" had not ended")
	}
	return t
}

// noteTwice notes the jobs of a ledger that run twice at the same time.
func noteTwice(source string, t *Trace, jobs []ledger.Job) {
	runOf := func(of, at int) run { return run{of, at, jobs[at].Began, jobs[at].Ended} }
	firsts, repeated := make(map[string]int, len(jobs)), overlaps{}
	for i := range jobs {
		if first, twice := firsts[jobs[i].Name]; twice {
			repeated.add(runOf(first, i))
		} else {
			firsts[jobs[i].Name] = i
		}
	}
	if n, pair := repeated.found(func(of int) run { return runOf(of, of) }); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s, as if its start were recorded twice; the first is %q",
			atOnce(source, n), shorten(jobs[pair[0].of].Name)))
	}
}
