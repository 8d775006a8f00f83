//go:build !js

package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/service/decisionlog"
)

// maxLogLine bounds a line of a log, in bytes.
const maxLogLine = 64 << 20

// ReadLog reads the jobs that the snapshots of a decision log show. models finds a snapshot by digest.
//
// A log shows the jobs at the times of questions, so the times are as exact as questions are frequent. A job arrives when it was created,
// or at the first entry that shows it if that is not known. It runs from the first entry in which its minimum runs to the first later entry
// in which it does not. Jobs that were never seen running are left out, because the log does not say how long they take; jobs that ran to
// the end of the log are unfinished: a rehearsal takes the time until then, a forecast takes them to run longer. Both are counted in the
// notes, and so are jobs with rules on where their tasks run, which a trace does not have.
func ReadLog(source string, r io.Reader, models func(digest string) (*model.Model, error), s Strictness) (*Trace, error) {
	in := &logReader{faults: Error{Source: source}, models: models, jobs: map[string]*sighting{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLogLine)
	number := 0
	for lines.Scan() && !in.faults.full(s) {
		number++
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			in.line(number, line)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		in.faults.add(number+1, "", "the line is longer than %d bytes", maxLogLine)
	} else if err != nil {
		return nil, err
	}
	t := in.trace()
	if err := in.faults.settle(s, t); err != nil {
		return nil, err
	}
	return t, nil
}

type logReader struct {
	faults Error
	models func(string) (*model.Model, error)
	jobs   map[string]*sighting
	// last is the time of the entry before, digest its snapshot.
	last             time.Time
	digest           string
	shown, forgotten int
}

// sighting is the history of a job in a log.
type sighting struct {
	job                   Job
	arrived, began, ended time.Time
	// seen is the number of the last snapshot that shows it.
	seen int
	// bound: rules say where its tasks run.
	bound bool
}

func (l *logReader) line(number int, line []byte) {
	var entry decisionlog.Entry
	if err := json.Unmarshal(line, &entry); err != nil {
		l.faults.add(number, "", "not an entry of a decision log: %s", err)
		return
	}
	if entry.SnapshotDigest == "" || entry.Time.IsZero() {
		return
	}
	if entry.Time.Before(l.last) {
		l.faults.add(number, "time", "the entry is older than the one before it: name the files of a log with the oldest first")
		return
	}
	l.last = entry.Time
	if entry.SnapshotDigest == l.digest {
		return
	}
	m, err := l.models(entry.SnapshotDigest)
	if err != nil {
		l.forgotten++
		return
	}
	l.digest = entry.SnapshotDigest
	l.shown++
	l.show(m, entry.Time)
}

// show records the jobs of a snapshot.
func (l *logReader) show(m *model.Model, now time.Time) {
	for _, j := range m.JobOrder {
		job := m.Jobs.At(j)
		account := m.Accounts.At(j)
		seen := l.jobs[job.UID]
		if seen == nil {
			if len(l.jobs) == MaxJobs {
				continue
			}
			seen = &sighting{job: jobOf(m, j), arrived: now, bound: bound(m, j)}
			if created := time.Unix(0, job.CreateTime); job.CreateTime > 0 && created.Before(now) {
				seen.arrived = created
			}
			l.jobs[job.UID] = seen
		}
		seen.seen = l.shown
		runs := int(account.Holding()) >= max(seen.job.Min, 1) && job.Phase != model.PhaseCompleted
		switch {
		case runs && seen.began.IsZero():
			seen.began = now
		case runs:
			// A job that was evicted and runs again has not ended.
			seen.ended = time.Time{}
		case !seen.began.IsZero() && seen.ended.IsZero():
			seen.ended = now
		}
	}
	for _, seen := range l.jobs {
		if seen.seen != l.shown && !seen.began.IsZero() && seen.ended.IsZero() {
			seen.ended = now
		}
	}
}

// jobOf is a job as a snapshot describes it, without its times.
func jobOf(m *model.Model, j model.JobID) Job {
	spec := m.Jobs.At(j)
	job := Job{
		Name: strings.Clone(spec.UID), Queue: strings.Clone(m.Queues[spec.Queue].Name), Owner: strings.Clone(spec.Owner),
		Priority: spec.Priority, Min: int(spec.MinAvailable),
	}
	for t := spec.FirstTask; t < spec.EndTask; t++ {
		job.Protected = job.Protected || !m.Tasks.At(t).Preemptable
	}
	for g := spec.FirstGroup; g < spec.EndGroup; g++ {
		group := m.Groups.At(g)
		tasks := 0
		for t := spec.FirstTask; t < spec.EndTask; t++ {
			if m.Tasks.At(t).Group == g {
				tasks++
			}
		}
		for c := range m.CountsOf(g) {
			tasks += int(c.N)
		}
		if tasks > 0 {
			job.Groups = append(job.Groups, Group{
				Role: strings.Clone(group.Role), Tasks: min(tasks, MaxTasks), Request: amountsOf(m, m.Requests[group.Request]),
			})
		}
	}
	job.Min = min(max(job.Min, 1), max(job.Tasks(), 1))
	return job
}

// bound reports whether rules say where some task of a job runs: a node set, rules on other pods, or constraints that are not judged.
func bound(m *model.Model, j model.JobID) bool {
	spec := m.Jobs.At(j)
	for t := spec.FirstTask; t < spec.EndTask; t++ {
		if m.NodeSetOf(t) != model.AllNodes || m.PodClassOf(t) != 0 || m.Unjudged(t) != 0 {
			return true
		}
	}
	return false
}

func amountsOf(m *model.Model, row resource.Row) []Amount {
	var list []Amount
	for _, d := range m.GivenDimensions() {
		if amount := row.V[d]; amount > 0 && m.Dims.Name(d) != "pods" {
			list = append(list, Amount{m.Dims.Name(d), amount})
		}
	}
	return list
}

// trace returns the trace of the recorded jobs.
func (l *logReader) trace() *Trace {
	t := &Trace{}
	uids := make([]string, 0, len(l.jobs))
	for uid := range l.jobs {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	never, running, ruled := 0, 0, 0
	for _, uid := range uids {
		seen := l.jobs[uid]
		if seen.began.IsZero() || len(seen.job.Groups) == 0 || seen.job.Tasks() > MaxTasks {
			never++
			seen.ended = time.Time{}
			continue
		}
		if seen.ended.IsZero() {
			running++
			seen.ended, seen.job.Unfinished = l.last, true
		}
		if t.Start.IsZero() || seen.arrived.Before(t.Start) {
			t.Start = seen.arrived.UTC()
		}
	}
	for _, uid := range uids {
		seen := l.jobs[uid]
		if seen.ended.IsZero() {
			continue
		}
		if seen.bound {
			ruled++
		}
		job := seen.job
		job.Arrival = min(int64(seen.arrived.Sub(t.Start)/time.Second), maxSeconds)
		job.Seconds = min(max(int64(seen.ended.Sub(seen.began)/time.Second), 1), maxSeconds)
		job.Wait, job.Waited = min(max(int64(seen.began.Sub(seen.arrived)/time.Second), 0), maxSeconds), true
		t.Jobs = append(t.Jobs, job)
	}
	t.Sort()
	note := func(n int, noun, goesOn string) {
		if n > 0 {
			t.Notes = append(t.Notes, l.faults.Source+": "+text.Count(n, noun)+goesOn)
		}
	}
	note(never, "job", " left out: never seen running")
	note(running, "job", " had not ended when the log did")
	note(ruled, "job", " may use any node in the rehearsal, though rules say where its tasks run")
	note(l.forgotten, "decision", " left out, of which the snapshot is not stored")
	return t
}
