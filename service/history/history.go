// Package history keeps since when jobs wait for what, and what queues deserved and held over time.
//
// It reads no clock and decides nothing: it is given versions of a cluster with their times and the causes that were found in them. What it
// keeps is bounded in time and in memory. With a file it is on disk as well: what Take returned for survives the process.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
	"unique"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/store"
)

// Options of a History.
type Options struct {
	// Retain is how long a job is known after it stopped waiting, and how far back the samples of queues reach.
	Retain time.Duration
	// Step is the length of a sample at the beginning. It doubles when there are too many samples.
	Step time.Duration
	// Gap is the longest time between two versions that leaves no gap.
	Gap time.Duration
	// Bytes is about the most memory that the history takes: half for jobs, half for queues.
	Bytes int64
}

const (
	// mostIntervals bounds the intervals of a job, mostSamples the samples of a queue, mostGaps the gaps, and mostDimensions the resources.
	mostIntervals  = 32
	mostSamples    = 256
	mostGaps       = 16
	mostDimensions = 64
)

// Cause is why a job waits: the kind of cause, and the queue and the resource that it is about.
type Cause struct {
	Verdict   apportionv1.PendingVerdict `json:"verdict"`
	Check     apportionv1.CheckKind      `json:"check"`
	Code      apportionv1.CauseCode      `json:"code"`
	Queue     string                     `json:"queue,omitempty"`
	Dimension string                     `json:"dimension,omitempty"`
}

// Job is a job that waits in a version.
type Job struct {
	ID, Name, Queue string
	Cause           Cause
}

// Queue is a queue in a version. Amounts are those of the version's dimensions.
type Queue struct {
	Name                         string
	Waiting                      int
	Overused                     bool
	Deserved, Allocated, Request []float64
	// Reserved is the room that stands idle because it is kept for a job of the queue; nil if none is. The history does not keep it.
	Reserved []float64
}

// Version is a cluster at one time.
type Version struct {
	// At is when the cluster was in this state, in Unix nanoseconds.
	At         int64
	Dimensions []string
	// Jobs are those that wait.
	Jobs   []Job
	Queues []Queue
	// Exists reports whether a job that does not wait is in the cluster.
	Exists func(id string) bool
}

// interval is a time in which a job waited for one cause.
type interval struct {
	Cause Cause `json:"cause"`
	// From is when the cause was seen first, Until when it was first seen no more. The last interval of a job that waits has no Until yet.
	From  int64 `json:"from"`
	Until int64 `json:"until,omitempty"`
	// Versions counts those in which the cause was seen. The last interval of a job that waits counts from record.Before.
	Versions uint32 `json:"versions,omitempty"`
	// Merged counts intervals of other causes that this one has absorbed.
	Merged uint32 `json:"merged,omitempty"`
}

// record is what is known of a job.
type record struct {
	Name      string     `json:"name"`
	Queue     string     `json:"queue"`
	Intervals []interval `json:"intervals"`
	// Before is the number of versions before the last interval.
	Before uint64 `json:"before"`
	// Ended is when the job was first seen not waiting; 0: it waits.
	Ended int64 `json:"ended,omitempty"`
	// Gone is true if the job was not in the cluster then.
	Gone bool `json:"gone,omitempty"`

	seen uint64
}

// state is what the whole history has in common.
type state struct {
	Begins     int64    `json:"begins"`
	Latest     int64    `json:"latest"`
	Versions   uint64   `json:"versions"`
	Step       int64    `json:"step"`
	Dimensions []string `json:"dimensions"`
	// Gaps are times between two versions that are farther apart than Options.Gap: from, until.
	Gaps [][2]int64 `json:"gaps"`
}

// History is safe for concurrent use.
type History struct {
	options Options
	file    *store.Store
	// started is the time of the first version since the history was opened; 0: none yet.
	started int64

	// taking lets one version in at a time; mutex guards the rest.
	taking sync.Mutex
	mutex  sync.RWMutex
	state  state
	jobs   map[string]*record
	queues map[string]*series
	// names finds the identifier of the newest job of a name.
	names map[string]string
	// jobBytes and sampleBytes are about what jobs and queues take, and unrecorded counts the waiting jobs for which there was no room.
	jobBytes, sampleBytes int64
	unrecorded            int
	// changed are the values that differ from those of the file.
	changed map[place]bool
}

// New returns a history in memory.
func New(o Options) *History {
	return &History{
		options: o, state: state{Step: max(int64(o.Step), 1)}, jobs: map[string]*record{}, queues: map[string]*series{},
		names: map[string]string{}, changed: map[place]bool{},
	}
}

// Take takes in a version that is newer than all before; an older one is ignored, with an error if it is so much older that a clock must
// have been set back. Another error says that it could not be stored: it is in memory then, and the next call stores it as well.
func (h *History) Take(v *Version) error {
	h.taking.Lock()
	defer h.taking.Unlock()
	if h.take(v) {
		return h.save()
	}
	if latest := h.state.Latest; latest-v.At > int64(max(h.options.Gap, leastSetBack)) {
		return fmt.Errorf("a clock was set back: the version is of %s, and the history goes on after %s",
			time.Unix(0, v.At).UTC().Format(time.RFC3339), time.Unix(0, latest).UTC().Format(time.RFC3339))
	}
	return nil
}

// leastSetBack is by how much a clock is set back at least to be noticed.
const leastSetBack = time.Hour

