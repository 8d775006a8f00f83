package ledger

import (
	"cmp"
	"maps"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// MaxJobs is the number of ended jobs that a ledger keeps. Of more, those that ended first are dropped.
const MaxJobs = 10_000

// Job is a job that ran in the snapshots that a ledger followed. Times are in Unix seconds of the cluster's clock.
type Job struct {
	// Name is its uid, or namespace/name.
	Name, Queue, Owner string
	Priority           int32
	// Tasks is how many tasks it had, Min how many of them had to run at the same time, and Request what the first that ran asked for.
	Tasks, Min int
	Request    map[string]int64
	// Arrived is when it was created, Began when its minimum ran first, and Ended when it was last seen running.
	Arrived, Began, Ended int64
	// Runs says that it has not ended.
	Runs bool
}

// Jobs returns the jobs that have ended and those that run, in the order in which they began.
func (l *Ledger) Jobs() []Job {
	out := make([]Job, 0, len(l.jobs))
	for _, k := range slices.SortedFunc(maps.Keys(l.jobs), compareKeys) {
		r := l.jobs[k]
		out = append(out, Job{
			Name: k.task, Queue: r.queue, Owner: r.owner, Priority: r.priority, Tasks: int(r.tasks), Min: int(r.min),
			Request: l.named(r.request), Arrived: min(r.arrived, k.start), Began: k.start, Ended: max(r.until(l), k.start), Runs: !r.ended,
		})
	}
	return out
}

// jobRecord is what a ledger knows of a job. Its key has its name, and when it began.
type jobRecord struct {
	queue, owner string
	priority     int32
	tasks, min   int64
	request      []int64
	arrived      int64
	// seen is when it was last seen running. A job that is live was seen whenever the ledger followed a snapshot since: that is stored once
	// for all. One that has neither ended nor is live was evicted.
	seen        int64
	live, ended bool
}

func (r *jobRecord) until(l *Ledger) int64 {
	if r.live {
		return l.sight
	}
	return r.seen
}

// followed is a job of a snapshot.
type followed struct {
	job *apportionv1.Job
	// holding is how many of its tasks use their nodes, tasks how many there are, and request what the first that does asked for.
	holding, tasks int
	request        []int64
	// began is when the first of them was scheduled, 0 if that is not stated.
	began int64
}

// task adds a task that uses its node.
func (f *followed) task(task *apportionv1.Task, request []int64) {
	if f.holding++; f.request == nil {
		f.request = request
	}
	if detail := task.GetDetail(); detail != nil && detail.ScheduleTime != nil {
		if at := floorDiv(detail.GetScheduleTime(), nanos); at > 0 && (f.began == 0 || at < f.began) {
			f.began = at
		}
	}
}

// sight notes whether a job of a snapshot runs.
func (v *view) sight(f *followed) {
	l, job := v.ledger, f.job
	name := job.GetUid()
	if name == "" {
		name = job.GetNamespace() + "/" + job.GetName()
	}
	least := max(int(job.GetMinAvailable()), 1)
	k, open := l.running[name]
	runs := f.holding >= least && job.GetPhase() != apportionv1.JobPhase_JOB_PHASE_COMPLETED
	if !open && runs {
		k, open = l.begin(name, f, v.at)
	}
	if !open {
		return
	}
	v.present[k] = struct{}{}
	if r := l.jobs[k]; r.live != runs {
		if r.live {
			r.seen = v.before
		}
		r.live = runs
		l.dirty.jobs[k] = struct{}{}
	}
	if job.GetPhase() == apportionv1.JobPhase_JOB_PHASE_COMPLETED {
		delete(v.present, k)
	}
}

// begin notes that a job runs from now on, unless too many do.
func (l *Ledger) begin(name string, f *followed, at int64) (key, bool) {
	k := key{at, name}
	if f.began > 0 && f.began < at {
		k.start = f.began
	}
	if len(l.running) >= MaxJobs {
		return k, false
	}
	l.running[name] = k
	l.dirty.jobs[k] = struct{}{}
	if r := l.jobs[k]; r != nil {
		// It was missing for a time.
		r.ended = false
		return k, true
	}
	created := floorDiv(f.job.GetCreateTime(), nanos)
	if f.job.GetCreateTime() == 0 || created > k.start || created < earliest {
		created = k.start
	}
	l.jobs[k] = &jobRecord{
		queue: f.job.GetQueue(), owner: f.job.GetOwner(), priority: f.job.GetPriority(), tasks: int64(f.tasks),
		min: max(int64(f.job.GetMinAvailable()), 1), request: f.request, arrived: created, seen: at,
	}
	return k, true
}

// endJobs ends the jobs that were in the snapshot before and are not in this one, or are completed. They ended when they were last seen.
func (v *view) endJobs() {
	l, ended := v.ledger, false
	for name, k := range l.running {
		if _, is := v.present[k]; is {
			continue
		}
		r := l.jobs[k]
		if r.live {
			r.seen = v.before
		}
		r.live, r.ended, ended = false, true, true
		l.dirty.jobs[k] = struct{}{}
		delete(l.running, name)
	}
	if ended {
		l.trimJobs()
	}
}

// trimJobs drops the jobs that ended first if there are too many.
func (l *Ledger) trimJobs() {
	most := MaxJobs + len(l.running)
	if len(l.jobs) <= most {
		return
	}
	var list []key
	for k, r := range l.jobs {
		if r.ended {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b key) int { return cmp.Or(cmp.Compare(l.jobs[a].seen, l.jobs[b].seen), compareKeys(a, b)) })
	for _, k := range list[:len(l.jobs)-most] {
		delete(l.jobs, k)
		l.dirty.jobs[k] = struct{}{}
	}
}

// mergeJobs takes over the jobs that have ended in another ledger.
func (l *Ledger) mergeJobs(other *Ledger) {
	for _, k := range slices.SortedFunc(maps.Keys(other.jobs), compareKeys) {
		r := other.jobs[k]
		if own := l.jobs[k]; !r.ended || own != nil && (!own.ended || own.seen >= r.seen) {
			continue
		}
		taken := *r
		taken.request = l.vector(other.named(r.request))
		l.jobs[k] = &taken
		l.dirty.jobs[k] = struct{}{}
	}
	l.trimJobs()
}

func (r *jobRecord) write() *writer {
	w := &writer{}
	flags := uint64(0)
	if r.ended {
		flags |= flagEnded
	}
	if r.live {
		flags |= flagLive
	}
	w.unsigned(flags)
	w.text(r.queue)
	w.text(r.owner)
	for _, n := range []int64{int64(r.priority), r.tasks, r.min, r.arrived, r.seen} {
		w.signed(n)
	}
	w.vector(r.request)
	return w
}

func (l *Ledger) loadJob(k []byte, r *reader) error {
	start, err := keyNumber(k)
	if err != nil {
		return err
	}
	flags := r.unsigned()
	job := &jobRecord{
		queue: r.text(), owner: r.text(), priority: int32(r.signed()), tasks: r.signed(), min: r.signed(), arrived: r.signed(),
		seen: r.signed(), request: r.vector(), live: flags&flagLive != 0, ended: flags&flagEnded != 0,
	}
	if r.err != nil || len(job.request) > len(l.dimensions) || job.live && job.ended {
		return errShort
	}
	at := key{start, string(k[8:])}
	if !job.ended {
		if _, twice := l.running[at.task]; twice {
			return errShort
		}
		l.running[at.task] = at
	}
	l.jobs[at] = job
	return nil
}
