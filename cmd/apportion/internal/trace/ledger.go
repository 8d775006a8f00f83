//go:build !js

package trace

import (
	"maps"
	"slices"
	"time"

	"github.com/apportion/apportion/contract/text"
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
	t.Sort()
	if running > 0 {
		t.Notes = append(t.Notes, source+": "+text.Count(running, "job")+" had not ended")
	}
	return t
}
