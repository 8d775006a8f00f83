package ledger

import (
	"math"
	"strconv"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// nanos is the number of nanoseconds of a second.
const nanos = 1_000_000_000

// Follow takes in what a snapshot says at a time of the own clock, in Unix seconds: which tasks run, and what the cluster offers. Tasks
// that were in the snapshot before and are not in this one ended when they were last seen.
func (l *Ledger) Follow(s *apportionv1.Snapshot, at int64) {
	v := &view{
		Snapshot: s, ledger: l, at: at, paths: PathsIn(s), lines: map[lineKey]int32{}, seen: map[key]struct{}{}, starts: l.starts(),
		before: l.sight, present: map[key]struct{}{},
	}
	v.offered = v.total()
	l.counts.Unseen = 0
	if at < l.sight {
		// The clock was set back: from now on each live task has its own sight.
		for k, r := range l.records {
			if r.live {
				l.dirty.records[k] = struct{}{}
			}
		}
		for _, k := range l.running {
			l.dirty.jobs[k] = struct{}{}
		}
	}
	l.sight = at
	for _, job := range s.GetJobs() {
		v.job(job)
	}
	v.endJobs()
	l.Offer(at, v.named(v.offered))
	for k, r := range l.records {
		if _, is := v.seen[k]; is != r.live {
			r.live = is
			l.dirty.records[k] = struct{}{}
		}
	}
	if n := l.EpochOf(at); n != l.followed {
		l.followed = n
		l.Seal()
	}
}

// Assume records what the cluster of a snapshot offers, if nothing says what it ever offered, as in a ledger that was made of history.
func (l *Ledger) Assume(s *apportionv1.Snapshot, at int64) {
	if len(l.offers) == 0 {
		v := &view{Snapshot: s, ledger: l}
		l.Offer(at, v.named(v.total()))
	}
}

// starts returns the known start times of live tasks, for tasks of a snapshot that state none.
func (l *Ledger) starts() map[string]int64 {
	out := map[string]int64{}
	for k, r := range l.records {
		if r.live {
			out[k.task] = k.start
		}
	}
	return out
}

// view is a snapshot that is followed.
type view struct {
	*apportionv1.Snapshot

	ledger *Ledger
	at     int64
	// paths of the queues without children, which charge.
	paths map[string][]string
	lines map[lineKey]int32
	seen  map[key]struct{}
	// before is when the snapshot before was followed, and present are the jobs that have begun and are in this one.
	before  int64
	present map[key]struct{}
	// starts of the live tasks.
	starts map[string]int64
	// offered is the total of the cluster without what is used by others, by dimension of the snapshot.
	offered []int64
}

type lineKey struct{ queue, owner string }

// rootName is the queue below which all others are, whether the snapshot lists it or not.
const rootName = "root"

// PathsIn returns the paths of the queues of a snapshot that may have jobs, the queue first. Queues whose parents are unknown or form a
// cycle have none, and neither have queues with children: `fair` sets their jobs aside.
func PathsIn(s *apportionv1.Snapshot) map[string][]string {
	parents, inner := make(map[string]string, len(s.GetQueues())), map[string]bool{rootName: len(s.GetQueues()) > 1}
	for _, q := range s.GetQueues() {
		parents[q.GetName()] = parentOf(q)
		if q.GetName() != rootName {
			inner[parentOf(q)] = true
		}
	}
	paths := make(map[string][]string, len(parents))
	for name := range parents {
		if inner[name] {
			continue
		}
		path, at := []string{name}, name
		for at != rootName && len(path) <= len(parents)+1 {
			parent, known := parents[at]
			if !known {
				break
			}
			at = parent
			path = append(path, at)
		}
		if at == rootName {
			paths[name] = path
		}
	}
	return paths
}

func parentOf(q *apportionv1.Queue) string {
	switch {
	case q.GetName() == rootName:
		return ""
	case q.GetParent() == "":
		return rootName
	}
	return q.GetParent()
}

func (v *view) total() []int64 {
	out := make([]int64, len(v.GetDimensions()))
	if v.GetTotal() != nil {
		v.add(out, v.GetTotal(), 1)
	}
	for _, node := range v.GetNodes() {
		if v.GetTotal() == nil {
			v.add(out, node.GetAllocatable(), 1)
		}
		v.add(out, node.GetUsedByOthers(), -1)
	}
	return out
}

// add adds amounts, raw and rounded down.
func (v *view) add(to []int64, r *apportionv1.Resource, sign int64) {
	for i, d := range r.GetDimensions() {
		if int(d) < len(to) && i < len(r.GetAmounts()) {
			n := whole(r.GetAmounts()[i])
			if sign > 0 {
				to[d] = plus(max(to[d], 0), n)
			} else {
				to[d] -= min(n, max(to[d], 0))
			}
		}
	}
}

// whole returns an amount as an integer from 0 to 2^63 − 1.
func whole(amount float64) int64 {
	const limit = 1 << 63
	switch {
	case !(amount > 0):
		return 0
	case amount >= limit:
		return math.MaxInt64
	}
	return int64(amount)
}

func (v *view) named(amounts []int64) map[string]int64 {
	out := map[string]int64{}
	for d, amount := range amounts {
		if amount > 0 {
			out[v.GetDimensions()[d]] = amount
		}
	}
	return out
}

// job takes in the tasks of a job.
func (v *view) job(job *apportionv1.Job) {
	path := v.paths[job.GetQueue()]
	to := int32(-1)
	if path != nil {
		k := lineKey{job.GetQueue(), job.GetOwner()}
		line, known := v.lines[k]
		if !known {
			line = v.ledger.lines.follow(path, job.GetOwner())
			v.lines[k] = line
		}
		to = line
	}
	f := followed{job: job}
	for _, group := range job.GetGroups() {
		request := v.vector(group.GetRequest())
		f.tasks += len(group.GetTasks())
		for i, task := range group.GetTasks() {
			amounts := request
			if own := task.GetDetail().GetRequest(); own != nil {
				amounts = v.vector(own)
			}
			switch {
			case task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_PIPELINED:
				v.ledger.counts.Unseen++
			case !lookup.Occupies(task.GetStatus()):
			case to < 0:
				v.ledger.counts.Unseen++
				v.add(v.offered, requestOf(group, task), -1)
			default:
				f.task(task, amounts)
				v.take(taskName(job, group, task, i), task, to, amounts)
			}
		}
		for _, count := range group.GetCounts() {
			if lookup.Occupies(count.GetStatus()) {
				v.ledger.counts.Unseen += uint64(count.GetCount())
			}
		}
	}
	if to >= 0 {
		v.sight(&f)
	}
}

func requestOf(group *apportionv1.TaskGroup, task *apportionv1.Task) *apportionv1.Resource {
	if own := task.GetDetail().GetRequest(); own != nil {
		return own
	}
	return group.GetRequest()
}

// taskName is the uid of a task, or else what identifies it as long as it runs.
func taskName(job *apportionv1.Job, group *apportionv1.TaskGroup, task *apportionv1.Task, number int) string {
	switch {
	case task.GetUid() != "":
		return task.GetUid()
	case task.GetName() != "":
		return job.GetNamespace() + "/" + task.GetName()
	}
	name := job.GetUid()
	if name == "" {
		name = job.GetNamespace() + "/" + job.GetName()
	}
	return name + "/" + group.GetRole() + "/" + strconv.Itoa(number)
}

// vector returns a request by dimension of the ledger.
func (v *view) vector(r *apportionv1.Resource) []int64 {
	out := append([]int64{}, make([]int64, len(v.ledger.dimensions))...)
	for i, d := range r.GetDimensions() {
		if int(d) >= len(v.GetDimensions()) || i >= len(r.GetAmounts()) || whole(r.GetAmounts()[i]) == 0 {
			continue
		}
		own := v.ledger.dimensionOf(v.GetDimensions()[d])
		for len(out) <= own {
			out = append(out, 0)
		}
		out[own] = whole(r.GetAmounts()[i])
	}
	return out
}

// take takes in one task that runs.
func (v *view) take(name string, task *apportionv1.Task, to int32, amounts []int64) {
	start, known := v.starts[name]
	if scheduled := task.GetDetail(); scheduled != nil && scheduled.ScheduleTime != nil {
		start = floorDiv(scheduled.GetScheduleTime(), nanos)
	} else if !known {
		start = v.at
	}
	if start > v.at+skew || start < earliest {
		v.ledger.counts.Refused++
		return
	}
	k := key{start, name}
	v.seen[k] = struct{}{}
	v.ledger.take(k, to, amounts, sighting{seen: v.at})
}
