package rehearsal

import (
	"container/heap"
	"fmt"
	"strings"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/timeline"
)

// never is a moment that does not come, and idle the start of a task that does not run.
const (
	never = timeline.Never
	idle  = int64(-1)
)

// job is a job of the trace in the course of a run.
type job struct {
	*trace.Job
	queue model.QueueID
	// id and first are the numbers of the job and of its first task in the session; None while it is not there.
	id    model.JobID
	first model.TaskID
	phase model.Phase
	// kind is equal for jobs that only their names, and times, tell apart.
	kind int32
	// requests are those of the groups as the builder reads them, rows the same in the order of the model's dimensions.
	requests []*model.Amounts
	rows     [][]float64
	// started says for each task since when it runs, or idle; nil before the job arrives and after it is done.
	started []int64
	// nodes are those of running tasks.
	nodes   []model.NodeID
	running int
	// done is the work that was done until since, of total, in seconds of one task.
	done, total, since int64
	working            bool
	// began is the time when it first worked, waiting the time since which it does not work, and waited the sum of earlier waits.
	began, waiting, waited int64
	// end is the time when it was done, or will be if nothing happens.
	end int64
	// workload is the job as Kueue sees it; nil under other policies and before it has waited.
	workload *cycle.Workload
}

// shape puts together what is the same for the whole run.
func (j *job) shape(r *run, position map[string]uint32) {
	for g := range j.Groups {
		amounts := &model.Amounts{}
		row := make([]float64, r.width)
		for _, a := range j.Groups[g].Request {
			amounts.Dimension = append(amounts.Dimension, position[a.Resource])
			amounts.Amount = append(amounts.Amount, a.Amount)
			if d, ok := r.base.Dims.Index(a.Resource); ok {
				row[d] += a.Amount
			}
		}
		j.requests, j.rows = append(j.requests, amounts), append(j.rows, row)
	}
	j.total = int64(j.Tasks()) * j.Seconds
	j.began, j.end = never, never
}

// signature is equal for jobs of one kind. With turns it matters how long they run.
func (j *job) signature(turns bool) string {
	var b strings.Builder
	if turns {
		fmt.Fprintf(&b, "%d ", j.Seconds)
	}
	fmt.Fprintf(&b, "%d %d %d", j.queue, j.Priority, j.Min)
	for g := range j.Groups {
		fmt.Fprintf(&b, " %q %d %v", j.Groups[g].Role, j.Groups[g].Tasks, j.Groups[g].Request)
	}
	return b.String()
}

func (j *job) arrive(now int64) {
	j.started = make([]int64, j.Tasks())
	for i := range j.started {
		j.started[i] = idle
	}
	j.nodes = make([]model.NodeID, len(j.started))
	j.since, j.waiting = now, now
}

// group is the group of a task.
func (j *job) group(task int) int {
	for g := range j.Groups {
		if task -= j.Groups[g].Tasks; task < 0 {
			return g
		}
	}
	return len(j.Groups) - 1
}

// settle counts the work that was done until now.
func (j *job) settle(now int64) {
	if j.working {
		j.done += int64(j.running) * (now - j.since)
	}
	j.since = now
}

// place starts a task.
func (j *job) place(task int, now int64) {
	j.settle(now)
	j.started[task] = now
	j.running++
	if j.working || j.running < j.Min {
		return
	}
	// Tasks that were placed before could not work without the others.
	j.working = true
	for i, start := range j.started {
		if start != idle {
			j.started[i] = now
		}
	}
	j.waited += now - j.waiting
	if j.began == never {
		j.began = now
	}
}

// evict stops a task and returns how much of its work is lost, in seconds. stop must follow if the minimum does not run any more.
func (j *job) evict(task int, now, checkpoint int64) int64 {
	lost := int64(0)
	if j.working {
		lost = now - j.started[task]
	}
	if checkpoint > 0 {
		lost %= checkpoint
	}
	j.settle(now)
	j.done -= lost
	j.started[task] = idle
	j.running--
	return lost
}

// stop ends the work of a job whose minimum does not run.
func (j *job) stop(now int64) {
	j.settle(now)
	j.working, j.waiting = false, now
}

// ending returns the time when the job will be done if nothing happens, never if it does not work. Its work until now must be settled.
func (j *job) ending(now int64) int64 {
	if !j.working {
		return never
	}
	left := j.total - j.done
	return now + (left+int64(j.running)-1)/int64(j.running)
}

// finish ends the job.
func (j *job) finish(now int64) {
	j.settle(now)
	j.working, j.end = false, now
}

// wanted is the phase that the scheduler gives a job that was admitted.
func (j *job) wanted() model.Phase {
	if j.running > 0 {
		return model.PhaseRunning
	}
	return model.PhaseInqueue
}

// ends is a queue of jobs by the moments at which they will be done.
type ends struct{ list endList }

type ending struct {
	at   int64
	job  *job
	rank int
}

type endList struct {
	entries []ending
	added   int
}

func (l *endList) Len() int { return len(l.entries) }

func (l *endList) Less(i, k int) bool {
	a, b := &l.entries[i], &l.entries[k]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.rank < b.rank
}

func (l *endList) Swap(i, k int) { l.entries[i], l.entries[k] = l.entries[k], l.entries[i] }

// Push is for package heap.
func (l *endList) Push(x any) {
	if e, ok := x.(ending); ok {
		l.entries = append(l.entries, e)
	}
}

// Pop is for package heap.
func (l *endList) Pop() any {
	last := l.entries[len(l.entries)-1]
	l.entries[len(l.entries)-1] = ending{}
	l.entries = l.entries[:len(l.entries)-1]
	return last
}

// schedule notes when a job will be done, in place of what was noted before.
func (e *ends) schedule(j *job, now int64) {
	at := j.ending(now)
	if at == j.end {
		return
	}
	j.end = at
	if at != never {
		e.list.added++
		heap.Push(&e.list, ending{at, j, e.list.added})
	}
}

// next is the moment at which the next job is done, never if none works.
func (e *ends) next() int64 {
	for e.list.Len() > 0 {
		if first := &e.list.entries[0]; first.job.end == first.at && first.job.working {
			return first.at
		}
		heap.Pop(&e.list)
	}
	return never
}

// pop takes a job that is done at a moment, nil if there is none.
func (e *ends) pop(now int64) *job {
	if e.next() != now {
		return nil
	}
	first := e.list.entries[0].job
	heap.Pop(&e.list)
	return first
}