func (h *History) take(v *Version) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	s := &h.state
	if v.At <= s.Latest {
		return false
	}
	if s.Begins == 0 {
		s.Begins = v.At
	} else if v.At-s.Latest > int64(h.options.Gap) {
		s.Gaps = append(s.Gaps, [2]int64{s.Latest, v.At})
		s.Gaps = s.Gaps[max(len(s.Gaps)-mostGaps, 0):]
	}
	if h.started == 0 {
		h.started = v.At
	}
	s.Versions++
	h.takeJobs(v)
	h.takeQueues(v)
	s.Latest = v.At
	s.Gaps = slices.DeleteFunc(s.Gaps, func(gap [2]int64) bool { return gap[1] < v.At-int64(h.options.Retain) })
	h.changed[place{stateTable, ""}] = true
	return true
}

// takeJobs takes in the jobs that wait, ends the waits of all others, and forgets jobs whose wait ended long ago.
func (h *History) takeJobs(v *Version) {
	h.unrecorded = 0
	for i := range v.Jobs {
		h.waits(&v.Jobs[i], v.At)
	}
	for id, r := range h.jobs {
		switch {
		case r.Ended == 0 && r.seen != h.state.Versions:
			r.close(h.state.Versions-1, v.At)
			r.Ended, r.Gone = v.At, !v.Exists(id)
			h.changed[place{jobTable, id}] = true
		case r.Ended != 0 && v.At-r.Ended > int64(h.options.Retain):
			h.forget(id)
		case r.Ended != 0 && !r.Gone && !v.Exists(id):
			r.Gone = true
			h.changed[place{jobTable, id}] = true
		}
	}
	h.makeRoom()
}

// waits takes in a job that waits.
func (h *History) waits(j *Job, at int64) {
	r := h.jobs[j.ID]
	if r == nil {
		r = &record{Name: own(j.Name), Queue: own(j.Queue)}
		if h.jobBytes+r.bytes(j.ID)+intervalBytes > h.options.Bytes/2 {
			h.unrecorded++
			return
		}
		id := own(j.ID)
		h.jobs[id], h.names[r.Name] = r, id
		h.jobBytes += r.bytes(j.ID)
	}
	r.seen = h.state.Versions
	if n := len(r.Intervals); n > 0 && r.Ended == 0 && r.Intervals[n-1].Cause == j.Cause && r.Queue == j.Queue {
		return
	}
	h.jobBytes -= r.bytes(j.ID)
	r.close(h.state.Versions-1, at)
	r.Queue, r.Ended, r.Gone, r.Before = own(j.Queue), 0, false, h.state.Versions-1
	cause := j.Cause
	cause.Queue, cause.Dimension = own(cause.Queue), own(cause.Dimension)
	r.Intervals = merged(append(r.Intervals, interval{Cause: cause, From: at}))
	h.jobBytes += r.bytes(j.ID)
	h.changed[place{jobTable, j.ID}] = true
}

// own returns a string that does not keep the snapshot in memory that it is a part of.
func own(s string) string { return unique.Make(s).Value() }

// close ends the last interval of a job that waits.
func (r *record) close(versions uint64, at int64) {
	if n := len(r.Intervals); n > 0 && r.Ended == 0 {
		last := &r.Intervals[n-1]
		last.Until, last.Versions = at, last.Versions+uint32(versions-r.Before)
	}
}

// merged merges the two oldest of too many intervals into one, with the cause that lasted longer. If the job did not wait between them, the
// oldest is dropped.
func merged(list []interval) []interval {
	if len(list) <= mostIntervals {
		return list
	}
	first, second := list[0], list[1]
	if first.Until == second.From {
		if first.Until-first.From >= second.Until-second.From {
			second.Cause = first.Cause
		}
		second.From = first.From
		second.Versions += first.Versions
		second.Merged += first.Merged + 1
	}
	return append([]interval{second}, list[2:]...)
}

// since returns when the present or last wait of a job began.
func (r *record) since() int64 {
	i := len(r.Intervals) - 1
	for i > 0 && r.Intervals[i-1].Until == r.Intervals[i].From {
		i--
	}
	return r.Intervals[i].From
}

// Sizes of values in memory, with their share of maps.
const recordBytes, intervalBytes = 320, 88

func (r *record) bytes(id string) int64 {
	return recordBytes + 2*int64(len(id)+len(r.Name)) + int64(len(r.Intervals))*intervalBytes
}

// forget removes a job.
func (h *History) forget(id string) {
	r := h.jobs[id]
	h.jobBytes -= r.bytes(id)
	delete(h.jobs, id)
	if h.names[r.Name] == id {
		delete(h.names, r.Name)
	}
	h.changed[place{jobTable, id}] = true
}

// makeRoom forgets jobs that no longer wait, those whose wait ended first before the others, until a quarter of the room is free again.
func (h *History) makeRoom() {
	most := h.options.Bytes / 2
	if h.unrecorded == 0 && h.jobBytes <= most {
		return
	}
	var ended []string
	for id, r := range h.jobs {
		if r.Ended != 0 {
			ended = append(ended, id)
		}
	}
	slices.SortFunc(ended, func(a, b string) int {
		return cmp.Or(cmp.Compare(h.jobs[a].Ended, h.jobs[b].Ended), cmp.Compare(a, b))
	})
	for _, id := range ended {
		if h.jobBytes <= most/4*3 {
			return
		}
		h.forget(id)
	}
}
